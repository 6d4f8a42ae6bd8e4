// Shadow and clocks find the first race of random executions exactly where a check against all earlier accesses does.
#include "compiler/emulator/order/shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tilepilot::emulator {
namespace {

constexpr int kThreads = 70;  // three warps, the last one short
constexpr int64_t kBytes = 24;

// Full vector clocks and all accesses: slow and plain.
class Model {
 public:
  Model() {
    for (int t = 0; t < kThreads; ++t) clocks_[size_t(t)][size_t(t)] = 1;
  }
  void join(const std::vector<uint16_t>& members) {
    Row all{};
    for (const uint16_t member : members)
      for (size_t k = 0; k < all.size(); ++k) all[k] = std::max(all[k], clocks_[member][k]);
    for (const uint16_t member : members) {
      clocks_[member] = all;
      ++clocks_[member][member];
    }
  }
  // True if something earlier is unordered with it.
  bool access(int thread, int64_t at, int64_t bytes, bool write) {
    bool races = false;
    for (const Access& earlier : accesses_) {
      const bool overlap = earlier.at < at + bytes && at < earlier.at + earlier.bytes;
      const bool known = clocks_[size_t(thread)][size_t(earlier.thread)] >= earlier.clock;
      races |= overlap && (write || earlier.write) && earlier.thread != thread && !known;
    }
    accesses_.push_back({thread, clocks_[size_t(thread)][size_t(thread)], at, bytes, write});
    return races;
  }

 private:
  using Row = std::array<uint32_t, kThreads>;
  struct Access {
    int thread;
    uint32_t clock;
    int64_t at, bytes;
    bool write;
  };
  std::array<Row, kThreads> clocks_{};
  std::vector<Access> accesses_;
};

// Steps until both find a race, or the end. The number of steps that were made.
int run_until_race(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return int(random() % uint32_t(n)); };
  Epochs epochs;
  Clocks clocks(kThreads, epochs);
  const Viewpoint view{&clocks};
  Shadow shadow(view, kBytes, true);
  Model model;
  const int used = 2 + below(kThreads - 1), joins = 2 + below(6);
  const auto thread = [&] { return below(used) * (kThreads / used); };
  for (int step = 0; step < 200; ++step) {
    if (below(joins) != 0) {
      std::vector<uint16_t> members;
      const int kind = below(3);
      for (int t = 0; t < kThreads; ++t)
        if (kind == 0 || (kind == 1 ? t / 32 == step % 3 : below(3) == 0)) members.push_back(uint16_t(t));
      if (members.empty()) continue;
      model.join(members);
      if (kind == 0)
        clocks.start_epoch();
      else
        clocks.join(members);
    } else {
      const int t = thread();
      const int64_t bytes = int64_t{1} << below(5), at = below(int(kBytes / bytes)) * bytes;
      const bool write = below(3) == 0;
      const bool races = model.access(t, at, bytes, write);
      const Findings found =
          shadow.access(at, bytes, write ? AccessKind::write : AccessKind::read, clocks.now(t, uint32_t(step)));
      EXPECT_EQ(found.conflict.has_value(), races) << "seed " << seed << " step " << step;
      if (races || found.conflict) return step;
    }
  }
  return 200;
}

TEST(Shadow, FindsTheFirstRace) {
  int64_t steps = 0;
  for (uint32_t seed = 0; seed < 1000 && !HasFailure(); ++seed) steps += run_until_race(seed);
  EXPECT_GT(steps, 1000 * 5);  // not all end at once
}

TEST(Shadow, KnowsWhatIsWrittenByTheByte) {
  Epochs epochs;
  Clocks clocks(1, epochs);
  const Viewpoint view{&clocks};
  Shadow shadow(view, 16, false);
  const Moment now = clocks.now(0, 1);
  shadow.access(4, 2, AccessKind::write, now);
  EXPECT_FALSE(shadow.access(4, 2, AccessKind::read, now).unwritten);
  EXPECT_EQ(shadow.access(4, 4, AccessKind::read, now).unwritten, 6);
  EXPECT_FALSE(shadow.access(4, 4, AccessKind::read, now).unwritten);  // told once
  EXPECT_EQ(shadow.access(0, 8, AccessKind::read, now).unwritten, 0);
}

