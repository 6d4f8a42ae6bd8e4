#include "agent/work_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;

class WorkFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tilepilot-work-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    parent_ = pattern;
  }
  void TearDown() override { fs::remove_all(parent_); }
  long count() const { return std::distance(fs::directory_iterator(parent_), fs::directory_iterator()); }
  fs::path parent_;
};

TEST_F(WorkFolderTest, GoesWithItsObject) {
  {
    auto folder = WorkFolder::make(parent_ / "below");
    ASSERT_TRUE(folder.ok());
    std::ofstream(folder->path() / "file") << "content";
    EXPECT_TRUE(fs::exists(folder->path() / "file"));
  }
  EXPECT_TRUE(fs::is_empty(parent_ / "below"));
}

TEST_F(WorkFolderTest, RemovesWhatDeadProcessesLeft) {
  pid_t child = fork();
  if (child == 0) {
    auto folder = WorkFolder::make(parent_);
    if (folder.ok()) std::ofstream(folder->path() / "file") << "content";
    _exit(0);  // without destructors, as a kill would
  }
  siginfo_t ended = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(count(), 1);
  fs::create_directory(parent_ / "something-else");
  auto first = WorkFolder::make(parent_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(count(), 2);
  // The folders of the living stay.
  auto second = WorkFolder::make(parent_);
  EXPECT_TRUE(fs::exists(first->path()));
  EXPECT_EQ(count(), 3);
  WorkFolder::remove_own(parent_);
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);  // until now it was dead, and not buried
}

}  // namespace
}  // namespace tilepilot::agent
