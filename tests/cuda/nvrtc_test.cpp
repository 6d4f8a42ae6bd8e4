// NVRTC as our compiler: where it is found, what is kept, what users are told.
#include "compiler/runtime/cuda/nvrtc.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/runtime/cuda/nvrtc_search.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/fake_library.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using runtime::cuda::Nvrtc;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kKernel = "extern \"C\" __global__ void kernel(float* x) { x[threadIdx.x] += 1; }\n";

class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-nvrtc-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path touch(const fs::path& path) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << "no library";
    return folder_ / path;
  }
  std::vector<fs::path> cubins() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.path().extension() == ".cubin") found.push_back(entry.path());
    return found;
  }

  fs::path folder_;
  DiagnosticList warnings_;
};

TEST_F(NvrtcTest, IsFoundInToolkitsAndPackages) {
  const fs::path old = touch("toolkit/lib64/libnvrtc.so.12"), newer = touch("toolkit/lib64/libnvrtc.so.13");
  touch("toolkit/lib64/libnvrtc-builtins.so.13.0");
  touch("toolkit/lib64/libnvrtc_static.a");
  touch("toolkit/lib64/libnvrtc.alt.so.13");
  const fs::path package = touch("site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const fs::path older_package = touch("site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const fs::path torch = touch("site-packages/torch/lib/libnvrtc-b51b459d.so.12");
  EXPECT_THAT(runtime::cuda::find_nvrtc({folder_ / "none", folder_ / "toolkit", folder_ / "site-packages"}),
              ElementsAre(newer, old, package, older_package, torch));
  EXPECT_THAT(runtime::cuda::find_nvrtc({folder_ / "site-packages/torch/lib"}), ElementsAre(torch));
}

TEST_F(NvrtcTest, CompilesOnceAndLeavesOneEntry) {
  SKIP_WITHOUT_NVRTC();
  auto options = nvrtc_options();
  options.cache = folder_;
  const auto first = Nvrtc(options).compile(kKernel, "sm_90a", warnings_);
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_EQ(cubins().size(), 1u);
  const auto again = Nvrtc(options).compile(kKernel, "sm_90a", warnings_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first->cubin, again->cubin);
  EXPECT_EQ(cubins().size(), 1u);
  EXPECT_TRUE(Nvrtc(options).compile(kKernel, "sm_80", warnings_).ok());
  options.extra_flags = {"-fmad=false"};
  EXPECT_TRUE(Nvrtc(options).compile(kKernel, "sm_90a", warnings_).ok());
  EXPECT_EQ(cubins().size(), 3u);
  EXPECT_TRUE(warnings_.items().empty());
}

// Processes that want the same at once: each gets it, and one entry is left.
TEST_F(NvrtcTest, ProcessesShareTheCache) {
  std::string source = fake_nvrtc_source(13, 0, true);
  const std::string plain = "ANSWERS(nvrtcCompileProgram)";
  source.replace(source.find(plain), plain.size(),
                 "extern \"C\" int usleep(unsigned); extern \"C\" int nvrtcCompileProgram() { usleep(200000); return "
                 "STATUS; }\n");
  runtime::cuda::NvrtcOptions options;
  options.library = fake_library(folder_, "libnvrtc.so.13", source);
  options.cache = folder_ / "cache";
  std::vector<pid_t> children;
  for (int k = 0; k < 6; ++k) {
    children.push_back(fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() > 0) continue;
    const auto made = Nvrtc(options).compile(kKernel, k % 2 == 0 ? "sm_80" : "sm_90a", warnings_);
    _exit(made.ok() && made->cubin == "x" && warnings_.items().empty() ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(cubins().size(), 2u);
  int64_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(options.cache)) files += entry.is_regular_file();
  EXPECT_EQ(files, 3) << "unfinished work is left beside the entries and the secret";
}

TEST_F(NvrtcTest, DamagedEntriesAreCompiledAgain) {
  SKIP_WITHOUT_NVRTC();
  auto options = nvrtc_options();
  options.cache = folder_;
  const auto first = Nvrtc(options).compile(kKernel, "sm_90a", warnings_);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const fs::path entry = cubins().at(0);
  const auto whole = fs::file_size(entry);
  fs::resize_file(entry, whole / 2);
  const auto again = Nvrtc(options).compile(kKernel, "sm_90a", warnings_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first->cubin, again->cubin);
  EXPECT_EQ(fs::file_size(entry), whole);
}

TEST_F(NvrtcTest, CacheThatCannotBeWrittenWarnsOnce) {
  SKIP_WITHOUT_NVRTC();
  auto options = nvrtc_options();
  options.cache = touch("file") / "cache";
  Nvrtc compiler(options);
  EXPECT_TRUE(compiler.compile(kKernel, "sm_90a", warnings_).ok());
  EXPECT_TRUE(compiler.compile(kKernel, "sm_80", warnings_).ok());
  ASSERT_EQ(warnings_.items().size(), 1u);
  EXPECT_EQ(warnings_.items()[0].kind, DiagnosticKind::cache_degraded);
}

TEST_F(NvrtcTest, GivesTheVirtualMachinesCode) {
  SKIP_WITHOUT_NVRTC();
  const auto ptx = nvrtc().ptx(kKernel, "sm_90a");
  ASSERT_TRUE(ptx.ok()) << ptx.error().message;
  EXPECT_THAT(*ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(*ptx, HasSubstr(".entry kernel("));
  EXPECT_THAT(*nvrtc().version(), ::testing::MatchesRegex("NVRTC 1[23]\\.[0-9]+ \\(.*\\)"));
}

TEST_F(NvrtcTest, fail_RejectedSource) {
  SKIP_WITHOUT_NVRTC();
  const std::string bad =
      "#line 7 \"matmul.py\"\nextern \"C\" __global__ void f() { unknown = 1; }\n__device__ int x = y;\n";
  const auto made = nvrtc().compile(bad, "sm_90a", warnings_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, DiagnosticKind::compiler_failed);
  EXPECT_EQ(made.error().message, "NVRTC failed on generated code for `sm_90a`");
  ASSERT_EQ(made.error().notes.size(), 3u);
  EXPECT_THAT(made.error().notes[0].message, HasSubstr("matmul.py(7): error: identifier \"unknown\" is undefined"));
  EXPECT_THAT(made.error().notes[1].message, HasSubstr("matmul.py(8): error: identifier \"y\" is undefined"));
}

// What only the assembler sees.
TEST_F(NvrtcTest, fail_TooMuchSharedMemory) {
  SKIP_WITHOUT_NVRTC();
  const auto made = nvrtc().compile(
      "extern \"C\" __global__ void f(int* x) { __shared__ int a[70000]; a[threadIdx.x] = 1; *x = a[*x]; }\n", "sm_90a",
      warnings_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, DiagnosticKind::compiler_failed);
  ASSERT_FALSE(made.error().notes.empty());
  EXPECT_THAT(made.error().notes[0].message, HasSubstr("shared"));
}

TEST_F(NvrtcTest, fail_TooOld) {
  const fs::path library = fake_library(folder_, "libnvrtc.so.12", fake_nvrtc_source(12, 3));
  const auto made = Nvrtc({.library = library}).compile(kKernel, "sm_80", warnings_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, DiagnosticKind::nvrtc_missing);
  ASSERT_EQ(made.error().notes.size(), 1u);
  EXPECT_EQ(made.error().notes[0].message, "`" + library.string() + "` is NVRTC 12.3; 12.4 or newer is needed");
}

TEST_F(NvrtcTest, fail_NoLibrary) {
  const fs::path library = touch("toolkit/lib64/libnvrtc.so.13");
  const auto made = Nvrtc({.library = library}).compile(kKernel, "sm_80", warnings_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, DiagnosticKind::nvrtc_missing);
  EXPECT_THAT(made.error().notes.at(0).message, HasSubstr("cannot load NVRTC: "));
}

TEST_F(NvrtcTest, fail_CompilerThatBreaks) {
  const fs::path library = fake_library(folder_, "libnvrtc.so.13", fake_nvrtc_source(13, 0));
  const auto made = Nvrtc({.library = library}).compile(kKernel, "sm_80", warnings_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, DiagnosticKind::compiler_failed);
  EXPECT_EQ(made.error().notes.at(0).message, "NVRTC_ERROR_OUT_OF_MEMORY");
}

}  // namespace
}  // namespace tilepilot::testing
