#include "agent/llm/endpoint/key_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

using ::testing::HasSubstr;

class KeyFile : public ::testing::Test {
 protected:
  ~KeyFile() override { std::filesystem::remove(file_); }
  Result<std::string> key(const std::string& text, mode_t mode = 0600) {
    EXPECT_TRUE(write_file(file_, text));
    EXPECT_EQ(chmod(file_.c_str(), mode), 0);
    return key_in(file_);
  }
  std::filesystem::path file_ = std::filesystem::temp_directory_path() / ("tilepilot-key-" + std::to_string(getpid()));
};

TEST_F(KeyFile, HoldsAKeyOnOneLine) {
  EXPECT_EQ(*key("sk-123\n"), "sk-123");
  EXPECT_EQ(*key("sk-123", 0400), "sk-123");
}

TEST_F(KeyFile, FailThatOthersMayRead) {
  for (mode_t mode : {0644, 0640, 0602}) {
    auto read = key("sk-123\n", mode);
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr("others may read it"));
    EXPECT_THAT(read.error().hint, HasSubstr("chmod 600"));
  }
}

TEST_F(KeyFile, FailThatHoldsNoKey) {
  EXPECT_THAT(key("\n").error().message, HasSubstr("it is empty"));
  EXPECT_THAT(key("one\ntwo\n").error().message, HasSubstr("line break"));
  std::filesystem::remove(file_);
  EXPECT_THAT(key_in(file_).error().message, HasSubstr("No such file"));
}

}  // namespace
}  // namespace tilepilot::agent
