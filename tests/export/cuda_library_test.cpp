// Libraries for a GPU, where there is none: an NVRTC that makes no code, and a driver that writes down what it is
// asked.
#include <fmt/format.h>

#include <fstream>

#include "compiler/runtime/cuda/cuda_kernel.h"
#include "tests/export/export_fixture.h"
#include "tests/fake_library.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The fake driver, whose launches and descriptors go to the file that DRIVER_LOG names.
std::string writing_driver(int wait_status = 0) {
  std::string text = fake_driver_source(13000, wait_status);
  const auto replace = [&](const std::string& old, const std::string& fresh) {
    const size_t at = text.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    text.replace(at, text.find('\n', at) - at, fresh);
  };
  replace("SUCCEEDS(cuTensorMapEncodeTiled)", R"(
#include <cstdio>
#include <cstdlib>
static void note(const char* text) { FILE* log = fopen(getenv("DRIVER_LOG"), "a"); fputs(text, log); fclose(log); }
extern "C" int cuCtxGetDevice(int* device) { *device = 0; return 0; }
extern "C" int cuTensorMapEncodeTiled(void*, int type, unsigned rank, void* data, const unsigned long long* extents,
    const unsigned long long* strides, const unsigned* box, const unsigned*, int, int swizzle, int, int) {
  char text[200];
  snprintf(text, sizeof text, "map of %p: type %d, rank %u, %llu x %llu, stride %llu, box %u x %u\n", data, type, rank,
           extents[0], extents[1], strides[0], box[0], box[1]);
  note(text);
  return 0;
}
)");
  const std::string loads = "SUCCEEDS(cuModuleLoadData)";
  text.replace(text.find(loads), loads.size(), "");
  text += R"(
// As many images as the environment says are for other devices.
extern "C" int cuModuleLoadData(void** module, const void*) {
  static int refused = 0;
  *module = 0;
  return getenv("REFUSED_IMAGES") && refused++ < atoi(getenv("REFUSED_IMAGES")) ? 209 : 0;
}
)";
  replace("extern \"C\" int cuLaunchKernelEx(", R"(
extern "C" int cuLaunchKernelEx(const Configuration* c, void*, void** parameters, void**) {
  char text[200];
  snprintf(text, sizeof text, "launch %u x %u x %u, threads %u, stream %p, first parameter %p\n", c->grid[0],
           c->grid[1], c->grid[2], c->threads[0], c->stream, *(void**)parameters[0]);
  note(text);
  for (int k = 0; getenv("ALL_PARAMETERS") && k < atoi(getenv("ALL_PARAMETERS")); ++k) {
    snprintf(text, sizeof text, "  %lld\n", *(long long*)parameters[k]);
    note(text);
  }
  if (getenv("ALL_PARAMETERS")) {
    snprintf(text, sizeof text, "  %u bytes, %u attributes, %d %d %d\n", c->shared_bytes, c->count,
             c->count ? c->attributes[0] : 0, c->count ? c->attributes[2] : 0, c->count ? c->attributes[3] : 0);
    note(text);
  }
  return getenv("LAUNCH_FAILS") ? 719 : 0;
}
)");
  return text;
}

class CudaLibrary : public ExportTest {
 protected:
  void export_for(const std::vector<std::string>& programs, const std::string& target) {
    options_.nvrtc.library = fake_library(folder_, "libnvrtc.so", fake_nvrtc_source(13, 0, true));
    write(library_of(programs, target));
  }

  // Compiles the program that calls the library, and runs it with a driver.
  runtime::ProcessResult run_with_driver(const std::string& program, const std::vector<std::string>& environment = {}) {
    fake_library(folder_, "libcuda.so.1", writing_driver());
    std::ofstream(folder_ / "caller.cpp") << program;
    const auto compiled = run({"c++", "-std=c++17", "-Idemo", "-o", "caller", "caller.cpp", "-Ldemo", "-ldemo"});
    EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
    std::vector<std::string> command = {"/usr/bin/env",
                                        "LD_LIBRARY_PATH=" + (folder_ / "demo").string() + ":" + folder_.string(),
                                        "DRIVER_LOG=" + log().string()};
    command.insert(command.end(), environment.begin(), environment.end());
    command.push_back((folder_ / "caller").string());
    return run(command);
  }
  std::filesystem::path log() const { return folder_ / "driver.log"; }
};

