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

  bool is_sealed(const fs::path& entry) const {
    const auto secret = runtime::secret_of(folder_, false);
    return secret && runtime::read_sealed(entry, entry.filename().string(), *secret).content.has_value();
  }

  std::vector<fs::path> entries(const fs::path& cache) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache))
      if (entry.is_regular_file() && entry.path().filename() != runtime::kSecretFile) found.push_back(entry.path());
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

// RFC 4231, test cases 1, 2, 3 and 6.
TEST(HmacTest, KnownCodes) {
  EXPECT_EQ(runtime::hmac_sha256(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(runtime::hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(runtime::hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(runtime::hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Entries that somebody puts there who cannot read the secret.
TEST_F(ToolchainTest, ForgedEntriesAreNotLoaded) {
  DiagnosticList warnings;
  const std::string other = "extern \"C\" int answer() { return 7; }\n";
  ASSERT_EQ(answer(folder_, warnings), 42) << message_;
  const fs::path entry = entries(folder_).at(0);
  ASSERT_EQ(answer(folder_, warnings, other), 7) << message_;
  ASSERT_TRUE(warnings.items().empty());
  auto all = entries(folder_);
  const fs::path wrong = all[0] == entry ? all[1] : all[0];
  fs::copy_file(wrong, entry, fs::copy_options::overwrite_existing);  // sealed, under another name
  EXPECT_EQ(answer(folder_, warnings), 42) << message_;
  ASSERT_EQ(warnings.items().size(), 1u);
  const auto library = runtime::read_sealed(wrong, wrong.filename().string(), *runtime::secret_of(folder_, false));
  ASSERT_TRUE(runtime::write_sealed(entry, *library.content, entry.filename().string(), "a guess"));
  EXPECT_EQ(answer(folder_, warnings), 42) << message_;
  EXPECT_EQ(warnings.items().size(), 2u);
}

TEST_F(ToolchainTest, TheSecretIsItsOwnersAlone) {
  const auto secret = runtime::secret_of(folder_, true);
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->size(), 32u);
  EXPECT_EQ(runtime::secret_of(folder_, true), secret);
  const fs::path file = folder_ / runtime::kSecretFile;
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::permissions(file, fs::perms::group_read, fs::perm_options::add);
  EXPECT_FALSE(runtime::secret_of(folder_, false));
  EXPECT_NE(runtime::secret_of(folder_, true), secret);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

// A library that is loaded stays as it was, whatever becomes of the file, and each is its own.
TEST_F(ToolchainTest, LibrariesLiveInMemoryOfTheirOwn) {
  Toolchain toolchain({"", folder_, {"-O0"}});
  DiagnosticList warnings;
  std::vector<std::shared_ptr<runtime::SharedLibrary>> libraries;
  for (int k = 0; k < 5; ++k) {
    auto library = toolchain.load("extern \"C\" int answer() { return " + std::to_string(k) + "; }\n", warnings);
    ASSERT_TRUE(library.ok());
    libraries.push_back(*library);
  }
  for (const fs::path& entry : entries(folder_)) fs::resize_file(entry, 0);
  for (int k = 0; k < 5; ++k)
    EXPECT_EQ(reinterpret_cast<int (*)()>(libraries[static_cast<size_t>(k)]->symbol("answer"))(), k);
}

// What text can make the compiler read or do.
TEST_F(ToolchainTest, fail_TheCompilerSeesNoFilesOfOthers) {
  const fs::path secret = folder_ / "private.txt";
  std::ofstream(secret) << "of nobody else\n";
  for (const std::string& path : {secret.string(), std::string("/etc/passwd")}) {
    DiagnosticList warnings;
    EXPECT_EQ(answer(folder_ / "cache", warnings, "#include \"" + path + "\"\n"), -1);
    EXPECT_EQ(message_.find("of nobody else"), std::string::npos) << message_;
    EXPECT_EQ(message_.find("root:"), std::string::npos) << message_;
  }
}

TEST_F(ToolchainTest, CompilesOnceAndLeavesOneEntry) {
  DiagnosticList warnings;
  EXPECT_EQ(answer(folder_, warnings), 42) << message_;
  const auto first = entries(folder_);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(is_sealed(first[0]));
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
  EXPECT_TRUE(is_sealed(entry));
  ASSERT_EQ(warnings.items().size(), 1u);  // of what was cut short there is nothing to tell
  EXPECT_EQ(warnings.items()[0].kind, DiagnosticKind::cache_degraded);
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
