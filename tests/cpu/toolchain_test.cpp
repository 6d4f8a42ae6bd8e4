#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "compiler/runtime/sealed_file.h"
#include "compiler/runtime/sha256.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using runtime::Toolchain;

constexpr const char* kSource = "extern \"C\" int answer() { return 42; }\n";

class ToolchainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The answer that a fresh toolchain's library gives; -1 on an error.
  int answer(const fs::path& cache, DiagnosticList& warnings, const std::string& source = kSource) {
    Toolchain toolchain({"", cache, {"-O0"}});
    auto library = toolchain.load(source, warnings);
    if (!library.ok()) {
      message_ = render(library.error());
      return -1;
    }
    auto* function = reinterpret_cast<int (*)()>((*library)->symbol("answer"));
    return function != nullptr ? function() : -1;
  }

  std::vector<fs::path> entries(const fs::path& cache) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }

  fs::path folder_;
  std::string message_;
};

TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(runtime::Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(runtime::Sha256().add("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(runtime::Sha256().add(std::string(56, 'a')).hex(),
            runtime::Sha256().add(std::string(50, 'a')).add("aaaaaa").hex());
  EXPECT_NE(runtime::Sha256().add_field("a").add_field("bc").hex(),
            runtime::Sha256().add_field("ab").add_field("c").hex());
}

TEST_F(ToolchainTest, CompilesOnceAndLeavesOneEntry) {
  DiagnosticList warnings;
  EXPECT_EQ(answer(folder_, warnings), 42) << message_;
  const auto first = entries(folder_);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(runtime::is_sealed(first[0]));
  const auto written = fs::last_write_time(first[0]);
  EXPECT_EQ(answer(folder_, warnings), 42);
  EXPECT_EQ(entries(folder_), first);
  EXPECT_EQ(fs::last_write_time(first[0]), written);
  EXPECT_TRUE(warnings.items().empty());
}

TEST_F(ToolchainTest, OtherSourceIsAnotherEntry) {
  DiagnosticList warnings;
  EXPECT_EQ(answer(folder_, warnings), 42);
  EXPECT_EQ(answer(folder_, warnings, "extern \"C\" int answer() { return 7; }\n"), 7);
  EXPECT_EQ(entries(folder_).size(), 2u);
}

TEST_F(ToolchainTest, DamagedEntriesAreCompiledAgain) {
  DiagnosticList warnings;
  ASSERT_EQ(answer(folder_, warnings), 42) << message_;
  const fs::path entry = entries(folder_).at(0);
  const auto whole = fs::file_size(entry);
  const fs::path copy = folder_ / "copy";
  fs::copy_file(entry, copy);
  for (const uintmax_t size : {uintmax_t{0}, uintmax_t{100}, whole / 2, whole - 1}) {
    // Replaced, not changed: this process has the old one mapped.
    fs::remove(entry);
    fs::copy_file(copy, entry);
    fs::resize_file(entry, size);
    EXPECT_EQ(answer(folder_, warnings), 42) << "cut to " << size << ": " << message_;
    EXPECT_EQ(fs::file_size(entry), whole);
  }
  fs::remove(entry);
  fs::copy_file(copy, entry);
  std::fstream(entry, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('!');
  EXPECT_EQ(answer(folder_, warnings), 42) << "one byte changed: " << message_;
  EXPECT_TRUE(runtime::is_sealed(entry));
}

TEST_F(ToolchainTest, UnwritableCacheWarnsOnceAndWorks) {
  std::ofstream(folder_ / "file") << "not a folder";
  Toolchain toolchain({"", folder_ / "file" / "cache", {"-O0"}});
  DiagnosticList warnings;
  EXPECT_TRUE(toolchain.load(kSource, warnings).ok());
  EXPECT_TRUE(toolchain.load("extern \"C\" int other() { return 1; }\n", warnings).ok());
  ASSERT_EQ(warnings.items().size(), 1u);
  EXPECT_EQ(warnings.items()[0].kind, DiagnosticKind::cache_degraded);
  EXPECT_FALSE(warnings.items()[0].hint.empty());
}

TEST_F(ToolchainTest, RemovesWhatKilledProcessesLeftADayAgo) {
  const fs::path old = folder_ / "tmp" / "build-old", recent = folder_ / "tmp" / "build-recent";
  for (const fs::path& folder : {old, recent}) {
    fs::create_directories(folder);
    std::ofstream(folder / "kernel.cpp") << "unfinished";
  }
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  DiagnosticList warnings;
  EXPECT_EQ(answer(folder_, warnings), 42) << message_;
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent / "kernel.cpp"));
}

TEST_F(ToolchainTest, TwoProcessesAtOnce) {
  std::vector<pid_t> children;
  for (int k = 0; k < 2; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      DiagnosticList warnings;
      _exit(answer(folder_, warnings) == 42 && warnings.items().empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(entries(folder_).size(), 1u);
}

// A limit on the size of files stands for a full disk: the compiler cannot write its output.
TEST_F(ToolchainTest, FullDiskLeavesNothingBehind) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2048, 2048};
    setrlimit(RLIMIT_FSIZE, &limit);
    DiagnosticList warnings;
    _exit(answer(folder_, warnings) == -1 && message_.starts_with("compiler_failed") ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(entries(folder_).empty());
  DiagnosticList warnings;
  EXPECT_EQ(answer(folder_, warnings), 42) << "with room again: " << message_;
}

TEST_F(ToolchainTest, fail_NoCompiler) {
  Toolchain toolchain({"no-such-compiler", folder_, {}});
  DiagnosticList warnings;
  const auto library = toolchain.load(kSource, warnings);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, DiagnosticKind::compiler_missing);
  EXPECT_EQ(library.error().message, "the C++ compiler `no-such-compiler` was not found");
  EXPECT_FALSE(library.error().hint.empty());
  EXPECT_EQ(toolchain.version(), "");
}

TEST_F(ToolchainTest, fail_RejectedSource) {
  DiagnosticList warnings;
  EXPECT_EQ(answer(folder_, warnings, "this is not C++"), -1);
  EXPECT_TRUE(message_.starts_with("compiler_failed")) << message_;
  EXPECT_NE(message_.find("error:"), std::string::npos) << message_;
  EXPECT_TRUE(entries(folder_).empty());
}

TEST_F(ToolchainTest, VersionNamesTheCompiler) {
  Toolchain toolchain({"", folder_, {}});
  EXPECT_THAT(toolchain.version(), ::testing::MatchesRegex("[a-z]+\\+\\+ [0-9]+\\.[0-9.]+.*"));
}

}  // namespace
}  // namespace tilepilot::testing
