// What tuning measured, kept on disk; and kernels that are compiled side by side.
#include "compiler/runtime/tuning_cache.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "compiler/runtime/library.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using runtime::TuningCache;

class TuningCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-tuning-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(TuningCacheTest, GivesBackWhatWasKeptLast) {
  const TuningCache cache(folder_), same(folder_);
  EXPECT_FALSE(cache.find("gemm on H200"));
  ASSERT_TRUE(cache.keep("gemm on H200", "{\"a\": 1}").ok());
  EXPECT_EQ(same.find("gemm on H200"), "{\"a\": 1}");
  ASSERT_TRUE(same.keep("gemm on H200", "{}").ok());
  EXPECT_EQ(cache.find("gemm on H200"), "{}");
  EXPECT_FALSE(cache.find("gemm on A100"));
  EXPECT_FALSE(cache.find(""));
}

TEST_F(TuningCacheTest, WithoutAFolderKeepsNothing) {
  const TuningCache cache;
  EXPECT_TRUE(cache.keep("key", "text").ok());
  EXPECT_FALSE(cache.find("key"));
}

TEST_F(TuningCacheTest, SaysThatItCannotWrite) {
  std::ofstream(folder_ / "file") << "not a folder";
  const TuningCache cache(folder_ / "file" / "cache");
  const Status kept = cache.keep("key", "text");
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().kind, DiagnosticKind::cache_unwritable);
}

TEST_F(TuningCacheTest, ReadersOfManyWritersSeeWholeTexts) {
  const TuningCache cache(folder_);
  std::atomic<bool> damaged{false};
  std::vector<std::thread> threads;
  for (char letter : {'a', 'b', 'c'})
    threads.emplace_back([&, letter] {
      for (int round = 0; round < 30; ++round) {
        if (!cache.keep("key", std::string(5000, letter)).ok()) damaged = true;
        const auto found = cache.find("key");
        if (!found || *found != std::string(5000, found->front())) damaged = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(damaged);
}

// Confined compilers cannot see each other: that they run side by side shows in the time.
TEST_F(TuningCacheTest, ToolchainCompilesSideBySide) {
  std::ofstream(folder_ / "compiler") << "#!/bin/sh\n"
                                         "for last; do :; done\n"
                                         "[ \"$1\" = --version ] && exec c++ --version\n"
                                         "sleep 3\n"
                                         "exec c++ \"$@\"\n";
  fs::permissions(folder_ / "compiler", fs::perms::owner_all);
  runtime::Toolchain toolchain({(folder_ / "compiler").string(), folder_ / "cache", {"-O0"}});
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  std::atomic<int> loaded{0};
  for (const char* source : {"extern \"C\" int one() { return 1; }\n", "extern \"C\" int two() { return 2; }\n",
                             "extern \"C\" int one() { return 1; }\n"})
    threads.emplace_back([&, source] {
      DiagnosticList warnings;
      loaded += toolchain.load(source, warnings).ok() ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loaded, 3);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 3);
  EXPECT_LT(took.count(), 6);
}

}  // namespace
}  // namespace tilepilot::testing
