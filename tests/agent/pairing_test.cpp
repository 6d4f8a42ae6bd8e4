// How attempts stand to one another, by paired measurements.
#include "agent/generate/pairing.h"

#include <gmock/gmock.h>

#include "agent/generate/finalists.h"

namespace tilepilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Attempt timed(double speedup, std::vector<Pairing> pairings = {}) {
  Attempt attempt{{"", ""}, {}, {}};
  attempt.verdict.outcome = eval::Outcome::verified;
  attempt.verdict.candidate = eval::Timing{100 / speedup, 100 / speedup, 100 / speedup, 3};
  attempt.verdict.eager = eval::Timing{100, 100, 100, 3};
  attempt.verdict.speedup_low = 0.9 * speedup;
  attempt.verdict.speedup_high = 1.1 * speedup;
  attempt.pairings = std::move(pairings);
  return attempt;
}

TEST(Pairings, KeepsTheOlderOfTwoThatCannotBeToldApart) {
  // By its own measurement the second is three times as fast; beside the first it is not.
  EXPECT_EQ(best_of({timed(2), timed(6, {{0, 1.1, 0.9, 1.3}})}), 0u);
  EXPECT_EQ(best_of({timed(2), timed(6, {{0, 1.01, 1.005, 1.015}})}), 0u);
  EXPECT_EQ(best_of({timed(6), timed(2, {{0, 1.2, 1.1, 1.3}})}), 1u);
  EXPECT_EQ(best_of({timed(6), timed(2, {{0, 1.2, 1.1, 1.3}}), timed(9, {{1, 0.8, 0.7, 0.9}})}), 1u);
  EXPECT_EQ(best_of({timed(2), timed(6)}), 1u);  // nothing better is known
}

TEST(Pairings, AsksForPairingsWhereOwnMeasurementsAreNotFarApart) {
  EXPECT_TRUE(wants_pairing(timed(6).verdict, timed(2).verdict));      // before it takes the place of the best
  EXPECT_TRUE(wants_pairing(timed(1.81).verdict, timed(2).verdict));   // intervals overlap
  EXPECT_TRUE(wants_pairing(timed(1.61).verdict, timed(2).verdict));   // within the margin
  EXPECT_FALSE(wants_pairing(timed(1.59).verdict, timed(2).verdict));  // neither
  eval::Verdict failed;
  EXPECT_FALSE(wants_pairing(failed, timed(2).verdict));
}

TEST(Pairings, ReadsPairingsBothWays) {
  const std::vector<Attempt> attempts = {timed(2), timed(2, {{0, 2, 1.6, 2.5}})};
  EXPECT_EQ(relation_of(attempts, 1, 0), Relation::faster);
  EXPECT_EQ(relation_of(attempts, 0, 1), Relation::slower);
  const auto inverse = pairing_of(attempts, 0, 1);
  ASSERT_TRUE(inverse);
  EXPECT_DOUBLE_EQ(inverse->low, 0.4);
  EXPECT_DOUBLE_EQ(inverse->high, 0.625);
}

TEST(Pairings, PutsAllAttemptsOnOneScale) {
  const auto speeds = relative_speeds({timed(2), timed(9, {{0, 1.5, 1.4, 1.6}}), timed(1, {{1, 2, 1.9, 2.1}})});
  EXPECT_DOUBLE_EQ(speeds[1].speed, 3);
  EXPECT_DOUBLE_EQ(speeds[2].speed, 6);
  EXPECT_DOUBLE_EQ(speeds[2].low, 5.7);
}

TEST(Pairings, TakesRatiosOfTheSessionsRoundsBeforeThoseToEager) {
  std::vector<eval::Verdict> verdicts = {timed(2).verdict, timed(4).verdict, eval::Verdict()};
  auto pairings = pairings_in(verdicts, {3, 5});
  ASSERT_EQ(pairings.size(), 1u);  // one of them failed
  EXPECT_EQ(pairings[0].other, 3u);
  EXPECT_DOUBLE_EQ(pairings[0].ratio, 0.5);
  verdicts[0].paired = {{1, 0.75, 0.7, 0.8}};
  pairings = pairings_in(verdicts, {3, 5});
  EXPECT_DOUBLE_EQ(pairings[0].ratio, 0.75);
  EXPECT_DOUBLE_EQ(pairings[0].high, 0.8);
}

// An attempt with a lucky number of its own is no finalist where its pairing says that it is slower.
TEST(Finalists, AreChosenByStanding) {
  EXPECT_THAT(choose_finalists({timed(2), timed(3, {{0, 1.5, 1.4, 1.6}}), timed(9, {{1, 0.5, 0.45, 0.55}}),
                                timed(2.5, {{1, 0.97, 0.9, 1.05}})}),
              ElementsAre(1, 3));
}

TEST(Finalists, AreToldApartByTheirRatiosInTheSession) {
  std::vector<Attempt> attempts = {timed(2), timed(2.1)};
  for (Attempt& attempt : attempts) attempt.compared = attempt.verdict;
  ASSERT_TRUE(rank_finalists(attempts, {1, 0}));
  EXPECT_THAT(rank_finalists(attempts, {1, 0})->indistinguishable, ElementsAre(0));
  attempts[0].compared->paired = {{0, 0.95, 0.94, 0.96}};
  EXPECT_THAT(rank_finalists(attempts, {1, 0})->indistinguishable, IsEmpty());
}

}  // namespace
}  // namespace tilepilot::agent
