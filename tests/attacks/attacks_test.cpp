// The whole catalogue against the judge: each attack is caught for the reason that it names, each honest program
// passes. What is known to escape is marked in its file; a mark on what is caught fails.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/attacks/team.h"

namespace tilepilot::agent {
namespace {

// Those that share a judge, in parts.
struct Group {
  std::string name;
  std::vector<const Attack*> attacks;
};

std::vector<Group> groups() {
  constexpr size_t kAtMost = 12;
  std::vector<Group> all;
  std::string last;
  int part = 0;
  for (const Attack& attack : catalogue()) {
    const bool other = attack.model != last;
    if (other) part = 0;
    if (other || all.back().attacks.size() == kAtMost) all.push_back({fmt::format("{}_{}", attack.model, ++part), {}});
    all.back().attacks.push_back(&attack);
    last = attack.model;
  }
  return all;
}

// What a verdict says ends up on terminals and in prompts.
void expect_no_control_bytes(const nlohmann::json& node) {
  if (node.is_structured()) {
    for (const auto& part : node) expect_no_control_bytes(part);
  } else if (node.is_string()) {
    const auto& text = node.get_ref<const std::string&>();
    for (const char byte : text)
      EXPECT_TRUE(byte == '\n' || byte == '\t' || static_cast<unsigned char>(byte) >= ' ') << text;
    EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << text;  // U+009B begins sequences, too
  }
}

class Attacks : public ::testing::TestWithParam<Group> {};

TEST_P(Attacks, AreCaughtForTheirReasonAndHonestOnesPass) {
  RedTeam team(red_team_options());
  auto prepared = team.prepare(catalogue());
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  for (const Attack* attack : GetParam().attacks) {
    SCOPED_TRACE(attack->name);
    const AttackResult result = team.run(*attack, attack->honest() ? nullptr : &attack_called(attack->twin));
    const bool good = result.standing == Standing::known_escape || !is_failure(result.standing);
    EXPECT_TRUE(good) << to_string(result.standing) << ", caught by `" << result.caught_by << "`\n"
                      << eval::to_json(result.verdict).dump(1).substr(0, 4000);
    expect_no_control_bytes(eval::to_json(result.verdict));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Attacks, ::testing::ValuesIn(groups()), [](const auto& info) { return info.param.name; });

// Rows of the catalogue in docs/verification.md that a program can try.
TEST(Catalogue, HoldsEveryRow) {
  std::set<std::string> rows;
  for (const Attack& attack : catalogue()) rows.insert(attack.row);
  for (int i = 1; i <= 18; ++i) EXPECT_EQ(rows.count(fmt::format("A{}", i)), 1u) << "A" << i;
  for (int i = 1; i <= 7; ++i) EXPECT_EQ(rows.count(fmt::format("B{}", i)), 1u) << "B" << i;
  EXPECT_GE(catalogue().size(), 120u);
}

eval::Verdict verdict_of(eval::Outcome outcome, std::string guard = "") {
  eval::Verdict verdict;
  verdict.outcome = outcome;
  verdict.guard = std::move(guard);
  return verdict;
}

TEST(CaughtBy, NamesTheGuardOrTheOutcome) {
  EXPECT_EQ(caught_by(verdict_of(eval::Outcome::rejected, "decoy"), nullptr), "decoy");
  EXPECT_EQ(caught_by(verdict_of(eval::Outcome::wrong_values), nullptr), "wrong_values");
  EXPECT_EQ(caught_by(verdict_of(eval::Outcome::verified), nullptr), "");
  // An attack that ends the judge is none that the judge caught.
  EXPECT_EQ(caught_by(verdict_of(eval::Outcome::worker_failed), nullptr), "");
  auto given = verdict_of(eval::Outcome::verified);
  given.given_inputs_only = true;
  EXPECT_EQ(caught_by(given, nullptr), "given_inputs_only");
}

TEST(CaughtBy, TakesNoGainForCaught) {
  auto timed = [](double candidate_us) {
    auto verdict = verdict_of(eval::Outcome::verified);
    verdict.eager = eval::Timing{.median_us = 100};
    verdict.candidate = eval::Timing{.median_us = candidate_us};
    return verdict;
  };
  const auto twin = timed(50);
  EXPECT_EQ(caught_by(timed(40), &twin), "no_gain");
  EXPECT_EQ(caught_by(timed(5), &twin), "");
}

}  // namespace
}  // namespace tilepilot::agent
