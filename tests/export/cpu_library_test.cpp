// Libraries for the processor: what they compute, what they refuse, and what else a program may do with them.
#include <sys/wait.h>

#include <atomic>
#include <set>
#include <sstream>
#include <thread>

#include "compiler/export/c_names.h"
#include "tests/export/export_fixture.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

using exporting::ModelLaunch;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Scale = int(const float*, float*, float, int64_t, void*, void*);
using Unary = int(const float*, float*, void*, void*);
using Wild = int(const int64_t*, float*, void*, void*);
using Size = int64_t();

class CpuLibrary : public ExportTest {
 protected:
  void SetUp() override {
    ExportTest::SetUp();
    write(library_of({kScale, kReverse, kWild, kWaves}));
    library_ = std::make_unique<LoadedLibrary>(object());
  }
  void TearDown() override {
    library_.reset();
    ExportTest::TearDown();
  }
  std::unique_ptr<LoadedLibrary> library_;
};

void expect_interpreted(const char* text, std::vector<runtime::Argument> arguments, const Array& got, Array& expected) {
  const auto fault = interpret::run(parse(text), to_interpret(arguments));
  ASSERT_FALSE(fault) << fault->message;
  EXPECT_EQ(got.bytes, expected.bytes);
}

TEST_F(CpuLibrary, ComputesWhatTheInterpreterDoes) {
  for (const int64_t n : {0, 1, 64, 1000}) {
    Array x(ir::kFloat32, {n}), y(ir::kFloat32, {n}), expected(ir::kFloat32, {n});
    for (int64_t k = 0; k < n; ++k) x.as<float>()[k] = static_cast<float>(k % 17);
    ASSERT_EQ(library_->function<Scale>("demo_scale")(x.as<float>(), y.as<float>(), 2.0F, n, nullptr, nullptr), 0);
    expect_interpreted(kScale, {x.view(), expected.view(), 2.0}, y, expected);
  }
  Array x(ir::kFloat32, {512}), y(ir::kFloat32, {512}), expected(ir::kFloat32, {512});
  randomize(x, 1);
  std::vector<char> workspace(static_cast<size_t>(library_->function<Size>("demo_reverse_workspace_size")()) + 7);
  EXPECT_GE(workspace.size(), 2048u);
  for (const size_t shift : {0, 1, 7}) {  // workspaces may begin anywhere

    ASSERT_EQ(
        library_->function<Unary>("demo_reverse")(x.as<float>(), y.as<float>(), workspace.data() + shift, nullptr), 0);
    expect_interpreted(kReverse, {x.view(), expected.view()}, y, expected);
  }
}

TEST_F(CpuLibrary, ExportsDocumentedNamesAlone) {
  const auto listed = run({"nm", "-D", "--defined-only", object().string()});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  std::set<std::string> names;
  std::istringstream lines(listed.out);
  for (std::string address, kind, name; lines >> address >> kind >> name;) names.insert(name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "demo_scale", "demo_scale_workspace_size", "demo_reverse", "demo_reverse_workspace_size",
                         "demo_wild", "demo_wild_workspace_size", "demo_waves", "demo_waves_workspace_size",
                         "demo_status_text", "demo_last_error", "demo_set_threads"));
  const auto needed = run({"readelf", "-d", object().string()});
  EXPECT_THAT(needed.out, AllOf(HasSubstr("libdemo.so"), ::testing::Not(HasSubstr("libstdc++"))));
}

TEST_F(CpuLibrary, fail_CheckOfAKernel) {
  const int64_t at[] = {16, 0};
  Array y(ir::kFloat32, {16});
  EXPECT_EQ(library_->function<Wild>("demo_wild")(at, y.as<float>(), nullptr, nullptr), 2);
  EXPECT_THAT(library_->last_error(), AllOf(HasSubstr("`demo_wild`: demo.ir:5: "), HasSubstr("(block 0)")));
  EXPECT_THAT(library_->function<const char*(int)>("demo_status_text")(2), HasSubstr("an index left its tile"));
  const int64_t fine[] = {15, 0};
  EXPECT_EQ(library_->function<Wild>("demo_wild")(fine, y.as<float>(), nullptr, nullptr), 0);
}

