// What blocks know of each other through fences and atomic elements is what the rules of the memory model say, applied
// to every pair of events of random executions.
#include "compiler/emulator/order/launch_order.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

#include "compiler/emulator/order/shadow.h"

namespace tilepilot::emulator {
namespace {

constexpr int kTeams = 4, kMembers = 3;  // blocks, and threads of each
constexpr int64_t kWords = 5;
constexpr size_t kMostEvents = 120;

enum class Kind { plain_read, plain_write, look, update, fence };

// All events, and of each all that are ordered before it: slow and plain.
class AllEvents {
 public:
  // Threads of a block meet: each is the last event of its thread from here on.
  void meet(const std::vector<int>& members) {
    Set all;
    for (const int member : members) all |= after_[size_t(member)];
    for (const int member : members) after_[size_t(member)] = all;
  }
  void fence(int thread) {
    Set before = after_[size_t(thread)];
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t f = 0; f < events_.size(); ++f) {
        if (events_[f].kind != Kind::fence || before[f] || !meets(f, before)) continue;
        before |= before_[f];
        before.set(f);
        grown = true;
      }
    }
    add({thread, Kind::fence, -1}, before);
  }
  // True if it races.
  bool access(int thread, Kind kind, int64_t word) {
    const Set before = after_[size_t(thread)];
    bool races = false;
    for (size_t k = 0; k < events_.size(); ++k)
      races |= events_[k].word == word && conflict(events_[k].kind, kind) && !before[k] &&
               !(events_[k].kind == Kind::update && is_seen(k, before));
    if (kind == Kind::plain_write) ++chains_[size_t(word)];
    add({thread, kind, word, chains_[size_t(word)]}, before);
    return races;
  }

 private:
  using Set = std::bitset<kMostEvents>;
  struct Event {
    int thread;
    Kind kind;
    int64_t word;
    int chain = 0;  // atomic accesses between two plain writes
  };
  static bool is_atomic(Kind kind) { return kind == Kind::look || kind == Kind::update; }
  static bool writes(Kind kind) { return kind == Kind::plain_write || kind == Kind::update; }
  static bool conflict(Kind a, Kind b) {
    return a != Kind::fence && (writes(a) || writes(b)) && !(is_atomic(a) && is_atomic(b));
  }
  // Some atomic access that is ordered has seen the update, or changed what saw it.
  bool is_seen(size_t update, const Set& before) const {
    for (size_t k = update + 1; k < events_.size(); ++k)
      if (before[k] && is_atomic(events_[k].kind) && events_[k].word == events_[update].word &&
          events_[k].chain == events_[update].chain)
        return true;
    return false;
  }
  // An update after the fence is seen by what is before.
  bool meets(size_t fence, const Set& before) const {
    for (size_t k = fence + 1; k < events_.size(); ++k)
      if (events_[k].kind == Kind::update && before_[k][fence] && is_seen(k, before)) return true;
    return false;
  }
  void add(const Event& event, const Set& before) {
    events_.push_back(event);
    before_.push_back(before);
    after_[size_t(event.thread)] = before;
    after_[size_t(event.thread)].set(events_.size() - 1);
  }

  std::vector<Event> events_;
  std::vector<Set> before_;
  std::array<Set, kTeams * kMembers> after_;  // of each thread, what is ordered before its next event
  std::array<int, kWords> chains_{};
};

// The emulator's own.
struct Launch {
  struct Team {
    Clocks clocks;
    HappensBefore order;
    Team(LaunchOrder& launch, bool together)
        : clocks(kMembers, launch.epochs), order(launch, clocks, kMembers, together) {}
  };
  LaunchOrder order;
  std::vector<std::unique_ptr<Team>> teams;
  const bool together;
  Viewpoint view;
  Shadow shadow{view, kWords * 4, true};
  std::array<char, kWords * 4> memory{};

