// Files as users give them: links, pipes, devices, folders.
#include "compiler/source/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/golden_diagnostic.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Files : public testing::DiagnosticTest {
 protected:
  static std::string content(const fs::path& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
};

TEST_F(Files, WritesThroughSymbolicLinks) {
  write("target.py", "before");
  fs::create_symlink("target.py", folder_ / "link.py");
  fs::create_symlink("new.py", folder_ / "dangling.py");
  EXPECT_TRUE(write_file(folder_ / "link.py", "after"));
  EXPECT_TRUE(write_file(folder_ / "dangling.py", "fresh"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.py"));
  EXPECT_EQ(content(folder_ / "target.py"), "after");
  EXPECT_EQ(content(folder_ / "new.py"), "fresh");
  EXPECT_EQ(count(), 4u);
}

TEST_F(Files, KeepsModeBits) {
  write("program.py", "before");
  fs::permissions(folder_ / "program.py", fs::perms(0751));
  EXPECT_TRUE(write_file(folder_ / "program.py", "after"));
  EXPECT_EQ(fs::status(folder_ / "program.py").permissions(), fs::perms(0751));
}

TEST_F(Files, WritesToPipesAndDevicesAndReplacesNone) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::string why, got;
  EXPECT_FALSE(write_file(folder_ / "pipe", "text", &why));
  EXPECT_EQ(why, "it is a pipe that nobody reads");
  std::thread reader([&] { got = content(folder_ / "pipe"); });
  while (!write_file(folder_ / "pipe", "text")) std::this_thread::yield();
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  fs::create_symlink("/dev/null", folder_ / "null");
  EXPECT_TRUE(write_file(folder_ / "null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, FailWriteWithReason) {
  fs::create_directory(folder_ / "folder");
  for (const auto& [path, reason] : {std::pair{folder_ / "folder", "it is a folder"},
                                     {folder_ / "none/file", "there is no such file"},
                                     {fs::path("/proc/nothing"), "o such file"}}) {
    std::string why;
    EXPECT_FALSE(write_file(path, "text", &why));
    EXPECT_THAT(why, HasSubstr(reason)) << path;
    EXPECT_THAT(why_unwritable(path), HasSubstr(reason)) << path;
  }
  EXPECT_EQ(why_unwritable(folder_ / "new"), "");
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, ReadsPipes) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(folder_ / "pipe") << std::string(200'000, 'x'); });
  std::string text;
  EXPECT_TRUE(read_file(folder_ / "pipe", text));
  writer.join();
  EXPECT_EQ(text.size(), 200'000u);
}

TEST_F(Files, FailReadWithReason) {
  std::string text, why;
  EXPECT_FALSE(read_file(folder_, text, &why));
  EXPECT_EQ(why, "it is a folder");
  EXPECT_FALSE(read_file(folder_ / "none", text, &why));
  EXPECT_EQ(why, "there is no such file");
  EXPECT_FALSE(read_file("/dev/zero", text, &why));
  EXPECT_EQ(why, "it is a device");
}

}  // namespace
}  // namespace tilepilot
