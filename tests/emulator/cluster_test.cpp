// What blocks of a cluster do together: the two halves of their barrier, and copies into each other's memory.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each block gives its numbers to the other one, which turns them around.
const KernelText kExchange{R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 128);
  const int32_t t = threadIdx.x;
  tile[t] = A[blockIdx.x * 64 + t];
  sync_cluster();  // there
  copy_remote<4>(tile + (64 + t), block_of_cluster() ^ 1u, tile + t);  // send
  cluster_arrive();  // arrive
  A[blockIdx.x * 64 + t] = 0;
  cluster_wait();  // wait
  B[blockIdx.x * 64 + t] = tile[127 - t];  // use
}
)"};

Report exchange(const KernelText& kernel, std::vector<int32_t>& b) {
  std::vector<int32_t> a(256);
  for (size_t i = 0; i < a.size(); ++i) a[i] = int32_t(i);
  return run_kernel(kernel, {.threads = 64, .shared_bytes = 512, .grid = {4, 1, 1}, .cluster = {2, 1, 1}},
                    Buffers().add("A", a).add("B", b));
}

TEST(EmulatedClusterBarrier, OrdersWhatWasBeforeTheArrival) {
  std::vector<int32_t> b(256), expected(256);
  for (size_t i = 0; i < b.size(); ++i) expected[i] = int32_t((i / 64 ^ 1) * 64 + 63 - i % 64);
  EXPECT_THAT(told(exchange(kExchange, b)), IsEmpty());
  EXPECT_EQ(b, expected);
}

TEST(EmulatedClusterBarrier, OrdersNothingBetweenArrivalAndWait) {
  std::vector<int32_t> b(256);
  const std::string send = "copy_remote<4>(tile + (64 + t), block_of_cluster() ^ 1u, tile + t);  // send";
  const KernelText late = kExchange.with("cluster_arrive();  // arrive", "").with(send, "cluster_arrive(); " + send);
  const KernelText relaxed = kExchange.with("cluster_arrive();  // arrive", "cluster_arrive_relaxed();");
  for (const KernelText& kernel : {late, relaxed}) {
    const Report report = exchange(kernel, b);
    ASSERT_FALSE(report.defects.empty()) << kernel.text;
    EXPECT_EQ(report.defects[0].kind, DefectKind::data_race) << report.defects[0].message;
    EXPECT_EQ(report.defects[0].first.line, kExchange.line_of("send"));
    EXPECT_EQ(report.defects[0].second.line, kExchange.line_of("use"));
  }
}

TEST(EmulatedClusterBarrier, FindsMisuse) {
  std::vector<int32_t> b(256);
  const Report twice = exchange(kExchange.with("cluster_wait();", "cluster_arrive(); cluster_wait();"), b);
  ASSERT_EQ(twice.defects.size(), 1U);
  EXPECT_EQ(twice.defects[0].kind, DefectKind::barrier_misuse);
  EXPECT_THAT(twice.defects[0].message, HasSubstr("arrives at the barrier of the cluster twice"));
  EXPECT_EQ(twice.defects[0].first.line, kExchange.line_of("arrive"));
  EXPECT_EQ(twice.defects[0].second.line, kExchange.line_of("wait"));

  const Report never = exchange(kExchange.with("cluster_arrive();  // arrive", ""), b);
  ASSERT_EQ(never.defects.size(), 1U);
  EXPECT_EQ(never.defects[0].kind, DefectKind::barrier_misuse);
  EXPECT_THAT(never.defects[0].message, HasSubstr("has not arrived there"));
  EXPECT_EQ(never.defects[0].second.line, kExchange.line_of("wait"));

  const Report stuck = exchange(
      kExchange.with("cluster_arrive();  // arrive",
                     "sync_cluster(); if (block_of_cluster() == 1) { if (t >= 32) return; sync_named(1, 64); } "
                     "cluster_arrive();"),
      b);
  ASSERT_EQ(stuck.defects.size(), 1U);
  EXPECT_EQ(stuck.defects[0].kind, DefectKind::deadlock);
  EXPECT_THAT(stuck.defects[0].message, HasSubstr("at the barrier of the cluster, where 64 of 96 threads have come"));
}

