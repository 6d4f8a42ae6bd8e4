// Order between blocks by fences and atomic elements: right kernels, and each of them without something that it needs.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Change {
  std::string before, after;
};

// What the kernel is without something: as it is found, at which lines; "" for a right one.
struct Variant {
  std::vector<Change> changes;
  std::string first, second;
  DefectKind kind = DefectKind::data_race;
};

KernelText changed(KernelText kernel, const std::vector<Change>& changes) {
  for (const Change& change : changes) kernel = kernel.with(change.before, change.after);
  return kernel;
}

void expect(const KernelText& kernel, const Variant& variant, const Report& report) {
  std::string name;
  for (const Change& change : variant.changes) name += change.before + " -> " + change.after + "\n";
  if (variant.first.empty()) {
    EXPECT_THAT(told(report), IsEmpty()) << name;
    return;
  }
  ASSERT_FALSE(report.defects.empty()) << "nothing is found in " << name;
  const Defect& defect = report.defects[0];
  EXPECT_EQ(defect.kind, variant.kind) << name << defect.message;
  EXPECT_EQ(defect.first.line, kernel.line_of(variant.first)) << name << defect.message;
  EXPECT_EQ(defect.second.line, kernel.line_of(variant.second)) << name << defect.message;
}

// The last block to come adds up what all threads of all blocks have left.
const KernelText kLastBlock{R"(
extern "C" __global__ void main_0(global_array<int32_t> parts, global_array<int32_t> count, global_array<int32_t> sum) {
  shared_array<int32_t> last = shared_tile<int32_t>(0, 1);
  const int32_t t = threadIdx.x;
  parts[blockIdx.x * 64 + t] = blockIdx.x + t;  // part
  sync_threads();  // written
  if (t == 0) {
    fence_device();  // release
    last[0] = atomic_update<add_update>(count + 0, 1) == gridDim.x - 1;  // counted
    fence_device();  // acquire
  }
  sync_threads();  // known
  if (last[0]) {
    int32_t all = 0;
    for (int b = 0; b < gridDim.x; ++b) all += parts[b * 64 + 63 - t];  // sum
    sum[t] = all;
    if (t == 0) { count[0] = 0; }  // reset
  }
}
)"};

TEST(Fences, OrderWhatBlocksLeaveForTheLast) {
  const Change no_release{"    fence_device();  // release\n", "\n"},
      no_acquire{"    fence_device();  // acquire\n", "\n"};
  const std::string written = "  sync_threads();  // written\n", known = "  sync_threads();  // known\n";
  for (const Variant& variant : std::vector<Variant>{
           {{}, "", ""},
           {{no_release}, "part", "sum"},
           {{no_acquire}, "part", "sum"},
           // The thread that fences knows nothing of the others.
           {{{written, "\n"}}, "part", "sum"},
           {{{written, "  sync_warp();\n"}}, "part", "sum"},
           // Fences of all threads are in one order, wherever in the block they are.
           {{{written, "  fence_device(); sync_threads();\n"}, no_release}, "", ""},
           {{{known, "  sync_threads(); fence_device();\n"}, no_acquire}, "", ""},
           // Only of those who fenced themselves.
           {{{written, "  if (t < 32) fence_device(); sync_threads();\n"}, no_release}, "part", "sum"},
           {{{known, "  sync_threads(); if (t < 32) fence_device();\n"}, no_acquire}, "part", "sum"},
       }) {
    std::vector<int32_t> parts(4 * 64), count(8), sum(64);
    const KernelText kernel = changed(kLastBlock, variant.changes);
    const Report report = run_kernel(kernel, {.threads = 64, .shared_bytes = 4, .grid = {4, 1, 1}},
                                     Buffers().add("parts", parts).add("count", count).add("sum", sum));
    expect(kLastBlock, variant, report);
    if (variant.first.empty()) { EXPECT_EQ(sum[0], 4 * 63 + 6); }
  }
}

// The count is taken before the fence; after it there is an update of another element.
TEST(Fences, OrderNothingThroughOtherElements) {
  const Variant variant{
      {{"    fence_device();  // release\n", "\n"},
       {"== gridDim.x - 1;  // counted",
        "== gridDim.x - 1; fence_device(); atomic_update<add_update>(count + (1 + blockIdx.x), 1);  // counted"}},
      "part",
      "sum"};
  std::vector<int32_t> parts(4 * 64), count(8), sum(64);
  const Report report =
      run_kernel(changed(kLastBlock, variant.changes), {.threads = 64, .shared_bytes = 4, .grid = {4, 1, 1}},
                 Buffers().add("parts", parts).add("count", count).add("sum", sum));
  expect(kLastBlock, variant, report);
}