std::string caller(const std::string& body) {
  return "#include <cstdio>\n#include \"demo.h\"\nint main() {\n  " + body +
         "\n  std::printf(\"%d %s\\n\", status, demo_last_error());\n}\n";
}

TEST_F(CudaLibrary, LaunchesThroughTheDriver) {
  export_for({kScale}, "cuda:sm_80");
  const auto ran =
      run_with_driver(caller("int status = demo_scale((float*)4096, (float*)8192, 2, 1000, 0, (void*)48);"));
  EXPECT_EQ(ran.out, "0 \n");
  EXPECT_EQ(read_text(log()), "launch 16 x 1 x 1, threads 64, stream 0x30, first parameter 0x1000\n");
}

TEST_F(CudaLibrary, EncodesDescriptorsAtTheCall) {
  export_for({kMatmul}, "cuda:sm_90a");
  const auto ran =
      run_with_driver(caller("int status = demo_matmul((float*)4096, (float*)8192, (float*)16384, 0, 0);"));
  EXPECT_EQ(ran.out, "0 \n");
  EXPECT_EQ(read_text(log()),
            "map of 0x1000: type 2, rank 2, 64 x 64, stride 256, box 32 x 32\n"
            "map of 0x2000: type 2, rank 2, 64 x 64, stride 256, box 32 x 32\n"
            "launch 2 x 2 x 1, threads 128, stream (nil), first parameter 0x1000\n");
}

// Addresses that are no multiples of 16 bytes have code of their own, without TMA.
TEST_F(CudaLibrary, HasCodeForOtherTensors) {
  export_for({kMatmul}, "cuda:sm_90a");
  const auto ran =
      run_with_driver(caller("int status = demo_matmul((float*)4100, (float*)8192, (float*)16384, 0, 0);"));
  EXPECT_EQ(ran.out, "0 \n");
  EXPECT_THAT(read_text(log()), AllOf(HasSubstr("first parameter 0x1004"), Not(HasSubstr("map of"))));
}

TEST_F(CudaLibrary, PassesWorkspaces) {
  export_for({kReverse}, "cuda:sm_80");
  const auto ran =
      run_with_driver(caller("int status = demo_reverse((float*)4096, (float*)8192, (void*)65537, 0);\n"
                             "  if (demo_reverse_workspace_size() != 2048 + 255) status = 99;"));
  EXPECT_EQ(ran.out, "0 \n");
  EXPECT_THAT(read_text(log()), ::testing::ContainsRegex("launch 512 .*\nlaunch 512"));
}

TEST_F(CudaLibrary, fail_LaunchAndArguments) {
  export_for({kScale}, "cuda:sm_80");
  auto ran =
      run_with_driver(caller("int status = demo_scale((float*)4096, (float*)8192, 2, 64, 0, 0);"), {"LAUNCH_FAILS=1"});
  EXPECT_EQ(ran.out,
            "5 `demo_scale`: the CUDA driver's `cuLaunchKernelEx` failed: CUDA_ERROR_LAUNCH_FAILED (unspecified launch "
            "failure)\n");
  ran = run_with_driver(caller("int status = demo_scale(0, (float*)8192, 2, 64, 0, 0);"));
  EXPECT_EQ(ran.out, "1 `demo_scale`: `x` is a null pointer\n");
}

// Code for 8.0 is there for 9.0 as well, which does not load the other one.
TEST_F(CudaLibrary, LoadsTheImageForTheDevice) {
  export_for({kScale}, "cuda:sm_80");
  const std::string call = caller("int status = demo_scale((float*)4096, (float*)8192, 2, 64, 0, 0);");
  EXPECT_EQ(run_with_driver(call, {"REFUSED_IMAGES=1"}).out, "0 \n");
  EXPECT_THAT(run_with_driver(call, {"REFUSED_IMAGES=2"}).out,
              AllOf(HasSubstr("5 `demo_scale`: the CUDA driver's `cuModuleLoadData` failed"),
                    HasSubstr("; the code is for sm_80 and sm_90\n")));
  export_for({kMatmul}, "cuda:sm_90a");
  EXPECT_THAT(run_with_driver(caller("int status = demo_matmul((float*)4096, (float*)8192, (float*)16384, 0, 0);"),
                              {"REFUSED_IMAGES=1"})
                  .out,
              HasSubstr("; the code is for sm_90a\n"));
}

