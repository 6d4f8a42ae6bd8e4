// `tilepilot export` from the file to programs that call the library.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKernels = R"(
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def affine(M, N, factor, block=8):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=64) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = X[bx * block + i, j] * factor + W[j]

    return main


@tilelang.jit(out_idx=[-1])
def double(N, dtype="float32"):
    M = T.dynamic("m")

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
            x = T.alloc_fragment((8, N), dtype)
            T.copy(X[bx * 8, 0], x)
            for i, j in T.Parallel(8, N):
                x[i, j] = x[i, j] * 2
            T.copy(x, Y[bx * 8, 0])

    return main


)";
constexpr const char* kModel = R"(
class Inner(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.rand(features))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.inner = Inner(features)
        self.scale = nn.Parameter(torch.rand(features))
        self.kept = torch.rand(16, features)
        self.calls = 0

    def forward(self, x):
        M, N = x.shape
        BODY


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return [24]
)";
constexpr const char* kTwoKernels =
    "first = affine(M, N, 2.0)(x, self.inner.bias)\n        return affine(M, N, 3.0)(first, self.scale).view(M // 2, "
    "2, N)";

class Exports : public CommandLine {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  // A file whose forward consists of these lines.
  std::string model_file(const std::string& body) const {
    std::string text = std::string(kKernels) + kModel;
    return put("fast.py", text.replace(text.find("BODY"), 4, body));
  }
  runtime::ProcessResult run(const std::vector<std::string>& command) {
    auto result = runtime::run_process(command, {.time_limit_s = 300, .working_directory = folder_.string()});
    EXPECT_TRUE(result.ok());
    return *std::move(result);
  }
  // Builds a program among the examples of `folder`, and runs it.
  std::string example(const std::string& folder, const std::string& name, const std::string& prefix = "") {
    const auto configured = run({"cmake", "-S", folder + "/examples", "-B", "built", "-DCMAKE_PREFIX_PATH=" + prefix});
    EXPECT_EQ(configured.exit_code, 0) << all(configured);
    const auto built = run({"cmake", "--build", "built", "--target", name});
    EXPECT_EQ(built.exit_code, 0) << all(built);
    const auto ran = run({(folder_ / "built" / name).string()});
    EXPECT_EQ(ran.exit_code, 0) << all(ran);
    return ran.out;
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

// As the examples fill their buffers.
float filled(int64_t k) { return static_cast<float>(k * 7 % 13) * 0.125F - 0.5F; }

TEST_F(Exports, KernelsThatCallsName) {
  const std::string file = put("kernels.py", kKernels);
  const auto result = tilepilot({"export", file, "-o", "out", "--call", "affine(16, 24, 2.0)", "--call", "double(32)",
                                 "--call", "double(32, dtype=\"float16\")"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("kernels_affine: `affine(16, 24, 2.0)`, line 11 of kernels.py\n"),
                                HasSubstr("kernels_double_2: `double(32, dtype=\"float16\")`, line 24 of kernels.py\n"),
                                HasSubstr("wrote kernels.h and libkernels.so for cpu into out")));
  EXPECT_THAT(
      text_of(folder_ / "out/kernels.h"),
      AllOf(HasSubstr("int kernels_double(const float* X, float* Y, int64_t m, void* workspace, void* stream);"),
            HasSubstr("//   X: float16[m, 32], read\n")));
  double sum = 0, doubled = 0;
  for (int64_t k = 0; k < 16 * 24; ++k) sum += filled(k) * 2 + filled(k % 24);
  for (int64_t k = 0; k < 64 * 32; ++k) doubled += filled(k) * 2;
  const std::string expected =
      fmt::format("affine Y {:.9g}\ndouble Y {:.9g}\ndouble_2 Y {:.9g}\n", sum, doubled, doubled);
  EXPECT_EQ(example("out", "plain"), expected);
  fs::rename(folder_ / "out", folder_ / "moved");
  fs::remove_all(folder_ / "built");
  EXPECT_EQ(example("moved", "plain"), expected);
}

TEST_F(Exports, AWholeModel) {
  const auto result = tilepilot({"export", model_file(kTwoKernels), "-o", "out", "--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  EXPECT_EQ(answer["functions"].size(), 3u);
  EXPECT_EQ(answer["functions"][2]["arguments"],
            json({"x: float32[16, 24], read", "scale: float32[24], read", "inner_bias: float32[24], read",
                  "output: float32[8, 2, 24], written"}));
  EXPECT_EQ(answer["left_out"], json::array());
  EXPECT_FALSE(answer.contains("text"));
  void* library = dlopen((folder_ / "out/libfast.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* run_model = reinterpret_cast<int (*)(const float*, const float*, const float*, float*, void*, void*)>(
      dlsym(library, "fast_run_model"));
  auto* size = reinterpret_cast<int64_t (*)()>(dlsym(library, "fast_run_model_workspace_size"));
  ASSERT_TRUE(run_model && size);
  std::vector<char> workspace(static_cast<size_t>(size()));
  std::vector<float> x(16 * 24), scale(24), bias(24), output(16 * 24);
  for (size_t k = 0; k < x.size(); ++k) x[k] = filled(static_cast<int64_t>(k));
  for (size_t k = 0; k < 24; ++k) scale[k] = static_cast<float>(k), bias[k] = static_cast<float>(k % 5);
  ASSERT_EQ(run_model(x.data(), scale.data(), bias.data(), output.data(), workspace.data(), nullptr), 0);
  for (size_t k = 0; k < x.size(); ++k) ASSERT_EQ(output[k], (x[k] * 2 + bias[k % 24]) * 3 + scale[k % 24]) << k;
  dlclose(library);
}

// What is needed no more makes room; a part of what is kept until the end is an argument.
TEST_F(Exports, AModelWhoseKernelsShareAWorkspace) {
  const std::string body =
      "first = affine(M, N, 2.0)(x, self.scale)\n        second = affine(M, N, 3.0)(first, self.scale)\n"
      "        third = affine(M, N, 0.5)(second, self.scale)\n        fourth = affine(M, N, 0.25)(third, self.scale)\n"
      "        return affine(M, N, 1.5)(fourth, first[1])";
  const auto result = tilepilot({"export", model_file(body), "-o", "out"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  void* library = dlopen((folder_ / "out/libfast.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* run_model =
      reinterpret_cast<int (*)(const float*, const float*, float*, void*, void*)>(dlsym(library, "fast_run_model"));
  auto* size = reinterpret_cast<int64_t (*)()>(dlsym(library, "fast_run_model_workspace_size"));
  ASSERT_TRUE(run_model && size);
  EXPECT_EQ(size(), 3 * 16 * 24 * 4 + 255);  // of three tensors at once
  std::vector<char> workspace(static_cast<size_t>(size()));
  std::vector<float> x(16 * 24), scale(24), output(16 * 24);
  for (size_t k = 0; k < x.size(); ++k) x[k] = filled(static_cast<int64_t>(k));
  for (size_t k = 0; k < 24; ++k) scale[k] = static_cast<float>(k % 7);
  ASSERT_EQ(run_model(x.data(), scale.data(), output.data(), workspace.data(), nullptr), 0);
  for (size_t k = 0; k < x.size(); ++k) {
    const float s = scale[k % 24], fourth = (((x[k] * 2 + s) * 3 + s) * 0.5F + s) * 0.25F + s;
    ASSERT_EQ(output[k], fourth * 1.5F + (x[24 + k % 24] * 2 + s)) << k;
  }
  dlclose(library);
}

TEST_F(Exports, AModelWithItsReference) {
  const auto result =
      tilepilot({"export", candidate("good_three_parts"), "-r", model("three_parts"), "-o", "out", "--name", "parts"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("parts_affine: `affine`, line 10 of good_three_parts.py, launched in line 40\n"),
                    HasSubstr("parts_waves: "), Not(HasSubstr("parts_run_model: "))));
  const std::string left_out =
      "`parts_run_model`: line 40 of good_three_parts.py: `aten::softmax` runs there, outside of kernels";
  EXPECT_THAT(result.out, HasSubstr("left out: " + left_out));
  EXPECT_THAT(text_of(folder_ / "out/README.md"), HasSubstr("- " + left_out));
  EXPECT_THAT(example("out", "plain"), AllOf(HasSubstr("affine Y "), HasSubstr("waves Y ")));
}

TEST_F(Exports, AModelInAnotherType) {
  const std::string reference = put("model.py",
                                    "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
                                    "    def __init__(self):\n        super().__init__()\n"
                                    "        self.scale = nn.Parameter(torch.rand(32))\n\n"
                                    "    def forward(self, x):\n        return x * 2 * self.scale\n\n\n"
                                    "def get_inputs():\n    return [torch.randn(16, 32)]\n\n\n"
                                    "def get_init_inputs():\n    return []\n");
  const std::string file = put("fast.py", std::string(kKernels) +
                                              "class ModelNew(nn.Module):\n    def __init__(self):\n"
                                              "        super().__init__()\n"
                                              "        self.scale = nn.Parameter(torch.rand(32))\n\n"
                                              "    def forward(self, x):\n"
                                              "        return double(32, dtype=\"float16\")(x)\n");
  const auto result = tilepilot({"export", file, "-r", reference, "-o", "out", "--dtype", "fp16"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(text_of(folder_ / "out/fast.h"),
              AllOf(HasSubstr("//   x: float16[16, 32], read\n"), HasSubstr("int fast_run_model(const uint16_t* x, ")));
}

// Why there is no function for the whole model. Lines count from the first one of forward's body.
struct Obstacle {
  const char* name;
  const char* body;
  const char* why;
};
class ExportObstacles : public Exports, public ::testing::WithParamInterface<Obstacle> {};

TEST_P(ExportObstacles, AreTold) {
  const auto result = tilepilot({"export", model_file(GetParam().body), "-o", "out"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr(std::string("left out: `fast_run_model`: ") + GetParam().why),
                                HasSubstr("fast_affine: ")));
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, ExportObstacles,
    ::testing::Values(
        Obstacle{"operator_between", "return affine(M, N, 2.0)(x + 1, self.scale)",
                 "line 52 of fast.py: `aten::add` runs there, outside of kernels"},
        Obstacle{"value_on_the_host", "n = x[0, 0].item()\n        return affine(M, N, 2.0)(x, self.scale)",
                 "line 52 of fast.py: `aten::item` runs there"},
        Obstacle{"kept_tensor", "return affine(M, N, 2.0)(self.kept, self.scale)",
                 "line 52 of fast.py: a kernel uses a tensor that is neither an input nor a weight"},
        Obstacle{"calls_that_differ", "self.calls += 1\n        return affine(M, N, float(self.calls))(x, self.scale)",
                 "line 53 of fast.py: a second call launches something else than the first one"},
        Obstacle{"strided_view", "return affine(M, N, 2.0)(x, self.scale).t()",
                 "`forward` returns a view that is not contiguous"},
        Obstacle{"part_of_a_tensor", "return affine(M, N, 2.0)(x, self.scale)[2:4]",
                 "line 52 of fast.py: a kernel is given memory of which an input, a weight or an output is a part"},
        Obstacle{"same_output_twice", "y = affine(M, N, 2.0)(x, self.scale)\n        return y, y",
                 "`forward` returns memory of an input, of a weight or of another output"},
        Obstacle{"unwritten_output", "affine(M, N, 2.0)(x, self.scale)\n        return torch.empty(3, 4)",
                 "no kernel writes an output of `forward`"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Exports, ValuesThatAreNoTensorsAreTold) {
  const auto result =
      tilepilot({"export", model_file("return {\"y\": affine(M, N, 2.0)(x, self.scale), \"n\": 3}"), "-o", "out"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("fast_run_model: "),
                                HasSubstr("left out: `fast_run_model`: `output_n` is `3`, as it was in the run")));
}

// A command line that is refused, with its exit code and a part of the message.
struct Refused {
  const char* name;
  std::vector<std::string> arguments;
  int exit_code;
  const char* message;
};
class ExportRefusals : public Exports, public ::testing::WithParamInterface<Refused> {
 protected:
  ExportRefusals() {
    put("kernels.py", kKernels);
    put("nothing.py", "x = 1\n");
    put("broken.py", "def f(:\n");
    put("m.py", kKernels);
    put("file", "mine");
    put("silent.py", model_file_text("return x"));
    put("silent_kernel.py",
        std::string(kKernels) +
            "@tilelang.jit\ndef nothing(N):\n    @T.prim_func\n"
            "    def main(X: T.Tensor((N,), \"float32\")):\n        with T.Kernel(1, threads=32) as b:\n"
            "            t = T.alloc_fragment((N,), \"float32\")\n            T.copy(X, t)\n\n    return main\n");
    fs::create_directories(folder_ / "taken");
    put("taken/README.md", "mine");
  }
  static std::string model_file_text(const std::string& body) {
    std::string text = std::string(kKernels) + kModel;
    return text.replace(text.find("BODY"), 4, body);
  }
};

TEST_P(ExportRefusals, AreExplained) {
  std::vector<std::string> arguments = {"export"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const auto result = tilepilot(arguments);
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << all(result);
  EXPECT_THAT(all(result), HasSubstr(GetParam().message));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_EQ(text_of(folder_ / "taken/README.md"), "mine");
}

const std::string kAffine = "affine(16, 24, 2.0)";
INSTANTIATE_TEST_SUITE_P(
    Inputs, ExportRefusals,
    ::testing::Values(
        Refused{"no_file", {"missing.py", "-o", "out"}, 2, "cannot read `missing.py`"},
        Refused{"no_folder", {"kernels.py"}, 2, "--output is required"},
        Refused{"no_kernel", {"nothing.py", "-o", "out"}, 1, "`nothing.py` stages no tile program"},
        Refused{"sizes_left_open", {"kernels.py", "-o", "out"}, 1, "name the sizes with a call: `affine(...)`"},
        Refused{"no_python", {"broken.py", "-o", "out"}, 1, "[syntax_error]"},
        Refused{"no_such_name", {"kernels.py", "-o", "out", "--call", "matmul(3)"}, 1, "[unknown_name]"},
        Refused{"call_without_kernel",
                {"kernels.py", "-o", "out", "--call", "1 + 1"},
                1,
                "the call stages no tile program"},
        Refused{
            "no_output", {"silent_kernel.py", "-o", "out", "--call", "nothing(32)"}, 1, "writes none of its tensors"},
        Refused{"model_without_kernels", {"silent.py", "-o", "out"}, 1, "`ModelNew.forward` launches no kernel"},
        Refused{"model_without_class",
                {"kernels.py", "-r", TILEPILOT_SOURCE_DIR "/tests/cli/models/three_parts.py", "-o", "out"},
                1,
                "defines no `ModelNew`"},
        Refused{"no_reference", {"kernels.py", "-r", "missing.py", "-o", "out"}, 2, "missing.py"},
        Refused{"name_for_no_c", {"kernels.py", "-o", "out", "--name", "a-b", "--call", kAffine}, 2, "`--name a_b`"},
        Refused{"name_of_a_header",
                {"kernels.py", "-o", "out", "--name", "stdint", "--call", kAffine},
                2,
                "`stdint` is the name of a library or header"},
        Refused{"name_of_the_code_around",
                {"kernels.py", "-o", "out", "--name", "tp", "--call", kAffine},
                2,
                "`--name xtp`"},
        Refused{"keyword", {"kernels.py", "-o", "out", "--name", "class", "--call", kAffine}, 2, "`class` cannot name"},
        Refused{"name_of_the_system",
                {"m.py", "-o", "out", "--call", kAffine},
                2,
                "`m` is the name of a library or header"},
        Refused{"emulator",
                {"kernels.py", "-o", "out", "--call", kAffine, "--target", "emulate:sm_80"},
                2,
                "not for the emulator"},
        Refused{"unknown_target", {"kernels.py", "-o", "out", "--call", kAffine, "--target", "metal"}, 2, "metal"},
        Refused{"unused_option",
                {"kernels.py", "-o", "out", "--call", kAffine, "--seed", "1"},
                2,
                "`export` has no use for `--seed`"},
        Refused{
            "scale_without_model", {"kernels.py", "-o", "out", "--call", kAffine, "--scale", "1/4"}, 2, "`--scale`"},
        Refused{"file_for_a_folder", {"kernels.py", "-o", "file", "--call", kAffine}, 2, "it is a file"},
        Refused{"foreign_files", {"kernels.py", "-o", "taken", "--call", kAffine}, 2, "no export wrote it as it is"},
        Refused{"unwritable",
                {"kernels.py", "-o", "/proc/self/out", "--call", kAffine},
                2,
                "cannot write `/proc/self/out`"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Exports, fail_WithoutACompiler) {
  const std::string file = put("kernels.py", kKernels);
  const auto result = tilepilot({"export", file, "-o", "out", "--call", kAffine}, {"PATH=/nowhere"});
  EXPECT_EQ(result.exit_code, 3) << all(result);
  EXPECT_THAT(all(result), HasSubstr("no C++ compiler on PATH"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Exports, AgainIntoTheSameFolder) {
  const std::string file = put("kernels.py", kKernels);
  ASSERT_EQ(tilepilot({"export", file, "-o", "out/", "--call", kAffine}).exit_code, 0);
  put("out/mine", "kept");
  const auto again = tilepilot({"export", file, "-o", "out", "--name", "other", "--call", "double(32)"});
  ASSERT_EQ(again.exit_code, 0) << all(again);
  EXPECT_TRUE(fs::exists(folder_ / "out/libother.so"));
  EXPECT_FALSE(fs::exists(folder_ / "out/libkernels.so"));
  EXPECT_EQ(text_of(folder_ / "out/mine"), "kept");
}

// LibTorch lies where the tests' Python has it.
TEST_F(Exports, TorchExampleRuns) {
  const auto where = run({TILEPILOT_PYTHON, "-c", "import torch; print(torch.utils.cmake_prefix_path, end='')"});
  if (where.exit_code != 0) GTEST_SKIP() << "no PyTorch for " << TILEPILOT_PYTHON;
  const auto result = tilepilot({"export", model_file(kTwoKernels), "-o", "out"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_EQ(example("out", "with_torch", where.out),
            "affine Y [16, 24]\naffine_2 Y [16, 24]\nrun_model output [8, 2, 24]\n");
}

}  // namespace
}  // namespace tilepilot
