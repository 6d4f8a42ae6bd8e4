// Scores and reports of batches that are written down here.
#include "kernelbench/report.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "eval/judge.h"
#include "eval/profile/profile.h"
#include "eval/stage_text.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

BatchProblem problem(int level, int id, Ending ending, double speedup = 0, std::string reason = "") {
  BatchProblem each;
  each.problem = {level, id, "p" + std::to_string(id), "", "text"};
  each.state = State::done;
  each.outcome.ending = ending;
  each.outcome.reason = std::move(reason);
  each.outcome.seconds = 10;
  each.outcome.run = id;
  each.outcome.record = {{"preflight", {{"roofline_us", 20.0}, {"eager_modelled_us", 60.0}}},
                         {"attempts", json::array({{{"summary", "fuses"}, {"verdict", {{"outcome", "verified"}}}}})}};
  if (speedup > 0) {
    each.outcome.record["best_attempt"] = 0;
    eval::Verdict verdict;
    verdict.outcome = eval::Outcome::verified;
    verdict.eager = eval::Timing{100, 90, 110, 9};
    verdict.candidate = eval::Timing{100 / speedup, 90 / speedup, 110 / speedup, 9};
    verdict.compiled = {{.mode = "default", .timing = {80, 70, 90, 9}, .speedup = speedup * 0.8},
                        {.mode = "max-autotune", .timing = {50, 40, 60, 9}, .speedup = speedup / 2}};
    verdict.speedup_low = 0.9 * speedup;
    verdict.speedup_high = 1.1 * speedup;
    each.outcome.record["verdict"] = eval::to_json(verdict);
  }
  return each;
}

// Two levels: 0.5, 1.25, 4 and a failure; 3 and an abstention.
Batch sample() {
  Batch batch{1, {"/problems", "digest", R"({"author":"builtin"})", "{}"}, "2026-01-01T00:00:00Z", "", {}};
  batch.problems = {problem(1, 1, Ending::verified, 0.5), problem(1, 2, Ending::verified, 1.25),
                    problem(1, 3, Ending::verified, 4),   problem(1, 4, Ending::failed, 0, "wrong, \"all\" of it"),
                    problem(2, 1, Ending::verified, 3),   problem(2, 2, Ending::abstained, 0, "sees nothing")};
  return batch;
}

// KernelBench's score.py gives these for is_correct = 1 1 1 0 1 0 and these times.
TEST(Scores, AgreeWithKernelBenchsOwn) {
  const Scores scores = score(rows_of(sample()));
  EXPECT_EQ(scores.problems, 6);
  EXPECT_EQ(scores.verified, 4);
  EXPECT_DOUBLE_EQ(scores.fast[0], 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores.fast[1], 3.0 / 6);
  EXPECT_DOUBLE_EQ(scores.fast[2], 3.0 / 6);
  EXPECT_DOUBLE_EQ(scores.fast[3], 2.0 / 6);
  EXPECT_DOUBLE_EQ(scores.fast[4], 2.0 / 6);
  EXPECT_NEAR(scores.mean_of_verified, std::pow(0.5 * 1.25 * 4 * 3, 1.0 / 4), 1e-12);
  EXPECT_NEAR(scores.mean_of_faster, std::pow(1.25 * 4 * 3, 1.0 / 3), 1e-12);
}

TEST(Scores, CountFailuresAsOneInTheMeanOfAll) {
  EXPECT_NEAR(score(rows_of(sample())).mean_of_all, std::pow(0.5 * 1.25 * 4 * 3, 1.0 / 6), 1e-12);
}

TEST(Scores, HaveQuartilesOfTheVerified) {
  const Scores scores = score(rows_of(sample()));
  EXPECT_DOUBLE_EQ(scores.least, 0.5);
  EXPECT_DOUBLE_EQ(scores.first_quartile, 1.0625);
  EXPECT_DOUBLE_EQ(scores.median, 2.125);
  EXPECT_DOUBLE_EQ(scores.third_quartile, 3.25);
}

TEST(Scores, AreStrictAtAThreshold) {
  Batch batch = sample();
  batch.problems = {problem(1, 1, Ending::verified, 2)};
  EXPECT_EQ(score(rows_of(batch)).fast[4], 0);
}

TEST(Scores, OfGivenInputsAloneAreNone) {
  Batch batch = sample();
  batch.problems = {problem(1, 1, Ending::given_inputs_only, 9)};
  const Scores scores = score(rows_of(batch));
  EXPECT_EQ(scores.verified, 0);
  EXPECT_EQ(scores.mean_of_all, 1);
}

TEST(Scores, OverTorchCompileAreApart) {
  const auto rows = rows_of(sample());
  EXPECT_NEAR(score(rows, Baseline::compile).mean_of_verified, score(rows).mean_of_verified / 2, 1e-12);
}