  explicit Launch(bool all) : together(all) {
    for (int k = 0; k < (together ? kTeams : 1); ++k) teams.push_back(std::make_unique<Team>(order, together));
    for (const auto& team : teams) team->order.start({0, 0, 0});
    enter(0);
  }
  Team& team(int number) { return *teams[together ? size_t(number) : 0]; }
  void enter(int number) {
    Team& one = team(number);
    view = {&one.clocks, nullptr, &one.order, together ? order.epochs.last() + 1 : one.clocks.epoch()};
  }
  bool access(int number, int thread, Kind kind, int64_t word) {
    constexpr AccessKind kKinds[] = {AccessKind::read, AccessKind::write, AccessKind::atomic_read,
                                     AccessKind::atomic_update};
    Team& one = team(number);
    const Findings found = shadow.access(word * 4, 4, kKinds[size_t(kind)], one.clocks.now(thread, 1));
    if (found.overwrites_atomic) one.order.overwrite(memory.data() + word * 4, 4, false);
    if (kind == Kind::look || kind == Kind::update)
      one.order.access(thread, memory.data() + word * 4, false, kind == Kind::update);
    return found.conflict.has_value();
  }
};

// Until both find a race, or the end. The number of events before.
size_t run_until_race(uint32_t seed, bool together) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return int(random() % uint32_t(n)); };
  AllEvents all;
  Launch launch(together);
  int current = 0;
  const int turns = 2 + below(20), plain = 4 + below(12), words = 2 + below(int(kWords) - 1);
  for (size_t step = 0; step + 1 < kMostEvents; ++step) {
    if (below(turns) == 0 && (together || current + 1 < kTeams)) {
      current = together ? below(kTeams) : current + 1;
      if (!together) launch.team(0).order.start({current, 0, 0});
      launch.enter(current);
    }
    const int member = below(kMembers), thread = current * kMembers + member, kind = below(plain);
    const int64_t word = below(words);
    Launch::Team& team = launch.team(current);
    if (kind == 0) {
      const bool whole = below(2) == 0;
      std::vector<int> threads;
      std::vector<uint16_t> members;
      for (int k = 0; k < kMembers; ++k)
        if (whole || k != member) threads.push_back(current * kMembers + k), members.push_back(uint16_t(k));
      all.meet(threads);
      whole ? team.clocks.start_epoch() : team.clocks.join(members);
    } else if (kind == 1) {
      all.fence(thread);
      team.order.fence(member);
    } else {
      // The first words are mostly flags, the last data.
      const bool is_flag = below(8) == 0 ? word % 2 == 0 : word < words / 2 + 1 && word != words - 1;
      const Kind access = is_flag ? (below(2) == 0 ? Kind::look : Kind::update)
                                  : (below(3) == 0 ? Kind::plain_write : Kind::plain_read);
      const bool races = all.access(thread, access, word);
      const bool found = launch.access(current, member, access, word);
      EXPECT_EQ(found, races) << "seed " << seed << " step " << step << (together ? " together" : "");
      if (races || found) return step;
    }
  }
  return kMostEvents;
}

TEST(LaunchOrder, FindsTheFirstRace) {
  for (const bool together : {false, true}) {
    size_t steps = 0;
    for (uint32_t seed = 0; seed < 20000 && !HasFailure(); ++seed) steps += run_until_race(seed, together);
    EXPECT_GT(steps, 20000U * 8) << "most end at once";
  }
}

// Each block knows all before it through one that knows it: what that costs grows with their number, not its square.
TEST(LaunchOrder, KeepsWhatIsGivenOnce) {
  LaunchOrder launch;
  Clocks clocks(2, launch.epochs);
  HappensBefore order(launch, clocks, 2, false);
  std::vector<char> flags(4 * 4000);
  Moment first;
  for (int block = 0; block < 4000; ++block) {
    order.start({block, 0, 0});
    if (block == 0) first = clocks.now(1, 1), clocks.start_epoch();
    if (block > 0) order.access(0, flags.data() + 4 * (block - 1), false, false);
    order.fence(0);
    order.access(0, flags.data() + 4 * block, false, true);
  }
  EXPECT_TRUE(order.is_ordered(first, 0));
  EXPECT_FALSE(order.is_ordered(first, 1));
  for (const auto& [place, element] : launch.elements) EXPECT_EQ(element->releases.size(), 1U);
}

}  // namespace
}  // namespace tilepilot::emulator