TEST_F(CudaLibrary, fail_WithoutADriver) {
  export_for({kScale}, "cuda:sm_80");
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW); driver != nullptr) {
    dlclose(driver);
    GTEST_SKIP() << "there is a GPU";
  }
  const LoadedLibrary library(object());
  float x[64] = {};
  using Scale = int(const float*, float*, float, int64_t, void*, void*);
  EXPECT_EQ(library.function<Scale>("demo_scale")(x, x, 2, 64, nullptr, nullptr), 4);
  EXPECT_THAT(library.last_error(), HasSubstr("`demo_scale`: there is no CUDA driver: libcuda.so.1"));
}

TEST_F(CudaLibrary, fail_WithoutNvrtc) {
  options_.nvrtc.library = folder_ / "nowhere.so";
  DiagnosticList warnings;
  const auto files = exporting::package_files(library_of({kScale}, "cuda:sm_80"), sources_, options_, warnings);
  ASSERT_FALSE(files.ok());
  EXPECT_EQ(files.error().kind, DiagnosticKind::nvrtc_missing);
}

// A persistent kernel, with a producer warpgroup.
constexpr const char* kLargeMatmul =
    "program large(A: float16[4096, 2048], B: float16[2048, 4096], C: float16[4096, 4096]) {\n"
    "  kernel bx, by in 32, 32 threads 256 {\n    shared a: float16[128, 64]\n    shared b: float16[64, 128]\n"
    "    fragment c: float32[128, 128]\n    fill c = 0.0\n    pipelined k in 32 stages 3 {\n"
    "      copy A[by * 128 : +128, k * 64 : +64] -> a\n      copy B[k * 64 : +64, bx * 128 : +128] -> b\n"
    "      gemm c += a @ b\n    }\n    copy c -> C[by * 128 : +128, bx * 128 : +128]\n  }\n}\n";
// Rows and extents that the call decides, by TMA.
constexpr const char* kRows =
    "program rows<n: int32, m: int32>(x: float32[n, m], y: float32[n, m], factor: float32, shift: int32) {\n"
    "  kernel b, c in (n + 31) // 32, (m + 31) // 32 threads 128 {\n    shared t: float32[32, 32]\n"
    "    pipelined k in 1 stages 2 {\n      copy x[b * 32 : +32, c * 32 : +32] -> t\n"
    "      parallel i, j in 32, 32 {\n        y[b * 32 + i, c * 32 + j] = t[i, j] * factor\n      }\n    }\n  }\n}\n";

// TMA of a tensor that the call decides the extent of.
constexpr const char* kTall =
    "program tall<m: int32>(A: float16[m, 256], B: float16[256, 128], C: float16[m, 128]) {\n"
    "  kernel bx, by in 1, (m + 127) // 128 threads 256 {\n    shared a: float16[128, 64]\n"
    "    shared b: float16[64, 128]\n    fragment c: float32[128, 128]\n    fill c = 0.0\n"
    "    pipelined k in 4 stages 3 {\n      copy A[by * 128 : +128, k * 64 : +64] -> a\n"
    "      copy B[k * 64 : +64, bx * 128 : +128] -> b\n      gemm c += a @ b\n    }\n"
    "    copy c -> C[by * 128 : +128, bx * 128 : +128]\n  }\n}\n";

constexpr const char* kPairs =
    "program pairs(x: float32[512], y: float32[512]) {\n  kernel b in 8 threads 64 cluster 2 {\n"
    "    fragment t: float32[64]\n    copy x[b * 64 : +64] -> t\n    parallel i in 64 {\n"
    "      t[i] = t[i] + 1.0\n    }\n    copy t -> y[b * 64 : +64]\n  }\n}\n";