TEST(Scores, LeaveDegenerateProblemsAndShortcutsOutOnceMore) {
  Batch batch = sample();
  batch.problems[0].outcome.record["preflight"]["degenerate"] = {"the output is constant"};
  batch.problems[2].outcome.record["preflight"]["shortcuts"] = json::array({{{"sentence", "a sum of a product"}}});
  std::vector<std::string> names;
  for (const Group& group : groups_of(rows_of(batch)))
    names.push_back(group.name + " " + std::to_string(group.rows.size()));
  EXPECT_THAT(names, ::testing::ElementsAre("all 6", "level 1 4", "level 2 2", "without degenerate problems 5",
                                            "without exact shortcuts 5"));
}

TEST(Scores, AreToldOfWhatIsDoneSoFar) {
  Batch batch = sample();
  batch.problems[0].state = batch.problems[1].state = State::waiting;
  const auto groups = groups_of(rows_of(batch));
  EXPECT_EQ(groups[0].rows.size(), 6u);
  EXPECT_EQ(groups[1].name, "done so far");
  EXPECT_EQ(groups[1].rows.size(), 4u);
}

TEST(ReportText, NamesWhatIsWeakAndWhy) {
  const std::string text = report_text({sample(), {}});
  EXPECT_THAT(text, AllOf(HasSubstr("6 of 6 problems done"), HasSubstr("0.50x  level 1 #1 p1"),
                          HasSubstr("1 x wrong, \"all\" of it"), HasSubstr("1 x sees nothing")));
}

// What was nearest is told as it was recorded: of six problems one at distance 0, one near, one that has nothing in
// common with the corpus, and one that is of a version that did not say it.
Batch sample_with_neighbours() {
  Batch batch = sample();
  auto neighbour = [](double distance, bool same) {
    return retrieval::to_json({"entry, one", "seed", "cpu", "print", distance, same});
  };
  batch.problems[0].outcome.record["neighbour"] = neighbour(0, true);
  batch.problems[1].outcome.record["neighbour"] = neighbour(0.05, false);
  batch.problems[2].outcome.record["neighbour"] = nullptr;
  batch.problems[5].outcome.record["neighbour"] = neighbour(0, true);  // abstained: nothing was written
  return batch;
}

TEST(Leakage, CountsVerifiedProblemsThatAreNearTheCorpus) {
  const Leakage leakage = leakage_of(rows_of(sample_with_neighbours()));
  EXPECT_EQ(leakage.verified, 4);
  EXPECT_EQ(leakage.known, 3);
  EXPECT_EQ(leakage.at_zero, 1);
  EXPECT_EQ(leakage.same_graph, 1);
  EXPECT_EQ(leakage.near, 2);
  EXPECT_DOUBLE_EQ(leakage.median, 0.05);
}

TEST(Leakage, IsToldInEveryForm) {
  const Report report{sample_with_neighbours(), {}};
  EXPECT_THAT(report_text(report),
              AllOf(HasSubstr("of 3 verified: 1 at distance 0 (1 with the same graph), 2 below 0.1, median 0.05"),
                    HasSubstr("1 more verified runs do not say it"),
                    HasSubstr("0.00  level 1 #1 p1: `entry, one` (seed, the same graph)"),
                    HasSubstr("0.05  level 1 #2 p2: `entry, one` (seed)"), Not(HasSubstr("level 2 #2 p2: `entry"))));
  EXPECT_THAT(report_csv(report), AllOf(HasSubstr("nearest,nearest_distance,nearest_same_graph"),
                                        HasSubstr(",\"entry, one\",0.05,false,"), HasSubstr(",,1.0,false,")));
  const json object = report_json(report);
  EXPECT_EQ(object["leakage"]["at_zero"], 1);
  EXPECT_EQ(object["problems"][0]["nearest"], "entry, one");
  EXPECT_EQ(object["problems"][3]["nearest_distance"], nullptr);
  EXPECT_THAT(report_html(report, {}), HasSubstr("\"nearest_distance\":0.05"));
  EXPECT_THAT(report_text({sample(), {}}), Not(HasSubstr("nearest")));
}

TEST(ReportText, ComparesTwoBatches) {
  Batch then = sample();
  then.id = 7;
  then.problems[2] = problem(1, 3, Ending::verified, 8);
  then.problems[3] = problem(1, 4, Ending::verified, 2);
  const Batch now = sample();
  const std::string text = report_text({now, then});
  EXPECT_THAT(text, AllOf(HasSubstr("against batch 7"), HasSubstr("8.00x -> 4.00x  level 1 #3 p3"),
                          HasSubstr("verified -> failed  level 1 #4 p4"), Not(HasSubstr("-> 0.50x"))));
}