// Before or after others come, in any phase, and with an arrival that it does not wait for.
TEST(EmulatedClusterBarrier, WaitsForNobodyWhoHasEnded) {
  std::vector<int32_t> expected(256);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = int32_t((i / 64 ^ 1) * 64 + 63 - i % 64);
  for (const std::string leaves : {"block_of_cluster() == 0", "block_of_cluster() == 1", "t >= 32", "t != 5"})
    for (const std::string last : {"", "cluster_arrive(); "}) {
      std::vector<int32_t> b(256);
      const Report report = exchange(
          kExchange.with("// use", "if (" + leaves + ") { " + last + "return; } sync_cluster(); sync_cluster();"), b);
      EXPECT_THAT(told(report), IsEmpty()) << leaves;
      EXPECT_EQ(b, expected);
    }
}

// An end is no arrival that tells what was before it.
TEST(EmulatedClusterBarrier, OrdersNothingThatEndedThreadsDid) {
  std::vector<int32_t> b(256);
  const KernelText kernel =
      kExchange.with("// use",
                     "if (block_of_cluster() == 0) { B[blockIdx.x * 64 + t] = 7; return; } sync_cluster(); "
                     "B[blockIdx.x * 64 + t] = B[(blockIdx.x - 1) * 64 + t];  // use");
  const Report report = exchange(kernel, b);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::data_race) << report.defects[0].message;
  EXPECT_THAT(told(exchange(kernel.with("= 7; return;", "= 7; cluster_arrive(); return;"), b)), IsEmpty());
}

TEST(EmulatedCluster, FindsWritesToBlocksThatAreNotThere) {
  std::vector<int32_t> b(256);
  const Report none = exchange(kExchange.with("block_of_cluster() ^ 1u", "block_of_cluster() + 2u"), b);
  ASSERT_EQ(none.defects.size(), 1U);
  EXPECT_EQ(none.defects[0].kind, DefectKind::out_of_bounds);
  EXPECT_THAT(none.defects[0].message, HasSubstr("of a cluster of 2"));

  const Report early = exchange(kExchange.with("sync_cluster();  // there", "sync_threads();"), b);
  ASSERT_EQ(early.defects.size(), 1U);
  EXPECT_THAT(early.defects[0].message, HasSubstr("which need not have begun"));

  const Report late =
      exchange(kExchange.with("sync_cluster();  // there", "sync_cluster(); if (block_of_cluster() == 1) return;"), b);
  ASSERT_FALSE(late.defects.empty());
  EXPECT_THAT(late.defects[0].message, HasSubstr("writes to block 1 of the cluster, which has ended"));
}

// The first block sends 256 bytes to the other one.
const KernelText kSend{R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> from = shared_tile<int32_t>(0, 64);
  shared_array<int32_t> to = shared_tile<int32_t>(256, 64);
  shared_array<uint64_t> full = shared_tile<uint64_t>(512, 1);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);  // make
    fence_barriers();
  }
  sync_cluster();
  if (block_of_cluster() == 0) {
    from[t] = A[t];
    fence_async();  // fence
    sync_threads();  // filled
    if (t == 0) {
      bulk_copy_remote(to, 1, from, 256, full);  // send
    }
  } else {
    if (t == 0) {
      barrier_arrive_expect(full, 256);  // expect
    }
    barrier_wait(full, 0);  // arrived
    B[t] = to[t];  // use
  }
  sync_cluster();  // end
  from[t] = 1;  // again
}
)"};

Report send(const KernelText& kernel, std::vector<int32_t>& b) {
  std::vector<int32_t> a(64);
  for (size_t i = 0; i < a.size(); ++i) a[i] = int32_t(i * i);
  return run_kernel(kernel, {.threads = 64, .shared_bytes = 520, .grid = {2, 1, 1}, .cluster = {2, 1, 1}},
                    Buffers().add("A", a).add("B", b));
}

