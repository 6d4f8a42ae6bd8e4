// Diagnostics of compiling, caching and launching, whose causes lie outside any source file.
#include <fstream>

#include "compiler/diagnostics/render.h"
#include "compiler/ir/text.h"
#include "compiler/runtime/kernel.h"
#include "compiler/runtime/kernel_cache.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;

class Toolchain : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tilepilot-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A compiler made of a line of shell, in which $output is the file it should write.
  std::string fake_compiler(const std::string& line) const {
    fs::path path = folder_ / "fake-c++";
    std::ofstream(path) << "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done; output=$2\n" << line << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
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

  void expect(const std::string& kind, std::string text) const {
    EXPECT_NE(text.find("[" + kind + "]"), std::string::npos) << text;
    for (size_t at; (at = text.find(folder_.string())) != std::string::npos;)
      text.replace(at, folder_.string().size(), "FOLDER");
    // Names that differ from run to run.
    for (size_t at = 0; (at = text.find("FOLDER/cache/", at)) != std::string::npos; at += 13) {
      size_t end = text.find_first_of("`:", at + 13);
      text.replace(at + 13, end - at - 13, "...");
    }
    expect_golden("diagnostics/golden/" + kind + ".txt", text);
  }

  fs::path folder_;
  SourceMap sources_;
};

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
  std::ofstream(folder_ / "file") << "a file where a folder is wanted";
  auto workshop = runtime::KernelCache(folder_ / "file").workshop();
  ASSERT_FALSE(workshop.ok());
  expect("cache_unwritable", render(sources_, workshop.error()));
}

TEST_F(Toolchain, DegradedCache) {
  std::ofstream(folder_ / "file") << "a file where a folder is wanted";
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
  ASSERT_FALSE(status.ok());
  expect("bad_kernel_argument", render(sources_, status.error()));
}

}  // namespace
}  // namespace tilepilot::testing
