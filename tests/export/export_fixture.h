// Libraries exported of programs in the IR's text form, built and loaded.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compiler/export/folder.h"
#include "compiler/export/package.h"
#include "compiler/export/signature.h"
#include "compiler/runtime/process.h"
#include "tests/cpu/kernel_fixture.h"

namespace tilepilot::testing {

// y = x * factor + 1, of any length.
inline constexpr const char* kScale =
    "program scale<n: int32>(x: float32[n], y: float32[n], factor: float32) {\n"
    "  kernel b in (n + 63) // 64 threads 64 {\n    fragment t: float32[64]\n    copy x[b * 64 : +64] -> t\n"
    "    parallel i in 64 {\n      t[i] = t[i] * factor + 1.0\n    }\n    copy t -> y[b * 64 : +64]\n  }\n}\n";
// Two launches that share a workspace.
inline constexpr const char* kReverse =
    "program reverse(x: float32[512], y: float32[512]) {\n  workspace w: float32[512]\n"
    "  kernel b in 512 threads 1 {\n    w[b] = x[b] * 2.0\n  }\n"
    "  kernel b in 512 threads 1 {\n    y[b] = w[511 - b]\n  }\n}\n";
// Leaves its tile where `at` says so.
inline constexpr const char* kWild =
    "program wild(at: int64[2], y: float32[16]) {\n  kernel b in 4 threads 1 {\n    shared s: float32[16]\n"
    "    fill s = 3.0\n    s[at[0]] = 1.0\n    copy s -> y[0 : +16]\n  }\n}\n";
// Enough work for all threads.
inline constexpr const char* kWaves =
    "program waves(x: float32[256, 512], y: float32[256, 512]) {\n  kernel b in 64 threads 128 {\n"
    "    fragment t: float32[4, 512]\n    copy x[b * 4 : +4, 0 : 512] -> t\n    serial k in 6 {\n"
    "      parallel i, j in 4, 512 {\n        t[i, j] = t[i, j] * 0.5 + t[i, j] * t[i, j] * 0.25\n      }\n    }\n"
    "    copy t -> y[b * 4 : +4, 0 : 512]\n  }\n}\n";
// TMA loads its operands.
inline constexpr const char* kMatmul =
    "program matmul(A: float32[64, 64], B: float32[64, 64], C: float32[64, 64]) {\n"
    "  kernel bx, by in 2, 2 threads 128 {\n    shared a: float32[32, 32]\n    shared b: float32[32, 32]\n"
    "    fragment c: float32[32, 32]\n    fill c = 0.0\n    pipelined k in 2 stages 2 {\n"
    "      copy A[by * 32 : +32, k * 32 : +32] -> a\n      copy B[k * 32 : +32, bx * 32 : +32] -> b\n"
    "      gemm c += a @ b\n    }\n"
    "    copy c -> C[by * 32 : +32, bx * 32 : +32]\n  }\n}\n";

class LoadedLibrary {
 public:
  explicit LoadedLibrary(const std::filesystem::path& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~LoadedLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;

  template <class Function>
  Function* function(const char* name) const {
    void* symbol = dlsym(handle_, name);
    EXPECT_NE(symbol, nullptr) << name;
    return reinterpret_cast<Function*>(symbol);
  }
  std::string last_error() const { return function<const char*()>("demo_last_error")(); }

 private:
  void* handle_;
};

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tilepilot-export-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The library `demo` of these programs.
  exporting::Library library_of(const std::vector<std::string>& programs, const std::string& target = "cpu") {
    exporting::Library library{"demo", "demo.ir", target, {}};
    for (const std::string& text : programs) {
      DiagnosticList errors;
      const auto program = ir::read_text(sources_, sources_.add("demo.ir", text), errors);
      EXPECT_TRUE(program) << text;
      if (!program) continue;
      auto function = exporting::function_of(*program, program->name, "`" + program->name + "`");
      EXPECT_TRUE(function.ok());
      if (function.ok()) library.kernels.push_back({*program, *std::move(function)});
    }
    return library;
  }

  exporting::PackageOptions options_;

  // Writes it to `folder_`/demo.
  void write(const exporting::Library& library) {
    options_.toolchain.cache = TILEPILOT_KERNEL_CACHE;
    DiagnosticList warnings;
    const auto files = exporting::package_files(library, sources_, options_, warnings);
    ASSERT_TRUE(files.ok()) << render(files.error());
    const Status written = exporting::write_folder(folder_ / "demo", *files);
    ASSERT_TRUE(written.ok()) << render(written.error());
  }
  std::filesystem::path object() const { return folder_ / "demo/libdemo.so"; }

  runtime::ProcessResult run(const std::vector<std::string>& command) {
    auto result = runtime::run_process(command, {.time_limit_s = 100, .working_directory = folder_.string()});
    EXPECT_TRUE(result.ok());
    return result.ok() ? *std::move(result) : runtime::ProcessResult{};
  }

  std::filesystem::path folder_;
  SourceMap sources_;
};

}  // namespace tilepilot::testing
