// Numbers that programs leave open, and the search over them.
#include "agent/generate/tuning.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <functional>

namespace tilepilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Tunables, AreLinesThatNameOtherValues) {
  const std::string source =
      "import x\n"
      "BLOCK_M = 64  # tune: 32, 64, 128\n"
      "def f():\n"
      "    order = 'row'   #tune:'row','column'\n"
      "    fast = True # tune: True, False\n";
  const auto tunables = tunables_of(source);
  ASSERT_EQ(tunables.size(), 3u);
  EXPECT_EQ(tunables[0].name, "BLOCK_M");
  EXPECT_EQ(tunables[0].value, "64");
  EXPECT_THAT(tunables[0].others, ElementsAre("32", "128"));
  EXPECT_THAT(tunables[1].others, ElementsAre("'column'"));
  EXPECT_THAT(tunables[2].others, ElementsAre("False"));
  const std::string changed = with_value(source, tunables[0], "128");
  EXPECT_EQ(changed.substr(9, 34), "BLOCK_M = 128  # tune: 32, 64, 128");
  EXPECT_EQ(tunables_of(changed)[0].value, "128");
  EXPECT_EQ(changed.size(), source.size() + 1);
}

TEST(Tunables, AreNotWhatLooksAlike) {
  for (const char* line :
       {"# tune: 1, 2", "A = 1  # tune:", "A = 1  # tune: 1", "A = f(1)  # tune: 1, 2", "A = 1  # tune: f(2)",
        "A == 1  # tune: 2", "A = 1  # tune: 2; import os", "A[0] = 1  # tune: 2", "A = 1, 2  # tune: 3",
        "A = 1  # tune: 'it''s', 2", "A = 1  # retune: 2", "A += 1  # tune: 2", "A = 1  # tune: 2,, 3"})
    EXPECT_THAT(tunables_of(std::string(line) + "\n"), IsEmpty()) << line;
  EXPECT_THAT(tunables_of(std::string(100'000, 'x')), IsEmpty());
  EXPECT_THAT(tunables_of("A = 1  # tune: " + std::string(100'000, '1')), IsEmpty());
}

TEST(Tunables, KeepWhatTheLineHeldAmongItsChoices) {
  const std::string source = "A = 8  # tune: 16, 32\nB = 1\n";
  const std::string changed = with_value(source, tunables_of(source)[0], "32");
  EXPECT_EQ(changed, "A = 32  # tune: 16, 32, 8\nB = 1\n");
  EXPECT_THAT(tunables_of(changed)[0].others, ElementsAre("16", "8"));
  const std::string last = "A = 8  # tune: 16";
  EXPECT_EQ(with_value(last, tunables_of(last)[0], "16"), "A = 16  # tune: 16, 8");
}

// Judges programs by a rule: how fast a program of these values is; 0: it fails.
std::vector<Attempt> search(const std::string& first, int variants,
                            const std::function<double(const std::vector<int>&)>& speed_of) {
  Tuner tuner(variants);
  std::vector<Attempt> history;
  auto judge = [&](Candidate candidate) {
    std::vector<int> values;
    for (const Tunable& tunable : tunables_of(candidate.source)) values.push_back(std::stoi(tunable.value));
    Attempt attempt{std::move(candidate), {}, {}};
    const double speed = speed_of(values);
    attempt.verdict.outcome = speed > 0 ? eval::Outcome::verified : eval::Outcome::compile_error;
    if (speed > 0) attempt.verdict.candidate = eval::Timing{100 / speed, 100 / speed, 100 / speed, 3};
    attempt.verdict.eager = eval::Timing{100, 100, 100, 3};
    history.push_back(std::move(attempt));
  };
  judge({first, "first"});
  while (auto variant = tuner.next(history)) judge(*variant);
  return history;
}

const char* const kTwoNumbers = "A = 1  # tune: 1, 2, 3\nB = 10  # tune: 10, 20\n";

TEST(Tuner, FindsTheFastestOneNameAfterTheOther) {
  const auto history = search(kTwoNumbers, 20, [](const std::vector<int>& values) {
    return values[0] == 2 && values[1] == 20 ? 5.0 : values[0] == 2 ? 3.0 : values[0] == 3 ? 0.0 : 1.0;
  });
  // A = 2 is better, A = 3 fails; then B = 20 on top of A = 2; then once more around.
  ASSERT_EQ(history.size(), 6u);
  EXPECT_EQ(history[1].candidate.summary, "attempt 1 with A = 2");
  EXPECT_EQ(history[2].candidate.summary, "attempt 2 with A = 3");
  EXPECT_EQ(history[3].candidate.summary, "attempt 2 with B = 20");
  EXPECT_EQ(history[3].candidate.source, "A = 2  # tune: 1, 2, 3\nB = 20  # tune: 10, 20\n");
  EXPECT_EQ(history[3].candidate.changes, std::optional<size_t>(1));
  EXPECT_TRUE(history[3].candidate.is_variant);
  EXPECT_EQ(history[4].candidate.summary, "attempt 4 with A = 1");
}

TEST(Tuner, KeepsToItsNumberOfVariants) {
  auto same = [](const std::vector<int>&) { return 1.0; };
  EXPECT_EQ(search(kTwoNumbers, 2, same).size(), 3u);
  EXPECT_EQ(search(kTwoNumbers, 0, same).size(), 1u);
  EXPECT_EQ(search(kTwoNumbers, 100, same).size(), 4u);
  EXPECT_EQ(search("no number\n", 100, same).size(), 1u);
  EXPECT_EQ(search(kTwoNumbers, 100, [](const std::vector<int>&) { return 0.0; }).size(), 1u);
}

// A variant that looks twice as fast, in another session, and is not beside what it varies.
TEST(Tuner, GoesOnFromWhatIsFasterBesideIt) {
  for (const bool faster : {false, true}) {
    Tuner tuner(8);
    auto timed = [](const Candidate& candidate, double us) {
      Attempt attempt{candidate, {}, {}};
      attempt.verdict.outcome = eval::Outcome::verified;
      attempt.verdict.candidate = eval::Timing{us, us, us, 3};
      attempt.verdict.eager = eval::Timing{100, 100, 100, 3};
      return attempt;
    };
    std::vector<Attempt> history = {timed({kTwoNumbers, "first"}, 40)};
    history.push_back(timed(*tuner.next(history), faster ? 80 : 20));
    history.back().pairings = {{0, faster ? 1.2 : 1.0, faster ? 1.1 : 0.9, faster ? 1.3 : 1.1}};
    EXPECT_EQ(tuner.next(history)->changes, std::optional<size_t>(faster ? 1 : 0));
  }
}

TEST(Tuner, LeavesSlowProgramsAlone) {
  auto verified = [](const std::string& source, double us) {
    Attempt attempt{{source, ""}, {}, {}};
    attempt.verdict.outcome = eval::Outcome::verified;
    attempt.verdict.candidate = eval::Timing{us, us, us, 3};
    attempt.verdict.eager = eval::Timing{100, 100, 100, 3};
    return attempt;
  };
  Tuner tuner(8);
  EXPECT_FALSE(tuner.next({}));
  EXPECT_FALSE(tuner.next({verified("fast\n", 10), verified(kTwoNumbers, 20)}));
  EXPECT_TRUE(tuner.next({verified("fast\n", 10), verified(kTwoNumbers, 11)}));
}

// On a busy machine a ratio below the limit may be nothing but noise: the end of its interval decides.
TEST(Tuner, RunsWhereTheProgramMayBeAboutAsFastAsTheBest) {
  for (const double high : {0.79, 2.18}) {
    std::vector<Attempt> history(2);
    for (Attempt& attempt : history) {
      attempt.candidate.source = kTwoNumbers;
      attempt.verdict.outcome = eval::Outcome::verified;
      attempt.verdict.candidate = attempt.verdict.eager = eval::Timing{100, 100, 100, 3};
    }
    history[1].pairings = {{0, 0.75, 0.46, high}};
    EXPECT_EQ(Tuner(8).next(history).has_value(), high > 0.8);
  }
}

}  // namespace
}  // namespace tilepilot::agent