TEST_F(CpuLibrary, fail_Arguments) {
  float x[64] = {}, y[64] = {};
  auto* scale = library_->function<Scale>("demo_scale");
  EXPECT_EQ(scale(nullptr, y, 1, 64, nullptr, nullptr), 1);
  EXPECT_EQ(library_->last_error(), "`demo_scale`: `x` is a null pointer");
  EXPECT_EQ(scale(x, y, 1, -1, nullptr, nullptr), 1);
  EXPECT_EQ(library_->last_error(), "`demo_scale`: `n` is -1; it is from 0 to 2147483647");
  EXPECT_EQ(scale(x, y, 1, int64_t{1} << 31, nullptr, nullptr), 1);
  EXPECT_EQ(scale(nullptr, nullptr, 1, 0, nullptr, nullptr), 0);  // no elements
  EXPECT_EQ(library_->function<Unary>("demo_reverse")(x, y, nullptr, nullptr), 1);
  EXPECT_THAT(library_->last_error(), HasSubstr("`workspace` is a null pointer; the call needs 2303 bytes"));
  EXPECT_EQ(library_->function<int(int)>("demo_set_threads")(-1), 1);
}

TEST_F(CpuLibrary, IsCalledByManyThreads) {
  Array x(ir::kFloat32, {256, 512}), expected(ir::kFloat32, {256, 512});
  randomize(x, 3);
  auto* waves = library_->function<Unary>("demo_waves");
  ASSERT_EQ(waves(x.as<float>(), expected.as<float>(), nullptr, nullptr), 0);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Array y(ir::kFloat32, {256, 512});
      for (int call = 0; call < 20; ++call) {
        std::fill(y.bytes.begin(), y.bytes.end(), std::byte{0});
        if (t == 0 && call % 5 == 0) library_->function<int(int)>("demo_set_threads")(1 + call % 4);
        wrong += waves(x.as<float>(), y.as<float>(), nullptr, nullptr) != 0 || y.bytes != expected.bytes;
      }
      // Each thread has its own last error.
      wrong += waves(nullptr, y.as<float>(), nullptr, nullptr) != 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(library_->last_error(), "");
}

// Whatever another thread was doing then.
TEST_F(CpuLibrary, ComputesInAForkedProcess) {
#ifdef TILEPILOT_SANITIZED
  GTEST_SKIP() << "AddressSanitizer keeps locks of its own across a fork";
#endif
  Array x(ir::kFloat32, {256, 512}), expected(ir::kFloat32, {256, 512}), y(ir::kFloat32, {256, 512});
  randomize(x, 3);
  auto* set_threads = library_->function<int(int)>("demo_set_threads");
  set_threads(3);
  auto* waves = library_->function<Unary>("demo_waves");
  ASSERT_EQ(waves(x.as<float>(), expected.as<float>(), nullptr, nullptr), 0);
  std::atomic<bool> ends = false;
  std::thread busy([&] {
    Array other(ir::kFloat32, {256, 512});
    while (!ends) waves(x.as<float>(), other.as<float>(), nullptr, nullptr);
  });
  for (int k = 0; k < 20; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a child that waits for the parent's locks ends by this
      bool right = waves(x.as<float>(), y.as<float>(), nullptr, nullptr) == 0 && y.bytes == expected.bytes;
      right = set_threads(2) == 0 && waves(x.as<float>(), y.as<float>(), nullptr, nullptr) == 0 && right;
      library_.reset();  // its threads are its own
      _exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (status != 0) break;
  }
  ends = true;
  busy.join();
}

TEST_F(CpuLibrary, IsUnloadedWithItsThreads) {
  Array x(ir::kFloat32, {256, 512}), y(ir::kFloat32, {256, 512});
  library_.reset();
  for (int k = 0; k < 5; ++k) {
    const LoadedLibrary library(object());
    library.function<int(int)>("demo_set_threads")(4);
    ASSERT_EQ(library.function<Unary>("demo_waves")(x.as<float>(), y.as<float>(), nullptr, nullptr), 0);
  }
}

TEST_F(CpuLibrary, HeaderIsC) {
  const std::string header = (folder_ / "demo/demo.h").string();
  for (const char* language : {"c", "c++"}) {
    const auto compiled = run({"cc", "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", header});
    EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  }
}

TEST_F(CpuLibrary, IsBuiltAgainFromItsSource) {
  ASSERT_EQ(run({"cmake", "-S", "demo/source", "-B", "again"}).exit_code, 0);
  const auto built = run({"cmake", "--build", "again"});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const LoadedLibrary library(folder_ / "again/libdemo.so");
  Array x(ir::kFloat32, {64}), y(ir::kFloat32, {64}), expected(ir::kFloat32, {64});
  ASSERT_EQ(library.function<Scale>("demo_scale")(x.as<float>(), y.as<float>(), 2.0F, 64, nullptr, nullptr), 0);
  expect_interpreted(kScale, {x.view(), expected.view(), 2.0}, y, expected);
}

