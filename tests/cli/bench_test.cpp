// `tilepilot bench`: a batch as its user sees it, killed and resumed.
#include <chrono>
#include <thread>

#include "tests/cli/bench_fixture.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Bench : public BenchTest {
 protected:
  // Starts the batch and kills it as soon as the database says so.
  void kill_when(const std::string& query, int64_t value) {
    const pid_t process = start(run_arguments());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    int64_t found = number(query);
    for (; found < value && std::chrono::steady_clock::now() < end; found = number(query))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GE(found, value) << query;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
};

TEST_F(Bench, GoesOnWhereItWasKilledAndTellsScores) {
  kill_when("SELECT count(*) FROM attempt", 1);                             // while it judges
  kill_when("SELECT count(*) FROM batch_problem WHERE state = 'done'", 1);  // between two problems
  kill_when(
      "SELECT count(*) FROM attempt WHERE verdict IS NOT NULL AND run IN (SELECT id FROM run WHERE finished IS NULL)",
      1);
  auto result = tilepilot(run_arguments());
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, HasSubstr("batch 1: 4 of 4 problems done, 2 verified"));
  EXPECT_EQ(number("SELECT count(*) FROM batch"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM batch_problem"), 4);
  // No attempt is judged twice: each run of a problem is one run.
  EXPECT_EQ(number("SELECT count(*) FROM run WHERE model_source LIKE '%softmax%'"), 1);

  // An undisturbed batch comes to the same.
  const json resumed = report();
  auto arguments = run_arguments();
  arguments.emplace_back("--new");
  EXPECT_EQ(tilepilot(arguments).exit_code, 0);
  EXPECT_EQ(results_of(report()), results_of(resumed));

  auto text = tilepilot({"bench", "report", "1", "--against", "2", "--html", "page.html", "--csv", "rows.csv"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("abstained: 1"), HasSubstr("not_loaded: 1"), HasSubstr("against batch 2"),
                              ContainsRegex("all +4 +2 +0.500")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "page.html"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "rows.csv"));
  EXPECT_THAT(tilepilot({"bench", "list"}).out, ContainsRegex("1 .*4/4 +done +2 verified"));
}

TEST_F(Bench, FailBadInput) {
  struct Case {
    std::vector<std::string> arguments;
    const char* words;
  };
  const Case cases[] = {
      {{"run", "--problems", "nowhere"}, "there is nothing at `nowhere`"},
      {{"run", "--problems", set(), "--ids", "9"}, "there is no problem 9"},
      {{"run", "--problems", set(), "--levels", "1"}, "there is no level 1"},
      {{"run", "--problems", set(), "--ids", "1-"}, "is no list of numbers"},
      {{"run", "--problems", set(), "--target", "emulate:sm_80"}, "the emulator tells no times"},
      {{"run", "--problems", set(), "--dollars", "1"}, "`--dollars` has no meaning for the author `builtin`"},
      {{"run", "--problems", set(), "--problem-dollars", "1"}, "`--problem-dollars` has no meaning"},
      {{"run", "--problems", set(), "--output", set() + "/1_double.py"}, "is no folder"},
      {{"run", "--problems", set(), "--shard", "0/2"}, "`0/2` is no share"},
      {{"run", "--problems", set(), "--scale", "0"}, "`0` is no scale"},
      {{"run", "--problems", set(), "--scale", "1/0"}, "`1/0` is no scale"},
      {{"run", "--problems", set(), "--scale", "5/4"}, "`5/4` is no scale"},
      {{"run", "--problems", set(), "--scale", "half"}, "`half` is no scale"},
      {{"run", "--problems", set(), "--attempts", "0"}, "Value 0 not in range"},
      // With an endpoint the author is `mixed`, of whom it is part.
      {{"run", "--problems", set(), "--llm-url", "http://localhost:1/v1"},
       "`--author mixed` needs `--llm-url` and `--llm-model`"},
      {{"report"}, "store.db"},
      {{"merge"}, "databases is required"},
      {{"merge", "nowhere.db"}, "there is no database `nowhere.db`"},
      {{"merge", set() + "/1_double.py"}, "is not a database"},
  };
  for (const Case& each : cases) {
    auto arguments = each.arguments;
    arguments.insert(arguments.begin(), "bench");
    auto result = tilepilot(arguments);
    EXPECT_EQ(result.exit_code, 2) << each.words;
    EXPECT_THAT(result.err, HasSubstr(each.words));
  }
}

}  // namespace
}  // namespace tilepilot