// The first block tells the second one, and that the third.
const KernelText kChain{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> flags, global_array<int32_t> B) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      A[0] = 5;  // give
      fence_device();  // release 0
      atomic_update<put_update>(flags + 0, 1);  // flag 0
    } else if (blockIdx.x == 1) {
      atomic_read(flags + 0);  // see 0
      fence_device();  // pass
      atomic_update<put_update>(flags + 1, 1);  // flag 1
    } else {
      atomic_read(flags + 1);  // see 1
      fence_device();  // acquire 1
      B[0] = A[0];  // use
    }
  }
}
)"};

TEST(Fences, PassOnWhatTheyOrder) {
  const std::string pass = "      fence_device();  // pass\n";
  for (const Variant& variant : std::vector<Variant>{
           {{}, "", ""},
           {{{pass, "\n"}}, "give", "use"},
           {{{"atomic_read(flags + 0);", "fence_device();"}, {pass, "      atomic_read(flags + 0);\n"}}, "give", "use"},
           {{{"atomic_read(flags + 0);", ""}}, "give", "use"},
           {{{"atomic_read(flags + 1);", ""}}, "give", "use"},
           {{{"flags + 1, 1", "flags + 2, 1"}}, "give", "use"},
           {{{"atomic_read(flags + 0);", "A[1] = flags[0];"}}, "flag 0", "see 0"},
           // An update sees, and lets others see, what was before it.
           {{{"atomic_read(flags + 0);  // see 0\n", "\n"},
             {pass, "\n"},
             {"flags + 1, 1);  // flag 1", "flags + 0, 1);  // flag 1"},
             {"atomic_read(flags + 1);", "atomic_read(flags + 0);"}},
            "",
            ""},
           // A plain write does not.
           {{{pass, "\n"},
             {"atomic_update<put_update>(flags + 1, 1);",
              "flags[0] = 1; fence_device(); "
              "atomic_update<put_update>(flags + 1, 1);"},
             {"atomic_read(flags + 1);", "atomic_read(flags + 1); fence_device(); atomic_read(flags + 0);"}},
            "",
            ""},
       }) {
    std::vector<int32_t> a(2), flags(3), b(1);
    const Report report = run_kernel(changed(kChain, variant.changes), {.grid = {3, 1, 1}},
                                     Buffers().add("A", a).add("flags", flags).add("B", b));
    expect(kChain, variant, report);
    if (variant.first.empty()) { EXPECT_EQ(b[0], 5); }
  }
}

// What nobody acquires is ordered before nothing, though the write that follows it is.
TEST(Fences, OrderNoUpdateBehindAPlainWrite) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> flags, global_array<int32_t> B) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      A[0] = 5;  // give
      fence_device();
      atomic_update<put_update>(flags + 0, 1);
    } else if (blockIdx.x == 1) {
      fence_device();
      atomic_read(flags + 0);
      flags[0] = 2;  // again
      fence_device();  // told
      atomic_update<put_update>(flags + 1, 1);
    } else {
      atomic_read(flags + 1);
      fence_device();
      atomic_read(flags + 0);
      fence_device();
      B[0] = A[0];  // use
    }
  }
}
)"};
  std::vector<int32_t> a(1), flags(2), b(1);
  const auto run = [&](const KernelText& text) {
    return run_kernel(text, {.grid = {3, 1, 1}}, Buffers().add("A", a).add("flags", flags).add("B", b));
  };
  EXPECT_THAT(told(run(kernel)), IsEmpty());
  // The fence that makes the second block know of the write above is not there: what it puts tells of its own alone.
  const Report report = run(kernel.with("      fence_device();  // told\n", "\n"));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].first.line, kernel.line_of("again")) << report.defects[0].message;
}

// Two blocks read what a third one writes, when both have said that they are done.
TEST(Fences, OrderReadsBeforeWrites) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> count, global_array<int32_t> B) {
  if (blockIdx.x < 3) {
    B[blockIdx.x * 32 + threadIdx.x] = A[0];  // read
    sync_threads();
    if (threadIdx.x == 0) {
      if (blockIdx.x != 5) { fence_device(); }  // release
      atomic_update<add_update>(count + 0, 1);
    }
  } else if (threadIdx.x == 0) {
    atomic_read(count + 0);
    fence_device();
    A[0] = 7;  // write
  }
}
)"};
  for (const Variant& variant : std::vector<Variant>{{{}, "", ""},
                                                     {{{"!= 5", "!= 0"}}, "read", "write"},
                                                     {{{"!= 5", "!= 1"}}, "read", "write"},
                                                     {{{"!= 5", "!= 2"}}, "read", "write"},
                                                     {{{"    sync_threads();\n", "\n"}}, "read", "write"}}) {
    std::vector<int32_t> a(1), count(1), b(96);
    const Report report = run_kernel(changed(kernel, variant.changes), {.grid = {4, 1, 1}},
                                     Buffers().add("A", a).add("count", count).add("B", b));
    expect(kernel, variant, report);
  }
}