// reverse(scale(x, 2)), by way of the workspace.
TEST_F(ExportTest, RunsAWholeModel) {
  exporting::Library library = library_of({kScale, kReverse});
  exporting::Model model;
  const auto tensor = [](const char* name, bool is_written) {
    exporting::Argument argument{exporting::Argument::Kind::tensor, name, ir::kFloat32, {ir::int_imm(512)}};
    argument.is_written = is_written;
    argument.is_read = !is_written;
    return argument;
  };
  model.function = {"run_model", "`ModelNew.forward`", {tensor("x", false), tensor("output", true)}};
  using Memory = ModelLaunch::Memory;
  model.launches = {{0, {Memory{false, 0, 0}, Memory{true, 0, 256}, 2.0, int64_t{512}}, 1},
                    {1, {Memory{true, 0, 256}, Memory{false, 1, 0}}, 2}};
  model.buffer_bytes = 256 + 2048;
  library.model = model;
  write(library);
  const LoadedLibrary loaded(object());
  std::vector<float> x(512), output(512);
  for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k);
  std::vector<char> workspace(static_cast<size_t>(loaded.function<Size>("demo_run_model_workspace_size")()));
  auto* run_model = loaded.function<Unary>("demo_run_model");
  ASSERT_EQ(run_model(x.data(), output.data(), workspace.data(), nullptr), 0) << loaded.last_error();
  for (size_t k = 0; k < x.size(); ++k) ASSERT_EQ(output[k], 2 * (x[511 - k] * 2 + 1)) << k;
  EXPECT_EQ(run_model(x.data(), nullptr, workspace.data(), nullptr), 1);
  EXPECT_EQ(loaded.last_error(), "`demo_run_model`: `output` is a null pointer");
  EXPECT_EQ(run_model(x.data(), output.data(), nullptr, nullptr), 1);
}

// Programs of every kind in one library, whose example calls them all.
TEST_F(ExportTest, HoldsKernelsOfEveryKind) {
  std::vector<std::string> programs;
  for (const std::string& name : stems_in("cpu/cases", ".ir"))
    programs.push_back(read_text(tests_path("cpu/cases/" + name + ".ir")));
  exporting::Library library = library_of(programs);
  exporting::UniqueNames names;
  for (exporting::Kernel& kernel : library.kernels) kernel.function.name = names.of(kernel.function.name);
  write(library);
  ASSERT_EQ(run({"cmake", "-S", "demo/examples", "-B", "built"}).exit_code, 0);
  const auto built = run({"cmake", "--build", "built", "--target", "plain"});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const auto ran = run({(folder_ / "built/plain").string()});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  for (const exporting::Kernel& kernel : library.kernels) EXPECT_THAT(ran.out, HasSubstr(kernel.function.name + " "));
}

TEST_F(ExportTest, WorkspacesThatNobodyHasAreTold) {
  write(
      library_of({"program cube<m: int32>(x: float32[m], y: float32[m]) {\n"
                  "  workspace w: float32[m, m, m]\n"
                  "  kernel b in m threads 1 {\n    w[b, 0, 0] = x[b]\n    y[b] = w[b, 0, 0]\n  }\n}\n"}));
  const LoadedLibrary library(object());
  const auto size = library.function<int64_t(int64_t)>("demo_cube_workspace_size");
  EXPECT_GE(size(2), 32);
  EXPECT_LT(size(2), 4096);
  EXPECT_EQ(size(-1), -1);
  EXPECT_EQ(size(int64_t{1} << 31), -1);
  EXPECT_EQ(size(INT32_MAX), INT64_MAX);
  float x = 1, y = 0;
  const auto cube = library.function<int(const float*, float*, int64_t, void*, void*)>("demo_cube");
  EXPECT_EQ(cube(&x, &y, INT32_MAX, &y, nullptr), 3);
  EXPECT_EQ(cube(&x, &y, -1, &y, nullptr), 1);
}

TEST_F(ExportTest, fail_KernelWithoutOutput) {
  const ir::Program program = parse(
      "program none(x: float32[4]) { kernel b in 4 threads 1 { shared s: float32[4] "
      "copy x -> s } }");
  const auto function = exporting::function_of(program, "none", "");
  ASSERT_FALSE(function.ok());
  EXPECT_EQ(function.error().message, "`none` writes none of its tensors: its caller would get nothing");
}

TEST_F(ExportTest, fail_CompilerThatIsMissing) {
  options_.toolchain.compiler = "/nowhere/c++";
  DiagnosticList warnings;
  const auto files = exporting::package_files(library_of({kScale}), sources_, options_, warnings);
  ASSERT_FALSE(files.ok());
  EXPECT_EQ(files.error().kind, DiagnosticKind::compiler_missing);
}

}  // namespace
}  // namespace tilepilot::testing
