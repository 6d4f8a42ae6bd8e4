// Diagnostics of compiling, caching and launching, whose causes lie outside any source file.
#include "compiler/ir/text/text.h"
#include "compiler/runtime/kernel.h"
#include "compiler/runtime/kernel_cache.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::testing {
namespace {

class Toolchain : public DiagnosticTest {
 protected:
  // A compiler made of a line of shell, in which $output is the file it should write.
  std::string fake_compiler(const std::string& line) const {
    return script("fake-c++", "while [ \"$1\" != -o ]; do shift; done; output=$2\n" + line);
  }

  ir::Program program() {
    int32_t file =
        sources_.add("double.ir", "program double(x: float32[8]) { kernel bx in 1 threads 32 { x[0] = x[0] + x[0] } }");
    DiagnosticList errors;
    auto program = ir::read_text(sources_, file, errors);
    EXPECT_TRUE(program) << render(sources_, errors);
    return program ? *std::move(program) : ir::Program{};
  }

  std::string compile(const runtime::ToolchainOptions& options) {
    DiagnosticList all;
    auto kernel = runtime::cpu_backend(options)->compile(program(), all);
    std::string text = render(sources_, all);
    return kernel.ok() ? text : text + render(sources_, kernel.error());
  }

  // Names in the cache differ from run to run.
  void expect(const std::string& kind, std::string text) const {
    std::string cache = (folder_ / "cache").string() + "/";
    for (size_t at = 0; (at = text.find(cache, at)) != std::string::npos; at += cache.size()) {
      size_t begin = at + cache.size();
      text.replace(begin, text.find_first_of("`:", begin) - begin, "...");
    }
    expect_diagnostic(kind, text);
  }
};

TEST_F(Toolchain, RolesThatWaitForEachOther) {
  const int32_t file = sources_.add("waiting.ir", R"(program waiting(x: float32[16]) {
  kernel bx in 2 threads 256 {
    barrier full: uint64[1] arrivals [128]
    roles 0 {
      on full[0] wait 0
      fill x = 0.0
    }
    roles 1 {
      on full[0] wait 1
      on full[0] wait 0
      on full[0] arrive
    }
  }
}
)");
  DiagnosticList errors;
  const auto program = ir::read_text(sources_, file, errors);
  ASSERT_TRUE(program) << render(sources_, errors);
  const auto kernel = runtime::cpu_backend({})->compile(*program, errors);
  ASSERT_TRUE(kernel.ok()) << render(sources_, kernel.error());
  float data[16] = {};
  const Status status =
      (*kernel)->launch({runtime::TensorView{data, ir::kFloat32, {16}, {1}}}, runtime::thread_pool(1), {});
  ASSERT_FALSE(status.ok());
  expect_diagnostic("deadlock", render(sources_, status.error()));
}

TEST_F(Toolchain, MissingCompiler) { expect("compiler_missing", compile({folder_ / "no-such-compiler", {}, {}})); }

TEST_F(Toolchain, FailingCompiler) {
  std::string compiler = fake_compiler("echo 'kernel.cpp:1: error: no such thing' >&2; exit 1");
  expect("compiler_failed", compile({compiler, folder_ / "cache", {}}));
}

TEST_F(Toolchain, BrokenLibrary) {
  std::string compiler = fake_compiler("echo 'this is no library' >\"$output\"");
  expect("load_failed", compile({compiler, folder_ / "cache", {}}));
}

TEST_F(Toolchain, UnwritableCache) {
  write("file", "a file where a folder is wanted");
  auto workshop = runtime::KernelCache(folder_ / "file").workshop();
  expect_diagnostic("cache_unwritable", workshop);
}

TEST_F(Toolchain, DegradedCache) {
  write("file", "a file where a folder is wanted");
  expect("cache_degraded", compile({{}, folder_ / "file", {}}));
}

TEST_F(Toolchain, BadArgument) {
  DiagnosticList warnings;
  auto kernel = runtime::cpu_backend({})->compile(program(), warnings);
  ASSERT_TRUE(kernel.ok());
  float data[4] = {};
  runtime::TensorView four{data, ir::kFloat32, {4}, {1}};
  Span call{sources_.add("call.py", "double(torch.ones(4))\n"), 0, 21};
  Status status = (*kernel)->launch({four}, runtime::thread_pool(1), call);
  expect_diagnostic("bad_kernel_argument", status);
}

}  // namespace
}  // namespace tilepilot::testing