TEST(Shadow, GuardsCopiesUntilTheyEnd) {
  Epochs epochs;
  Clocks clocks(2, epochs);
  const Viewpoint view{&clocks};
  Shadow shadow(view, 16, true);
  const Moment begun = clocks.now(0, 1);
  EXPECT_FALSE(shadow.begin_copy(0, 16, false, begun).conflict);
  shadow.end_copy(0, 8, begun, clocks.now(0, 1));
  EXPECT_FALSE(shadow.access(0, 8, AccessKind::read, clocks.now(0, 2)).conflict);
  EXPECT_EQ(shadow.access(8, 8, AccessKind::read, clocks.now(0, 2)).conflict->kind, ConflictKind::pending);
  EXPECT_EQ(shadow.access(0, 4, AccessKind::read, clocks.now(1, 3)).conflict->kind, ConflictKind::write_read);
}

TEST(Shadow, GuardsWhatIsReadAsynchronously) {
  Epochs epochs;
  Clocks clocks(2, epochs);
  const Viewpoint view{&clocks};
  Shadow shadow(view, 16, true);
  Moment begun = clocks.now(0, 1);
  shadow.begin_read(0, 16, begun);
  clocks.join(std::vector<uint16_t>{0, 1});
  EXPECT_EQ(shadow.access(0, 4, AccessKind::write, clocks.now(1, 2)).conflict->kind, ConflictKind::read_write);
  EXPECT_EQ(shadow.access(4, 4, AccessKind::write, clocks.now(0, 2)).conflict->kind, ConflictKind::read_write);
  shadow.end_read(8, 8, begun, clocks.now(0, 1));
  EXPECT_FALSE(shadow.access(8, 4, AccessKind::write, clocks.now(0, 2)).conflict);
  clocks.join(std::vector<uint16_t>{0, 1});
  EXPECT_FALSE(shadow.access(12, 4, AccessKind::write, clocks.now(1, 2)).conflict);
}

TEST(FenceLog, KnowsWhatWasBefore) {
  Epochs epochs;
  Clocks clocks(2, epochs);
  FenceLog fences(clocks, 2);
  const Moment before = clocks.now(0, 1);
  EXPECT_FALSE(fences.covers(before, 1));
  fences.add(0);
  EXPECT_TRUE(fences.covers(before, 0));
  EXPECT_FALSE(fences.covers(before, 1));  // it does not know of the fence
  clocks.join(std::vector<uint16_t>{0, 1});
  EXPECT_TRUE(fences.covers(before, 1));
  const Moment after = clocks.now(0, 1);
  EXPECT_FALSE(fences.covers(after, 1));
  fences.add(1);  // before it knows of the write
  clocks.join(std::vector<uint16_t>{0, 1});
  EXPECT_FALSE(fences.covers(after, 1));
  fences.add(1);
  EXPECT_TRUE(fences.covers(after, 1));
  // A later fence that is not known takes nothing back.
  fences.add(0);
  EXPECT_TRUE(fences.covers(before, 1));
}

TEST(FenceLog, KeepsWhatWasBeforeABarrier) {
  Epochs epochs;
  Clocks clocks(3, epochs);
  FenceLog fences(clocks, 3);
  const Moment first = clocks.now(0, 1), second = clocks.now(2, 1);
  fences.add(0);
  clocks.start_epoch();
  EXPECT_TRUE(fences.covers(first, 1));
  EXPECT_FALSE(fences.covers(second, 1));
  fences.add(1);
  clocks.start_epoch();
  EXPECT_TRUE(fences.covers(second, 0));
}

}  // namespace
}  // namespace tilepilot::emulator