// Atomic accesses are no races among themselves, but with others.
TEST(Fences, AtomicAndPlainAccessesOfOneElement) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      B[0] = atomic_read(A + 0);  // first
    } else {
      atomic_update<add_update>(A + 0, 1);  // second
    }
  }
}
)"};
  const std::string first = "B[0] = atomic_read(A + 0);", second = "atomic_update<add_update>(A + 0, 1);";
  for (const Variant& variant : std::vector<Variant>{
           {{}, "", ""},
           {{{second, "A[0] = 1;"}}, "first", "second"},
           {{{first, "B[0] = A[0];"}}, "first", "second"},
           {{{first, "A[0] = 3;"}}, "first", "second"},
           {{{second, "B[1] = A[0];"}}, "", ""},
           {{{first, "atomic_update<add_update>(A + 0, 2);"}, {second, "B[1] = A[0];"}}, "first", "second"},
           // What one has seen is there.
           {{{first, "atomic_update<add_update>(A + 0, 2);"}, {second, "if (atomic_read(A + 0) == 2) A[0] = 0;"}},
            "",
            ""}}) {
    std::vector<int32_t> a(1), b(2);
    expect(kernel, variant,
           run_kernel(changed(kernel, variant.changes), {.grid = {2, 1, 1}}, Buffers().add("A", a).add("B", b)));
  }
}

// Blocks that stay, and hand rounds of work to each other.
const KernelText kRelay{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> flags) {
  const int32_t t = threadIdx.x, b = blockIdx.x, next = (b + 1) % gridDim.x;
  for (int round = 0; round < 3; ++round) {
    if (t == 0) {
      while (atomic_read(flags + b) != round + (b == 0 ? 0 : 1)) {}  // poll
      fence_device();  // acquire
    }
    sync_threads();  // begun
    A[t] = A[t] + 1;  // work
    A[64 + t] = A[64 + 63 - t];  // other
    sync_threads();  // done
    if (t == 0) {
      fence_device();  // release
      atomic_update<add_update>(flags + next, 1);  // hand on
    }
  }
}
)"};

TEST(Fences, OrderBlocksThatStay) {
  for (const Variant& variant : std::vector<Variant>{
           {{{"    A[64 + t] = A[64 + 63 - t];  // other\n", "\n"}}, "", ""},
           {{}, "other", "other"},  // of threads of one block
           {{{"    A[64 + t] = A[64 + 63 - t];  // other\n", "\n"}, {"      fence_device();  // acquire\n", "\n"}},
            "work",
            "work"},
           {{{"    A[64 + t] = A[64 + 63 - t];  // other\n", "\n"}, {"      fence_device();  // release\n", "\n"}},
            "work",
            "work"},
           {{{"    A[64 + t] = A[64 + 63 - t];  // other\n", "\n"}, {"    sync_threads();  // done\n", "\n"}},
            "work",
            "work"},
           {{{"    A[64 + t] = A[64 + 63 - t];  // other\n", "\n"}, {"    sync_threads();  // begun\n", "\n"}},
            "work",
            "work"}}) {
    std::vector<int32_t> a(128), flags(3);
    const KernelText kernel = changed(kRelay, variant.changes);
    const Report report = run_kernel(kernel, {.threads = 64, .grid = {3, 1, 1}, .cooperative = true},
                                     Buffers().add("A", a).add("flags", flags));
    expect(kRelay, variant, report);
    if (variant.first.empty()) { EXPECT_EQ(a[63], 9); }
  }
}

// A turn of another block is no barrier of this one.
TEST(Fences, ThreadsOfABlockAreNotOrderedByTurns) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> flags) {
  const int32_t t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) {
      A[0] = 1;  // write
    } else if (t == 32) {
      while (atomic_read(flags + 0) == 0) {}
      fence_device();
      A[1] = A[0];  // read
    }
  } else if (t == 0) {
    atomic_update<put_update>(flags + 0, 1);
  }
}
)"};
  std::vector<int32_t> a(2), flags(1);
  const Report report = run_kernel(kernel, {.threads = 64, .grid = {2, 1, 1}, .cooperative = true},
                                   Buffers().add("A", a).add("flags", flags));
  expect(kernel, {{}, "write", "read"}, report);
}

