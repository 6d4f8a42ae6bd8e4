#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "compiler/runtime/kernel.h"

namespace tilepilot::runtime {
namespace {

TEST(ThreadPoolTest, EveryPieceOnce) {
  const ParallelFor pool = thread_pool(3);
  for (const int64_t count : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
    pool(count, [&](int64_t begin, int64_t end) {
      ASSERT_LE(0, begin);
      ASSERT_LT(begin, end);
      ASSERT_LE(end, count);
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
    });
    for (const auto& visit : visits) EXPECT_EQ(visit, 1);
  }
}

TEST(ThreadPoolTest, ManyCallsInARow) {
  const ParallelFor pool = thread_pool(4);
  std::atomic<int64_t> sum{0};
  for (int call = 0; call < 2000; ++call)
    pool(8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
  EXPECT_EQ(sum, 2000 * 28);
}

TEST(ThreadPoolTest, CallsInsideCallsRunInPlace) {
  const ParallelFor pool = thread_pool(2);
  std::atomic<int> visits{0};
  pool(4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pool(5, [&](int64_t b, int64_t e) { visits += static_cast<int>(e - b); });
  });
  EXPECT_EQ(visits, 20);
}

}  // namespace
}  // namespace tilepilot::runtime