struct Launched {
  const char* name;
  const char* text;
  bool by_tma;
  int64_t extent;  // of symbols
};
class SameLaunches : public CudaLibrary, public ::testing::WithParamInterface<Launched> {
 protected:
  // As our own runtime launches the program, with the same driver.
  std::string launched_by_the_runtime(const ir::Program& program, const std::vector<runtime::Argument>& arguments) {
    const fs::path own = folder_ / "own.log";
    setenv("DRIVER_LOG", own.c_str(), 1);
    setenv("ALL_PARAMETERS", parameters_.c_str(), 1);
    runtime::cuda::CudaOptions options;
    options.nvrtc.library = folder_ / "libnvrtc.so";
    options.device.library = fake_library(folder_, "libown.so", writing_driver());
    options.architecture = "sm_90a";
    DiagnosticList warnings;
    {
      const auto backend = runtime::cuda::cuda_backend(options);
      const auto kernel = backend->compile(program, warnings);
      EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : render(kernel.error()));
      const Status launched = kernel.ok() ? (*kernel)->launch(arguments, {}, {}) : Status();
      EXPECT_TRUE(launched.ok()) << (launched.ok() ? "" : render(launched.error()));
    }
    unsetenv("DRIVER_LOG");
    unsetenv("ALL_PARAMETERS");
    return read_text(own);
  }
  std::string parameters_;
};

TEST_P(SameLaunches, AsOurRuntime) {
  const auto& [name, text, by_tma, extent] = GetParam();
  export_for({text}, "cuda:sm_90a");
  const ir::Program program = parse(text);
  std::vector<runtime::Argument> arguments;
  std::string call = fmt::format("int status = demo_{}(", program.name), extents;
  int64_t address = 0;
  for (const auto& parameter : program.parameters) {
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) {
      runtime::TensorView view{reinterpret_cast<void*>(address += 1 << 20), (*buffer)->type, {}, {}};
      for (const ir::Expr& size : (*buffer)->shape) view.shape.push_back(ir::constant_int(size).value_or(extent));
      view.strides.assign(view.shape.size(), 1);
      for (size_t axis = view.shape.size(); axis-- > 1;) view.strides[axis - 1] = view.strides[axis] * view.shape[axis];
      call += fmt::format("({}*){}, ", (*buffer)->type == ir::kFloat16 ? "uint16_t" : "float", address);
      arguments.emplace_back(view);
    } else if (std::get<ir::Var>(parameter)->type.is_float()) {
      call += "2.5f, ";
      arguments.emplace_back(2.5);
    } else {
      call += "-7, ";
      arguments.emplace_back(int64_t{-7});
    }
  }
  for (size_t k = 0; k < program.symbols.size(); ++k) call += fmt::format("{}, ", extent);
  parameters_ = std::to_string(program.parameters.size() + program.symbols.size());
  const auto ran = run_with_driver(caller(call + "0, 0);"), {"ALL_PARAMETERS=" + parameters_});
  EXPECT_EQ(ran.out, "0 \n");
  const std::string expected = launched_by_the_runtime(program, arguments);
  EXPECT_EQ(expected.find("launch ") != std::string::npos, extent > 0 || program.symbols.empty()) << expected;
  const bool loads_by_tma = expected.find("map of") != std::string::npos;
  EXPECT_EQ(loads_by_tma, expected.find("launch ") != std::string::npos && by_tma) << expected;
  EXPECT_EQ(read_text(log()), expected);
}

INSTANTIATE_TEST_SUITE_P(Programs, SameLaunches,
                         ::testing::Values(Launched{"scale", kScale, false, 1024}, Launched{"matmul", kMatmul, true, 0},
                                           Launched{"large", kLargeMatmul, true, 0},
                                           Launched{"rows", kRows, false, 256}, Launched{"tall", kTall, true, 1000},
                                           Launched{"empty", kTall, true, 0}, Launched{"cluster", kPairs, false, 0}),
                         [](const auto& info) { return info.param.name; });

TEST_F(CudaLibrary, ExamplesRun) {
  export_for({kScale, kReverse, kMatmul}, "cuda:sm_90a");
  fake_library(folder_, "libcuda.so.1", writing_driver());
  ASSERT_EQ(run({"cmake", "-S", "demo/examples", "-B", "built"}).exit_code, 0);
  const auto built = run({"cmake", "--build", "built", "--target", "plain"});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const auto ran = run({"/usr/bin/env", "LD_LIBRARY_PATH=" + folder_.string(), "DRIVER_LOG=" + log().string(),
                        (folder_ / "built/plain").string()});
  EXPECT_EQ(ran.out, "scale y 0\nreverse y 0\nmatmul C 0\n") << ran.err;  // the driver copies nothing
}

}  // namespace
}  // namespace tilepilot::testing