// What a thread gives to another block comes back to another thread of its own.
TEST(Fences, OrderThreadsThroughOtherBlocks) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> flags) {
  const int32_t t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) {
      A[0] = 1;  // write
      fence_device();  // release
      atomic_update<put_update>(flags + 0, 1);
    } else if (t == 32) {
      while (atomic_read(flags + 1) == 0) {}
      fence_device();  // acquire
      A[1] = A[0];  // read
    }
  } else if (t == 0) {
    while (atomic_read(flags + 0) == 0) {}
    fence_device();  // pass
    atomic_update<put_update>(flags + 1, 1);
  }
}
)"};
  for (const Variant& variant : std::vector<Variant>{{{}, "", ""},
                                                     {{{"      fence_device();  // release\n", "\n"}}, "write", "read"},
                                                     {{{"      fence_device();  // acquire\n", "\n"}}, "write", "read"},
                                                     {{{"    fence_device();  // pass\n", "\n"}}, "write", "read"}}) {
    std::vector<int32_t> a(2), flags(2);
    const Report report =
        run_kernel(changed(kernel, variant.changes), {.threads = 64, .grid = {2, 1, 1}, .cooperative = true},
                   Buffers().add("A", a).add("flags", flags));
    expect(kernel, variant, report);
  }
}

// What TMA stores is there when its thread has waited for more than the reading.
const KernelText kStored{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> flags, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 64);
  shared_array<uint64_t> full = shared_tile<uint64_t>(256, 1);
  const int32_t t = threadIdx.x;
  if (blockIdx.x == 0) {
    tile[t] = t;
    fence_async();
    sync_threads();
    if (t == 0) {
      bulk_store(A + 0, tile, 256);  // store
      commit_stores();
      wait_stores<0>();  // wait
      fence_device();  // release
      atomic_update<put_update>(flags + 0, 1);
    }
  } else {
    if (t == 0) {
      barrier_init(full, 1);
      fence_barriers();
      atomic_read(flags + 0);
      fence_device();
    }
    sync_threads();
    B[t] = A[t];  // use
  }
}
)"};

TEST(Fences, OrderStoresOfTheCopyEngine) {
  const std::string use = "    B[t] = A[t];  // use\n";
  const std::string fetch =
      "    if (t == 0) { barrier_arrive_expect(full, 256); bulk_load(tile, A + 0, 256, full); } "
      "barrier_wait(full, 0); B[t] = tile[t];  // use\n";
  for (const Variant& variant : std::vector<Variant>{
           {{}, "", ""},
           {{{"wait_stores<0>();", ""}}, "store", "store", DefectKind::pending_copy},
           {{{"wait_stores<0>();", "wait_stores_read<0>();"}}, "store", "use", DefectKind::pending_copy},
           {{{"      fence_device();  // release\n", "\n"}}, "store", "use"},
           {{{use, fetch}}, "", ""},
           {{{use, fetch}, {"wait_stores<0>();", "wait_stores_read<0>();"}}, "store", "use", DefectKind::pending_copy},
       }) {
    std::vector<int32_t> a(64), flags(1), b(64);
    const Report report =
        run_kernel(changed(kStored, variant.changes), {.threads = 64, .shared_bytes = 264, .grid = {2, 1, 1}},
                   Buffers().add("A", a).add("flags", flags).add("B", b));
    expect(kStored, variant, report);
    if (variant.first.empty()) { EXPECT_EQ(b[63], 63); }
  }
}

// TMA need not see what threads wrote to the buffer that it reads.
TEST(Fences, LetTheCopyEngineSeeWhatThreadsWrote) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<int32_t> tile = shared_tile<int32_t>(0, 64);
  shared_array<uint64_t> full = shared_tile<uint64_t>(256, 1);
  const int32_t t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    fence_barriers();
  }
  A[t] = t;  // write
  fence_async();  // fence
  sync_threads();
  if (t == 0) {
    barrier_arrive_expect(full, 256);
    bulk_load(tile, A + 0, 256, full);  // fetch
  }
  barrier_wait(full, 0);
  B[t] = tile[t];
}
)"};
  const Setting setting{.threads = 64, .shared_bytes = 264};
  for (const Variant& variant : std::vector<Variant>{
           {{}, "", ""}, {{{"  fence_async();  // fence\n", "\n"}}, "write", "fetch", DefectKind::missing_fence}}) {
    std::vector<int32_t> a(64), b(64);
    expect(kernel, variant, run_kernel(changed(kernel, variant.changes), setting, Buffers().add("A", a).add("B", b)));
  }
  std::vector<int32_t> a(64), b(64);
  const KernelText none = kernel.with("  A[t] = t;  // write\n", "\n");
  const Report report = run_kernel(none, setting, Buffers().add("A", a, false).add("B", b));
  expect(kernel, {{}, "fetch", "fetch", DefectKind::uninitialised_read}, report);
}

}  // namespace
}  // namespace tilepilot::emulator::testing
