// Row E2: compiled kernels that lie in the cache under another kernel's name, or damaged, are never run.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/attacks/team.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& cache) {
  std::vector<fs::path> files;
  for (auto& entry : fs::recursive_directory_iterator(cache))
    if (entry.is_regular_file() && entry.file_size() > 4096) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = fs::temp_directory_path() / ("tilepilot-poisoned-" + std::to_string(getpid()));
    fs::remove_all(cache_);
    fs::create_directories(cache_);
    expect_right_verdicts();
    ASSERT_GE(entries_of(cache_).size(), 2u);
  }
  void TearDown() override { fs::remove_all(cache_); }

  void expect_right_verdicts() {
    RedTeamOptions options = red_team_options();
    options.judge.cache = cache_;
    RedTeam team(options);
    const Attack& honest = attack_called("honest_scale_rows");
    const Attack& zeros = attack_called("A1_zeros");
    ASSERT_TRUE(team.prepare({honest, zeros}).ok());
    for (const Attack* attack : {&zeros, &honest, &zeros}) {
      const AttackResult result = team.run(*attack, nullptr);
      EXPECT_FALSE(is_failure(result.standing)) << attack->name << ": " << result.caught_by;
    }
  }

  fs::path cache_;
};

TEST_F(CacheTest, EntriesThatTookEachOthersPlaceAreNotRun) {
  const std::vector<fs::path> files = entries_of(cache_);
  std::vector<std::string> contents;
  for (const fs::path& file : files) contents.push_back(bytes_of(file));
  for (size_t i = 0; i < files.size(); ++i) write_bytes(files[i], contents[(i + 1) % files.size()]);
  expect_right_verdicts();
}

TEST_F(CacheTest, DamagedEntriesAreNotRun) {
  for (const fs::path& file : entries_of(cache_)) {
    std::string bytes = bytes_of(file);
    for (size_t at = bytes.size() / 8; at < bytes.size(); at += bytes.size() / 64 + 1) bytes[at] ^= 0x41;
    write_bytes(file, bytes);
  }
  expect_right_verdicts();
}

}  // namespace
}  // namespace tilepilot::agent
