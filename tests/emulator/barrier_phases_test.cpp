// Waits for the wrong phase of a hardware barrier are named where they do harm, and only there.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The first thread fills a tile again and again, the other warp reads it each time.
const KernelText kRefilled{R"(
extern "C" __global__ void main_0(global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 4);
  shared_array<uint64_t> full = shared_tile<uint64_t>(16, 1);
  shared_array<uint64_t> empty = shared_tile<uint64_t>(24, 1);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init(empty, 32);
  }
  sync_threads();
  if (t == 0) {
    for (int round = 0; round < 6; ++round) {
      barrier_wait(empty, (round & 1) ^ 1);  // wait empty
      tile[0] = round;  // fill
      barrier_arrive(full);  // filled
    }
  } else if (t >= 32) {
    for (int round = 0; round < 6; ++round) {
      barrier_wait(full, round & 1);  // wait full
      B[round * 32 + t - 32] = tile[0];  // use
      barrier_arrive(empty);  // used
    }
  }
}
)"};

Report refill(const KernelText& kernel) {
  std::vector<int32_t> b(6 * 32);
  return run_kernel(kernel, {.threads = 64, .shared_bytes = 32}, Buffers().add("B", b));
}

const Defect* misuse_of(const Report& report) {
  for (const Defect& defect : report.defects)
    if (defect.kind == DefectKind::barrier_misuse) return &defect;
  return nullptr;
}

TEST(BarrierPhases, OfARingAreRight) { EXPECT_THAT(told(refill(kRefilled)), IsEmpty()); }

// The one who fills is through before the others look for the second time: their phase has another one's parity.
TEST(BarrierPhases, ThatAreTwoBehindAreNamed) {
  const KernelText kernel = kRefilled.with("barrier_wait(empty, (round & 1) ^ 1);", "");
  for (const std::string rounds : {"6", "5"}) {  // one ends in a deadlock, one in reads of what is written
    const Report report =
        refill(kernel.with("round < 6; ++round) {\n      ", "round < " + rounds + "; ++round) {\n      "));
    const Defect* misuse = misuse_of(report);
    ASSERT_NE(misuse, nullptr) << rounds << ::testing::PrintToString(told(report));
    EXPECT_EQ(misuse->first.line, kernel.line_of("wait full"));
    EXPECT_THAT(misuse->message, HasSubstr("of the barrier at byte 16 while that is already in phase " + rounds));
    EXPECT_EQ(misuse, &report.defects[0]) << "it comes before what comes of it";
  }
}

// Nothing is wrong with threads that only every third phase is for.
TEST(BarrierPhases, MayBeLeftOut) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 12);
  shared_array<uint64_t> full = shared_tile<uint64_t>(48, 1);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
  }
  sync_threads();
  for (int round = 0; round < 12; ++round) {
    if (t == 0) {
      tile[round] = round;  // fill
      barrier_arrive(full);
    }
    if (round % 3 == 0) {
      if (t >= 32) {
        barrier_wait(full, round & 1);  // wait
        B[round * 32 + t - 32] = tile[round];  // use
      }
      sync_threads();
    }
  }
}
)"};
  std::vector<int32_t> b(12 * 32);
  const Setting setting{.threads = 64, .shared_bytes = 56};
  EXPECT_THAT(told(run_kernel(kernel, setting, Buffers().add("B", b))), IsEmpty());
  EXPECT_EQ(b[9 * 32], 9);
}

TEST(BarrierPhases, BeforeTheFirstAreNamedWhereCopiesComeLater) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 64);
  shared_array<uint64_t> full = shared_tile<uint64_t>(256, 1);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    fence_barriers();
    barrier_arrive_expect(full, 256);
    bulk_load(tile, A + 0, 256, full);  // fetch
  }
  sync_threads();
  barrier_wait(full, 0);  // wait
  B[t] = tile[t];  // use
}
)"};
  std::vector<int32_t> a(64), b(64);
  const Setting setting{.threads = 64, .shared_bytes = 264};
  EXPECT_THAT(told(run_kernel(kernel, setting, Buffers().add("A", a).add("B", b))), IsEmpty());
  const Report report = run_kernel(kernel.with("barrier_wait(full, 0)", "barrier_wait(full, 1)"), setting,
                                   Buffers().add("A", a).add("B", b));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::barrier_misuse) << report.defects[0].message;
  EXPECT_EQ(report.defects[0].first.line, kernel.line_of("wait"));
  EXPECT_THAT(report.defects[0].message, HasSubstr("waits for the phase before the first one"));
  EXPECT_EQ(report.defects[1].kind, DefectKind::deadlock);  // the next phase of that parity never ends
}

}  // namespace
}  // namespace tilepilot::emulator::testing