TEST(ReportText, SaysWhatTwoBatchesDoNotHaveInCommon) {
  Batch then = sample(), now = sample();
  then.header = {"a", "0123456789abcdef", R"({"dtype":"fp32","jobs":2})", R"({"gpu":"H100","commit":"x"})"};
  now.header = {"a", "fedcba9876543210", R"({"dtype":"bf16","jobs":2,"scale":"1/4"})",
                R"({"gpu":"H100","commit":"y"})"};
  EXPECT_THAT(
      report_text({now, then}),
      AllOf(HasSubstr("not alike: the digest of the problems' files is fedcba987654, then 0123456789ab\n"),
            HasSubstr("not alike: the option `dtype` is \"bf16\", then \"fp32\"\n"),
            HasSubstr("not alike: the option `scale` is \"1/4\", then not said\n"),
            HasSubstr("not alike: `commit` of the environment is \"y\", then \"x\"\n"), Not(HasSubstr("jobs` is"))));
  EXPECT_EQ(report_json({now, then})["differences"].size(), 4u);
  EXPECT_THAT(report_text({now, now}), Not(HasSubstr("not alike")));
}

TEST(ReportCsv, QuotesTexts) {
  const std::string text = report_csv({sample(), {}});
  EXPECT_THAT(text, HasSubstr(",\"wrong, \"\"all\"\" of it\"\r\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
}

TEST(ReportHtml, IsOnePageWhateverAProgramHolds) {
  std::vector<ProblemPage> pages(6);
  pages[0].sources = {"# </script><script>alert(1)</script>\nclass ModelNew: ..."};
  const std::string page = report_html({sample(), {}}, pages);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("</script><script>alert")), HasSubstr("\\u003c/script>"), HasSubstr("ModelNew"),
                          Not(HasSubstr("src=")), Not(HasSubstr("@import")), Not(HasSubstr("<link"))));
}

json profile_of_problem() {
  eval::Profile profile;
  profile.kernels.push_back({.name = "fused_rows", .line = 12, .launches = 1, .us = 60, .share = 0.6});
  profile.kernels[0].choices = {{14, "copy A -> a", "TMA", {}},
                                {16, "copy c -> C", "vectors", {"not TMA: rows of 24 bytes"}}};
  for (int i = 0; i < 20; ++i)
    profile.operators.push_back({.name = "aten::op" + std::to_string(i), .us = 2, .share = 0.02});
  profile.eager = eval::SideProfile{{}, {{.name = "aten::softmax", .count = 2, .us = 90, .share = 0.9}}, 10};
  return eval::to_json(profile);
}

TEST(ReportHtml, ShowsWhereTimeGoes) {
  Batch batch = sample();
  batch.problems[0].outcome.record["verdict"]["profile"] = profile_of_problem();
  const std::string page = report_html({batch, {}}, {});
  EXPECT_THAT(page, AllOf(HasSubstr("fused_rows"), HasSubstr("not TMA: rows of 24 bytes"), HasSubstr("aten::softmax"),
                          HasSubstr("aten::op7"), Not(HasSubstr("aten::op8")), Not(HasSubstr("copy A -> a"))));
}

TEST(ReportHtml, ShowsWhichKernelGoesWrong) {
  Batch batch = sample();
  json& verdict = batch.problems[0].outcome.record["verdict"];
  verdict["stages"] = eval::to_json(std::vector<eval::StageCheck>{
      {.kernel = "rows", .line = 31, .launch = 1, .right = true, .node = 4, .op = "aten::sum"},
      {.kernel = "out", .line = 52, .launch = 2}});
  EXPECT_THAT(
      report_html({batch, {}}, {}),
      AllOf(HasSubstr("kernel `rows` (line 31) writes what `aten::sum` (node 4) gives"), HasSubstr("`out` (line 52)")));
  verdict["stages"] = 3;
  EXPECT_THAT(report_html({batch, {}}, {}), HasSubstr("its stages cannot be read"));
}

TEST(ReportHtml, FoldsWhatWasSaid) {
  std::vector<ProblemPage> pages(1);
  pages[0].talks = {{0, std::string(9000, 'p') + "write it <now>", "the answer"}, {1, "mend it", "HTTP 503"}};
  const std::string page = report_html({sample(), {}}, pages);
  EXPECT_THAT(page, AllOf(HasSubstr("write it \\u003cnow>"), Not(HasSubstr(std::string(7000, 'p'))),
                          HasSubstr("\"asked_left_out\":3014"), HasSubstr("\"answered\":\"the answer\""),
                          HasSubstr("\"answered\":\"HTTP 503\"")));
  EXPECT_THAT(report_html({sample(), {}}, {}), Not(HasSubstr("\"talks\"")));
}

TEST(ReportHtml, StaysSmall) {
  Batch batch = sample();
  batch.problems.clear();
  std::vector<ProblemPage> pages;
  for (int id = 1; id <= 250; ++id) {
    batch.problems.push_back(problem(1, id, Ending::verified, 1 + id * 0.01));
    batch.problems.back().outcome.record["verdict"]["profile"] = profile_of_problem();
    pages.push_back({{std::string(6000, 'x') + std::to_string(id), std::string(6000, 'y')}, {}});
    for (int attempt = 0; attempt < 8; ++attempt)
      pages.back().talks.push_back({attempt, std::string(40'000, 'p'), std::string(6000, 'q')});
  }
  EXPECT_LT(report_html({batch, {}}, pages).size(), size_t{3} << 20);
}

}  // namespace
}  // namespace tilepilot::kernelbench
