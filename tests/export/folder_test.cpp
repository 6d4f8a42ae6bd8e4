// What becomes of a folder that something lies in already.
#include "compiler/export/folder.h"

#include <fstream>

#include "tests/export/export_fixture.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using exporting::write_folder;
using ::testing::HasSubstr;

class ExportFolder : public ExportTest {
 protected:
  const fs::path to() const { return folder_ / "to"; }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((to() / name).parent_path());
    std::ofstream(to() / name) << text;
  }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(to()))
      if (!entry.is_directory()) names.push_back(fs::relative(entry.path(), to()).string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(ExportFolder, ReplacesWhatItWrote) {
  ASSERT_TRUE(write_folder(to().string() + "/", {{"a", "1"}, {"b/c", "2"}}).ok());
  put("mine", "3");
  ASSERT_TRUE(write_folder(to(), {{"a", "4"}, {"d", "5"}}).ok());
  EXPECT_THAT(left(), ::testing::ElementsAre(".tilepilot-export", "a", "d", "mine"));
  EXPECT_FALSE(fs::exists(to() / "b"));
  EXPECT_EQ(read_text(to() / "a"), "4");
  EXPECT_EQ(read_text(to() / "mine"), "3");
}

TEST_F(ExportFolder, fail_FilesOfOthers) {
  put("a", "mine");
  const Status foreign = write_folder(to(), {{"a", "1"}, {"b", "2"}});
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().kind, DiagnosticKind::output_unwritable);
  EXPECT_THAT(foreign.error().message, HasSubstr("/to/a`: it is there, and no export wrote it as it is"));
  EXPECT_THAT(left(), ::testing::ElementsAre("a"));
}

TEST_F(ExportFolder, fail_FilesThatWereChanged) {
  ASSERT_TRUE(write_folder(to(), {{"a", "1"}, {"b", "2"}}).ok());
  put("b", "changed");
  EXPECT_FALSE(write_folder(to(), {{"a", "3"}, {"b", "4"}}).ok());
  EXPECT_EQ(read_text(to() / "a"), "1");
  ASSERT_TRUE(write_folder(to(), {{"a", "5"}}).ok());
  EXPECT_EQ(read_text(to() / "b"), "changed");  // it is the user's now
}

// Whatever the list says: it may have come with the folder.
TEST_F(ExportFolder, LeavesFilesOutsideAlone) {
  const fs::path other = folder_ / "other";
  std::ofstream(other) << "1";
  ASSERT_TRUE(write_folder(to(), {{"a", "1"}}).ok());
  std::string list = read_text(to() / ".tilepilot-export");
  const std::string hash = list.substr(0, list.find(' '));
  put(".tilepilot-export", list + hash + " ../other\n" + hash + " " + other.string() + "\n");
  ASSERT_TRUE(write_folder(to(), {{"a", "2"}}).ok());
  EXPECT_EQ(read_text(other), "1");
}

TEST_F(ExportFolder, fail_AFileWhereAFolderIsWanted) {
  put("source", "mine");
  const Status taken = write_folder(to(), {{"a", "1"}, {"source/b", "2"}});
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message, HasSubstr("/to/source`: it is a file"));
  EXPECT_THAT(left(), ::testing::ElementsAre("source"));
  EXPECT_FALSE(write_folder(folder_ / std::string(300, 'a'), {{"a", "1"}}).ok());
}

TEST_F(ExportFolder, fail_FoldersThatAreElsewhere) {
  fs::create_directories(folder_ / "other");
  fs::create_directories(to());
  fs::create_symlink(folder_ / "other", to() / "source");
  EXPECT_FALSE(write_folder(to(), {{"source/b", "2"}}).ok());
  EXPECT_TRUE(fs::is_empty(folder_ / "other"));
}

TEST_F(ExportFolder, fail_LinksThatLeadElsewhere) {
  fs::create_directories(to());
  fs::create_symlink(folder_ / "elsewhere", to() / "a");
  EXPECT_FALSE(write_folder(to(), {{"a", "1"}}).ok());
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
}

TEST_F(ExportFolder, fail_AFileInItsPlace) {
  std::ofstream(folder_ / "to") << "x";
  const Status status = write_folder(to(), {{"a", "1"}});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("it is a file"));
}

TEST_F(ExportFolder, fail_AFolderThatCannotBeMade) {
  const Status status = write_folder("/proc/self/nowhere", {{"a", "1"}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::output_unwritable);
}

}  // namespace
}  // namespace tilepilot::testing
