// What orders less than it seems to: arrivals without a wait, barriers of some copies, waits for products, fences that
// come too late.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string before, after;
  DefectKind kind;
  std::string first, second;  // lines
};

// The kernel is right, and each change of it is found.
void expect_found(const KernelText& kernel, const Setting& setting, const std::vector<Case>& cases) {
  std::vector<int32_t> a(4096), b(4096);
  const auto run = [&](const KernelText& text) {
    std::fill(a.begin(), a.end(), 0);
    return run_kernel(text, setting, Buffers().add("A", a).add("B", b));
  };
  EXPECT_THAT(told(run(kernel)), IsEmpty());
  for (const Case& one : cases) {
    const Report report = run(kernel.with(one.before, one.after));
    ASSERT_FALSE(report.defects.empty()) << "nothing is found with " << one.after << " for " << one.before;
    const Defect& defect = report.defects[0];
    EXPECT_EQ(defect.kind, one.kind) << one.before << " -> " << one.after << "\n" << defect.message;
    EXPECT_EQ(defect.first.line, kernel.line_of(one.first)) << one.before << "\n" << defect.message;
    EXPECT_EQ(defect.second.line, kernel.line_of(one.second)) << one.before << "\n" << defect.message;
  }
}

// One warp gives, another one takes, and says that it has.
const KernelText kHandOver{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 32);
  const int32_t t = threadIdx.x;
  if (t < 32) {
    tile[t] = t;  // give
    arrive_named(1, 64);  // given
    sync_named(2, 64);  // taken
    tile[t] = 0;  // again
  } else {
    sync_named(1, 64);  // wait
    B[t] = tile[63 - t];  // take
    arrive_named(2, 64);  // done
  }
}
)"};

TEST(PartialOrder, OfArrivalsAtNamedBarriers) {
  const std::string taken = "sync_named(2, 64);  // taken", given = "arrive_named(1, 64);  // given";
  expect_found(kHandOver, {.threads = 64, .shared_bytes = 128},
               {{taken, "arrive_named(2, 64);", DefectKind::data_race, "again", "take"},
                {given, "arrive_named(1, 64); tile[t] = t + 1;  // given", DefectKind::data_race, "given", "take"}});
}

TEST(PartialOrder, NamedBarriersAreMisused) {
  const std::string given = "arrive_named(1, 64);  // given";
  expect_found(
      kHandOver, {.threads = 64, .shared_bytes = 128},
      {{given, "if (t == 0) { arrive_named(1, 64); arrive_named(1, 64); }  // given", DefectKind::barrier_misuse,
        "given", "given"},
       {given, "if (t == 0) { arrive_named(1, 33); }  // given", DefectKind::barrier_misuse, "given", "given"}});
}

// Two copies, each with a barrier of its own; a warp that has waited for one knows nothing of the other.
const KernelText kTwoCopies{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 64);
  shared_array<int32_t> other = shared_tile<int32_t>(256, 64);
  shared_array<uint64_t> full = shared_tile<uint64_t>(512, 2);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init(full + 1, 1);
    fence_barriers();
  }
  sync_threads();
  if (t == 0) {
    barrier_arrive_expect(full, 256);
    bulk_load(tile, A + 0, 256, full);  // fetch
    barrier_arrive_expect(full + 1, 256);
    bulk_load(other, A + 64, 256, full + 1);  // fetch other
  }
  barrier_wait(full, 0);  // wait
  barrier_wait(full + 1, 0);
  B[t] = tile[t];  // use
  B[t + 64] = other[t];
}
)"};

TEST(PartialOrder, OfCopiesWithBarriersOfTheirOwn) {
  expect_found(
      kTwoCopies, {.threads = 64, .shared_bytes = 528},
      {{"barrier_wait(full, 0);", "if (t < 32) barrier_wait(full, 0);", DefectKind::data_race, "fetch", "use"},
       {"barrier_wait(full, 0);", "if (t >= 32) barrier_wait(full, 0);", DefectKind::pending_copy, "fetch", "use"}});
}

TEST(PartialOrder, BarriersAreWrittenOver) {
  const KernelText wrong = kTwoCopies.with(
      "  sync_threads();\n",
      "  sync_threads(); if (t == 0) { shared_tile<int32_t>(512, 1)[0] = 0;  // over\n }\n  sync_threads();\n");
  std::vector<int32_t> a(128), b(128);
  const Report report = run_kernel(wrong, {.threads = 64, .shared_bytes = 528}, Buffers().add("A", a).add("B", b));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::barrier_misuse) << report.defects[0].message;
  EXPECT_THAT(report.defects[0].message, HasSubstr("was written over at"));
  EXPECT_EQ(report.defects[0].first.line, wrong.line_of("over"));
}