TEST(EmulatedCluster, CopiesInBulkToAnotherBlock) {
  std::vector<int32_t> b(64), expected(64);
  for (size_t i = 0; i < b.size(); ++i) expected[i] = int32_t(i * i);
  const Report report = send(kSend, b);
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(b, expected);
  EXPECT_EQ(report.counters.bulk_copies, 1);
}

TEST(EmulatedCluster, FindsDefectsOfBulkCopiesToAnotherBlock) {
  struct Planted {
    std::string before, after;
    DefectKind kind;
    std::string line;
  };
  std::vector<int32_t> b(64);
  for (const Planted& planted : std::initializer_list<Planted>{
           {"fence_async();  // fence", "", DefectKind::missing_fence, "send"},
           {"sync_threads();  // filled", "", DefectKind::uninitialised_read, "send"},
           {"barrier_wait(full, 0);  // arrived", "sync_threads();", DefectKind::uninitialised_read, "use"},
           {"full, 256);  // expect", "full, 240);", DefectKind::deadlock, "end"},
           {"from, 256, full", "from, 248, full", DefectKind::misaligned, "send"},
           {"to, 1, from", "to, 2, from", DefectKind::out_of_bounds, "send"},
           {"  sync_cluster();  // end", "", DefectKind::data_race, "again"},
       }) {
    const Report report = send(kSend.with(planted.before, planted.after), b);
    ASSERT_FALSE(report.defects.empty()) << planted.before;
    EXPECT_EQ(report.defects[0].kind, planted.kind) << planted.before << "\n" << report.defects[0].message;
    const int64_t line = kSend.line_of(planted.line);
    EXPECT_TRUE(report.defects[0].first.line == line || report.defects[0].second.line == line)
        << planted.before << "\n"
        << report.defects[0].message;
  }
}

// The block that sends leaves before the other one says that it has all.
TEST(EmulatedCluster, FindsBlocksThatEndBeforeTheirMemoryIsSent) {
  std::vector<int32_t> b(64);
  const Report report = send(kSend.with("send\n    }\n", "send\n    }\n    return;\n"), b);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::pending_copy) << report.defects[0].message;
  EXPECT_EQ(report.defects[0].first.line, kSend.line_of("send"));
  EXPECT_THAT(report.defects[0].message, HasSubstr("the block that gets them has not waited"));
}

// What is sent is fenced before the barriers are made: no later fence stands for theirs.
TEST(EmulatedCluster, FindsBarriersThatCopiesBetweenBlocksNeedNotKnow) {
  std::vector<int32_t> b(64);
  const std::string fill = "    from[t] = A[t];\n    fence_async();  // fence\n";
  const KernelText filled = kSend.with(fill, "").with(
      "  if (t == 0) {\n    barrier_init",
      "  if (block_of_cluster() == 0) {\n" + fill + "  }\n  sync_cluster();\n  if (t == 0) {\n    barrier_init");
  EXPECT_THAT(told(send(filled, b)), IsEmpty());
  const Report report = send(filled.with("    fence_barriers();\n", "    \n"), b);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::missing_fence) << report.defects[0].message;
  EXPECT_EQ(report.defects[0].first.line, filled.line_of("make"));
  EXPECT_EQ(report.defects[0].second.line, filled.line_of("send"));
}

// Blocks that meet need not have waited for what one sends to the other.
TEST(EmulatedCluster, FindsBulkCopiesToAnotherBlockThatNobodyWaitsFor) {
  std::vector<int32_t> b(64);
  const Report report = send(kSend.with("  } else {", "  }\n  sync_cluster();\n  if (block_of_cluster() == 1) {")
                                 .with("barrier_wait(full, 0);", ""),
                             b);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::pending_copy) << report.defects[0].message;
}

}  // namespace
}  // namespace tilepilot::emulator::testing
