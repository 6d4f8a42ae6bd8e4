// A batch over twelve small problems that is killed at random moments comes to what an undisturbed one does.
// TILEPILOT_KILL_ROUNDS says how many kills; TILEPILOT_FIRST_SEED, which.
#include <cstdlib>
#include <random>

#include "tests/cli/bench_fixture.h"
#include "tests/cli/process_tree.h"

namespace tilepilot {
namespace {

using ::testing::HasSubstr;

class BenchKills : public BenchTest {
 protected:
  static std::vector<std::string> arguments(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"bench",      "run", "--problems", (tests() / "suite").string(),
                                    "--attempts", "1",   "--target",   "cpu",
                                    "--trials",   "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static int setting(const char* variable, int otherwise) {
    const char* value = std::getenv(variable);
    return value != nullptr ? std::atoi(value) : otherwise;
  }
  // False if the batch had ended by then.
  bool kill_after(double seconds) {
    const pid_t process = start(arguments());
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    int status = 0;
    if (waitpid(process, &status, WNOHANG) == process) return false;
    kill(process, SIGKILL);
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(comes_true(10, [&] { return processes_with(folder_.string()).empty(); }))
        << "these go on: " << names_of(processes_with(folder_.string()));
    return true;
  }
};

TEST_F(BenchKills, ComeToTheSameAsAnUndisturbedBatch) {
  const auto begin = std::chrono::steady_clock::now();
  const auto undisturbed = tilepilot(arguments({"--store", "undisturbed.db"}));
  ASSERT_EQ(undisturbed.exit_code, 0) << all(undisturbed);
  EXPECT_THAT(undisturbed.out, HasSubstr("batch 1: 12 of 12 problems done, 10 verified"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const int kills = setting("TILEPILOT_KILL_ROUNDS", 1), seed = setting("TILEPILOT_FIRST_SEED", 11);
  int killed = 0;
  for (int round = 0; round < kills; ++round) {
    SCOPED_TRACE(round);
    std::mt19937 random(static_cast<unsigned>(seed + round));
    // Many kills, all before the batch is at its end; every fourth comes while it starts.
    const double longest = round % 4 == 3 ? 0.3 : std::max(3.0, 0.9 * seconds / kills);
    killed += kill_after(std::uniform_real_distribution(0.0, longest)(random));
    EXPECT_LE(number("SELECT count(*) FROM batch"), 1);
  }
  const auto resumed = tilepilot(arguments());
  EXPECT_EQ(resumed.exit_code, 0) << all(resumed);
  EXPECT_THAT(resumed.out, HasSubstr("batch 1: 12 of 12 problems done, 10 verified"));

  EXPECT_EQ(results_of(report()), results_of(answer({"bench", "report", "--store", "undisturbed.db"})));
  // Nothing is there twice: a run a problem, an attempt a number, a program once in the corpus.
  for (const char* what :
       {"SELECT count(*) - count(DISTINCT model_source) FROM run",
        "SELECT count(*) FROM attempt WHERE number > 1 OR verdict IS NULL",
        "SELECT count(*) - count(DISTINCT fingerprint) FROM corpus", "SELECT count(*) FROM run WHERE finished IS NULL"})
    EXPECT_EQ(number(what), 0) << what;
  for (const char* what : {"SELECT count(*) FROM run", "SELECT count(*) FROM corpus", "SELECT count(*) FROM attempt"})
    EXPECT_EQ(number(what), number_in(folder_ / "undisturbed.db", what)) << what;
  std::printf("%d of %d kills found the batch running; an undisturbed one took %.0f s\n", killed, kills, seconds);
}

}  // namespace
}  // namespace tilepilot