// The thread that fetches has to know that its barrier was announced.
TEST(PartialOrder, OfBarriersThatAreAnnounced) {
  const KernelText kernel = kTwoCopies.with("    fence_barriers();\n  }\n  sync_threads();\n  if (t == 0) {",
                                            "    fence_barriers();\n  }\n  sync_threads();\n  if (t == 32) {");
  std::vector<int32_t> a(128), b(128);
  const Setting setting{.threads = 64, .shared_bytes = 528};
  EXPECT_THAT(told(run_kernel(kernel, setting, Buffers().add("A", a).add("B", b))), IsEmpty());
  const KernelText wrong = kernel.with("    fence_barriers();\n  }\n  sync_threads();\n",
                                       "  }\n  sync_threads();\n  if (t == 0) { fence_barriers(); }\n");
  const Report report = run_kernel(wrong, setting, Buffers().add("A", a).add("B", b));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::missing_fence) << report.defects[0].message;
}

// What threads copy is theirs until they fence it, though a barrier tells that it is there.
const KernelText kCopied{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 128);
  shared_array<uint64_t> full = shared_tile<uint64_t>(512, 1);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 32);
  }
  sync_threads();
  if (t < 32) {
    async_copy<16>(tile + t * 4, A + t * 4);  // copy
    barrier_arrive_copied(full);
  } else {
    barrier_wait(full, 0);
    fence_async();  // fence
    sync_named(1, 32);
    if (t == 32) {
      bulk_store(B + 0, tile, 512);  // store
      commit_stores();
      wait_stores<0>();
    }
  }
}
)"};

TEST(PartialOrder, OfCopiesOfThreadsAndFences) {
  expect_found(
      kCopied, {.threads = 64, .shared_bytes = 520},
      {{"    fence_async();  // fence\n", "\n", DefectKind::missing_fence, "copy", "store"},
       {"    barrier_wait(full, 0);\n    fence_async();  // fence\n",
        "    fence_async();  // fence\n    barrier_wait(full, 0);\n", DefectKind::missing_fence, "copy", "store"}});
}

// A fence after what tells others of the write is none for them.
TEST(PartialOrder, OfFencesThatComeTooLate) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 32);
  const int32_t t = threadIdx.x;
  if (t < 32) {
    tile[t] = t;  // write
    fence_async();  // fence
    arrive_named(1, 64);  // tell
  } else {
    sync_named(1, 64);
    if (t == 32) {
      bulk_store(B + 0, tile, 128);  // store
      commit_stores();
      wait_stores<0>();
    }
  }
}
)"};
  expect_found(kernel, {.threads = 64, .shared_bytes = 128},
               {{"    fence_async();  // fence\n    arrive_named(1, 64);  // tell\n",
                 "    arrive_named(1, 64);  // tell\n    fence_async();  // fence\n", DefectKind::missing_fence,
                 "write", "store"}});
}

// Sums that TMA adds to are there when a thread has waited for them.
TEST(PartialOrder, OfSumsThatTheEngineAddsTo) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B, const __grid_constant__ tensor_map A_map) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 32);
  const int32_t t = threadIdx.x;
  tile[t] = t;
  fence_async();
  sync_threads();
  if (t == 0) {
    tma_add_1d(A_map, tile, 0);  // add
    commit_stores();
    wait_stores<0>();  // wait
    if (gridDim.x == 1) B[0] = A[31];  // use
  }
}
)"};
  const TensorMap map{.buffer = 0,
                      .rank = 1,
                      .element_bytes = 4,
                      .extents = {32},
                      .strides = {4},
                      .box = {32},
                      .type = static_cast<uint32_t>(emulated::operand::s32)};
  expect_found(kernel, {.threads = 32, .shared_bytes = 128, .maps = {map}},
               {{"wait_stores<0>();", "wait_stores_read<0>();", DefectKind::pending_copy, "add", "use"}});
  std::vector<int32_t> a(32), b(1);  // of several blocks
  EXPECT_THAT(told(run_kernel(kernel, {.threads = 32, .shared_bytes = 128, .grid = {3, 1, 1}, .maps = {map}},
                              Buffers().add("A", a).add("B", b))),
              IsEmpty());
  EXPECT_EQ(a[31], 93);
}

