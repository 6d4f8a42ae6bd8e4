// `tilepilot bench submit` and `status` with commands that stand for Slurm's. tests/cli/slurm_test.cpp has the real
// ones.
#include <gmock/gmock.h>

#include "tests/cli/bench_fixture.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class BenchSubmit : public BenchTest {
 protected:
  // A command on PATH that does this.
  void fake(const std::string& name, const std::string& does) const {
    fs::create_directories(folder_ / "bin");
    const fs::path file = folder_ / "bin" / name;
    std::ofstream(file) << "#!/bin/sh\n" << does;
    fs::permissions(file, fs::perms::owner_all);
  }
  std::string path() const { return "PATH=" + (folder_ / "bin").string() + ":/usr/bin:/bin"; }
  // `sbatch` takes jobs, and writes down what it was given.
  void take_jobs() const {
    fake("sbatch", "echo \"$@\" >> " + (folder_ / "submitted").string() + "\n[ $1 = --version ] || echo '4711;far'\n");
  }
  std::string text(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> submit(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"bench", "submit", "--problems", "set", "--folder", "my batch"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(BenchSubmit, WritesAScriptAndSubmitsIt) {
  take_jobs();
  auto arguments = submit({"--tasks",    "3",           "--sbatch",    "--partition=gpu --gres=gpu:1 --time=1:00:00",
                           "--ids",      "1-4",         "--trials",    "2",
                           "--dtype",    "fp32",        "--author",    "llm",
                           "--llm-url",  "http://x/v1", "--llm-model", "it's",
                           "--price-in", "1",           "--dollars",   "6",
                           "--output",   "programs"});
  const json told = answer(arguments, {path(), "TILEPILOT_API_KEY=secret"});
  EXPECT_EQ(told["job"], "4711");
  EXPECT_THAT(text("submitted"), HasSubstr("--parsable --array=1-3 " + (folder_ / "my batch/job.sh").string()));
  const std::string script = text("my batch/job.sh");
  EXPECT_THAT(script,
              AllOf(HasSubstr("#SBATCH --partition=gpu --gres=gpu:1 --time=1:00:00\n"),
                    HasSubstr("bench run --problems " + set() + " "), HasSubstr(" --ids 1-4 "),
                    HasSubstr(" --trials 2 "), HasSubstr(" --dtype fp32 "), HasSubstr(" --llm-model 'it'\\''s' "),
                    HasSubstr(" --dollars 2 "), HasSubstr(" --output " + (folder_ / "programs").string() + " "),
                    HasSubstr(" --minutes 57 "), HasSubstr("--shard \"$task/3\"")));
  EXPECT_THAT(script + text("my batch/batch.json"), Not(HasSubstr("secret")));
  auto syntax = runtime::run_process({"bash", "-n", (folder_ / "my batch/job.sh").string()});
  EXPECT_EQ(syntax->exit_code, 0) << syntax->err;
}

// The script does what Slurm would make it do: a task's share, and what is left is submitted again.
TEST_F(BenchSubmit, GoesOnWithWhatIsMissing) {
  take_jobs();
  const auto arguments = submit({"--tasks", "2", "--attempts", "2", "--target", "cpu", "--trials", "2"});
  EXPECT_EQ(answer(arguments, {path()})["tasks_left"], json::array({1, 2}));
  auto run_task = [&](const char* task) {
    return runtime::run_process({"env", std::string("SLURM_ARRAY_TASK_ID=") + task, "SLURM_ARRAY_JOB_ID=4711", "bash",
                                 (folder_ / "my batch/job.sh").string()},
                                {.time_limit_s = 300});
  };
  auto first = run_task("1");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->exit_code, 0) << first->err;
  EXPECT_EQ(json::parse(text("my batch/answers/1.json"))["done"], 2);
  EXPECT_EQ(answer(arguments, {path()})["tasks_left"], json::array({2}));
  EXPECT_THAT(text("submitted"), HasSubstr("--array=2 "));

  fake("squeue", "[ \"$4\" = --jobs=4711 ] && echo '2|PENDING|Resources'\n");
  auto status = tilepilot({"bench", "status", "my batch"}, {path()});
  EXPECT_EQ(status.exit_code, 0) << all(status);
  EXPECT_THAT(status.out, AllOf(HasSubstr("task    1:   2 of   2 done,   1 verified  done"),
                                HasSubstr("task    2:   0 of   2 done,   0 verified  pending Resources"),
                                HasSubstr("jobs 4711, 4711"), HasSubstr("bench merge '")));
  EXPECT_EQ(run_task("2")->exit_code, 0);
  const json last = answer(arguments, {path()});
  EXPECT_EQ(last["submitted"], false);
  EXPECT_EQ(last["tasks_left"], json::array());
  EXPECT_EQ(answer({"bench", "merge", "my batch/task-1.db", "my batch/task-2.db"})["differences"], json::array());
  EXPECT_EQ(results_of(report()).size(), 4u);
}

TEST_F(BenchSubmit, GoesBackIntoTheQueueWhenItsTimeIsUp) {
  take_jobs();
  answer(submit({"--tasks", "1", "--target", "cpu", "--minutes", "0.001", "--requeues", "2"}), {path()});
  fake("scontrol", "echo \"$@\" > " + (folder_ / "requeued").string() + "\nexit 1\n");
  auto run_task = [&](const char* restarts) {
    return runtime::run_process(
        {"env", path(), "SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_JOB_ID=4711",
         std::string("SLURM_RESTART_COUNT=") + restarts, "bash", (folder_ / "my batch/job.sh").string()},
        {.time_limit_s = 300});
  };
  EXPECT_EQ(run_task("2")->exit_code, 1);
  EXPECT_FALSE(fs::exists(folder_ / "requeued"));
  EXPECT_EQ(run_task("1")->exit_code, 1);
  EXPECT_EQ(text("requeued"), "requeue 4711_1\n");
}

TEST_F(BenchSubmit, ShowsTheScriptAlone) {
  auto result = tilepilot(submit({"--tasks", "9", "--dry-run"}), {"PATH=/nowhere"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("#!/bin/bash\n"), HasSubstr("# submitted by: sbatch --parsable --array=1-4 ")));
  EXPECT_THAT(result.err, HasSubstr("4 tasks, one for each problem"));
  EXPECT_FALSE(fs::exists(folder_ / "my batch"));
}

TEST_F(BenchSubmit, TellsWhereThereIsNoSlurm) {
  auto result = tilepilot(submit(), {"PATH=/nowhere"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("`sbatch` does not run here, so nothing is submitted: it is not on PATH"));
  EXPECT_FALSE(fs::exists(folder_ / "my batch"));
}

TEST_F(BenchSubmit, PassesARefusalOn) {
  fake("sbatch", "[ $1 = --version ] && exit 0\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n");
  auto result = tilepilot(submit(), {path()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("`sbatch` refused the job: sbatch: error: invalid partition specified: gpu"));
  // Nothing stands in the way of a better try.
  take_jobs();
  EXPECT_EQ(tilepilot(submit({"--sbatch", "--partition=cpu"}), {path()}).exit_code, 0);
}

TEST_F(BenchSubmit, FailBadInput) {
  take_jobs();
  ASSERT_EQ(tilepilot(submit({"--tasks", "2"}), {path()}).exit_code, 0);
  fs::create_directories(folder_ / "other");
  std::ofstream(folder_ / "other/batch.json") << "{}";
  struct Case {
    std::vector<std::string> more;
    const char* words;
  };
  const Case cases[] = {
      {{"--tasks", "0"}, "--tasks"},
      {{"--tasks", "many"}, "--tasks"},
      {{"--tasks", "3"}, "was submitted with `--tasks 2`"},
      {{"--tasks", "2", "--dtype", "bf16"}, "was submitted with other options"},
      {{"--tasks", "2", "--ids", "1-3"}, "was submitted with other"},
      {{"--ids", "9"}, "there is no problem 9"},
      {{"--sbatch", "--array=1-3"}, "use `--tasks`"},
      {{"--sbatch", "--time=soon"}, "`soon` is no time"},
      {{"--sbatch", "gpu"}, "`gpu` is no option"},
      {{"--folder", "other"}, "is not what `bench submit` writes"},
      {{"--folder", "a%b"}, "a character that Slurm reads"},
      {{"--target", "emulate:sm_80"}, "the emulator tells no times"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> arguments = {"bench", "submit", "--problems", "set"};
    if (each.more.front() != "--folder") arguments.insert(arguments.end(), {"--folder", "my batch"});
    arguments.insert(arguments.end(), each.more.begin(), each.more.end());
    auto result = tilepilot(arguments, {path()});
    EXPECT_EQ(result.exit_code, 2) << each.words;
    EXPECT_THAT(result.err, HasSubstr(each.words));
  }
  auto status = tilepilot({"bench", "status", "nowhere"});
  EXPECT_EQ(status.exit_code, 2);
  EXPECT_THAT(status.err, HasSubstr("`bench submit` has written nothing to `nowhere`"));
  // The problems change behind its back.
  std::ofstream(folder_ / "set/3_broken.py") << "class Other(:\n";
  auto changed = tilepilot(submit({"--tasks", "2"}), {path()});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("other problems, or these have changed"));
}

}  // namespace
}  // namespace tilepilot
