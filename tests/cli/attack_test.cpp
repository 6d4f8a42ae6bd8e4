// `tilepilot attack`: what its user sees. What each attack comes to is tested in tests/attacks.
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class AttackCommand : public CommandLine {
 protected:
  runtime::ProcessResult attack(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"attack", "--target", "cpu"});
    return tilepilot(arguments);
  }
};

TEST_F(AttackCommand, PrintsATableAndATally) {
  auto result = attack({"--only", "*scale_rows"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(ContainsRegex("attack +row +level +caught by +time"),
                                ContainsRegex("honest_scale_rows +tile +passed"),
                                HasSubstr("0 attacks: 0 caught, 0 escaped; 1 honest programs: 1 passed")));
}

TEST_F(AttackCommand, TellsAsJsonWhatCaughtAnAttack) {
  auto result = attack({"--only", "A1_zeros", "--level", "tile", "--json"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  json report = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << result.out;
  ASSERT_EQ(report["results"].size(), 1u);
  EXPECT_EQ(report["results"][0]["attack"], "A1_zeros");
  EXPECT_EQ(report["results"][0]["standing"], "caught");
  EXPECT_EQ(report["results"][0]["caught_by"], "wrong_values");
  EXPECT_EQ(report["caught"], 1);
  EXPECT_EQ(report["ok"], true);
}

TEST_F(AttackCommand, TriesSeveralAtATime) {
  auto result = attack({"--only", "A1_z*", "--jobs", "2", "--json"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  json report = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << result.out;
  // In the catalogue's order, whichever ends first.
  ASSERT_EQ(report["results"].size(), 2u);
  EXPECT_EQ(report["results"][0]["attack"], "A1_zeros");
  EXPECT_EQ(report["results"][1]["attack"], "A1_zeros_by_the_host");
  EXPECT_EQ(report["caught"], 2);
}

TEST_F(AttackCommand, fail_NoJudgeThere) {
  auto result = attack({"--judge", folder_.string(), "--only", "A1_zeros_by*"});
  EXPECT_EQ(result.exit_code, 3) << all(result);
  EXPECT_THAT(result.err, HasSubstr("there is no judge at"));
}

// A judge that cannot judge lets everything through.
TEST_F(AttackCommand, fail_JudgeThatDoesNotRun) {
  std::filesystem::create_symlink("/bin/true", folder_ / "tilepilot-worker");
  auto result = attack({"--judge", folder_.string(), "--only", "A1_zeros_by*"});
  EXPECT_EQ(result.exit_code, 1) << all(result);
  EXPECT_THAT(result.out, HasSubstr("1 attacks: 0 caught, 1 escaped"));
}

TEST_F(AttackCommand, fail_NameOfNoAttack) {
  auto result = attack({"--only", "no_such_attack"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no attack is called `no_such_attack`"));
}

// The policy reaches the judge, and its verdict names the operator and the line.
TEST_F(AttackCommand, CheckTakesAPolicyOfOperators) {
  auto result = check("good_matmul", {"--aten", "none", "--json"});
  json verdict = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(verdict.is_object()) << all(result);
  EXPECT_EQ(verdict["aten"], "none");
  result = tilepilot({"check", candidate("good_matmul"), "-r", model("matmul"), "--aten", "some"});
  EXPECT_EQ(result.exit_code, 2) << all(result);
}

}  // namespace
}  // namespace tilepilot