// Four warps make a product of tiles in shared memory, which others read and write.
const KernelText kProduct{R"(
extern "C" __global__ void __launch_bounds__(256) main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<float16> a = shared_tile<float16>(0, 1024);
  shared_array<float16> b = shared_tile<float16>(2048, 128);
  shared_array<int32_t> note = shared_tile<int32_t>(2304, 256);
  const int32_t t = threadIdx.x;
  registers<float, 4> sums;
  for (int i = t; i < 1024; i += 256) a[i] = float16{};  // fill
  if (t < 128) b[t] = float16{};
  fence_async();
  sync_threads();  // filled
  if (t < 128) {
    note[t] = t;  // note
    wgmma_fence();
    wgmma_m64n8k16_f32_f16_f16(&sums[0], matrix_place(a, 1024, 128, 0), matrix_place(b, 128, 256, 0), 0);  // product
    wgmma_commit();
    wgmma_wait<0>();  // wait
    for (int i = 0; i < 4; ++i) A[t * 4 + i] = int32_t(sums[i]);
  }
  sync_threads();  // made
  B[t] = note[(t & 127) ^ 1];  // read
  a[t] = float16{};  // again
}
)"};

TEST(PartialOrder, OfProducts) {
  const std::string wait = "    wgmma_wait<0>();  // wait\n", made = "  sync_threads();  // made\n";
  const Setting setting{.threads = 256, .shared_bytes = 3328};
  std::vector<int32_t> a(512), b(256);
  const auto run = [&](const KernelText& text) { return run_kernel(text, setting, Buffers().add("A", a).add("B", b)); };
  EXPECT_THAT(told(run(kProduct)), IsEmpty());
  // Products that are waited for order nothing else of their warp.
  const KernelText unordered = kProduct.with(made, "\n")
                                   .with("B[t] = note[(t & 127) ^ 1];", "if (t < 128) B[t] = note[t ^ 1];")
                                   .with("  a[t] = float16{};  // again\n", "\n");
  const Report report = run(unordered);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].first.line, kProduct.line_of("note")) << report.defects[0].message;
  EXPECT_EQ(report.defects[0].second.line, kProduct.line_of("read")) << report.defects[0].message;
  // One that goes on while threads meet, and read what it reads, still reads.
  const KernelText late =
      kProduct
          .with("    wgmma_wait<0>();  // wait\n    for (int i = 0; i < 4; ++i) A[t * 4 + i] = int32_t(sums[i]);\n",
                "\n\n")
          .with("  a[t] = float16{};  // again\n",
                "  float16 x = a[t]; sync_threads(); a[t] = x;  // again\n  if (t < 128) wgmma_wait<0>();\n");
  const Report under_way = run(late);
  ASSERT_FALSE(under_way.defects.empty());
  EXPECT_EQ(under_way.defects[0].kind, DefectKind::data_race) << under_way.defects[0].message;
  EXPECT_EQ(under_way.defects[0].first.line, kProduct.line_of("product"));
}

// The four warps of a group make a product together.
TEST(PartialOrder, ProductsAreMadeByAllWarpsOfAGroup) {
  std::vector<int32_t> a(512), b(256);
  const auto message_of = [&](const KernelText& text) -> std::string {
    const Report report = run_kernel(text, {.threads = 256, .shared_bytes = 3328}, Buffers().add("A", a).add("B", b));
    for (const Defect& defect : report.defects) {
      if (defect.kind != DefectKind::divergence) continue;
      EXPECT_EQ(defect.second.line, kProduct.line_of("product"));
      return defect.message;
    }
    return "";
  };
  EXPECT_EQ(message_of(kProduct), "");
  const std::string before = "    wgmma_m64n8k16";
  EXPECT_THAT(message_of(kProduct.with(before, "    if (t < 96) wgmma_m64n8k16")),
              HasSubstr("executes a wgmma without others of its warpgroup, who execute 1, 1, 1 and 0"));
  EXPECT_THAT(message_of(kProduct.with("matrix_place(b, 128, 256, 0), 0);", "matrix_place(b, 128, 256, 0), t >= 32);")),
              HasSubstr("executes another wgmma than warp"));
}

}  // namespace
}  // namespace tilepilot::emulator::testing
