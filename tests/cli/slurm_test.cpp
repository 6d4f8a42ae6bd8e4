// Batches through a real Slurm of one node, which runs for this test alone: Debian's slurmctld, slurmd and munge.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <thread>

#include "tests/cli/bench_fixture.h"

namespace tilepilot {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Slurm : public BenchTest {
 protected:
  void SetUp() override {
    for (const char* program : {"slurmctld", "slurmd", "munged", "sbatch"})
      if (!is_installed(program)) GTEST_SKIP() << "Slurm is not installed here: there is no " << program;
    start();
  }
  ~Slurm() override {
    if (slurm_ <= 0) return;
    kill(slurm_, SIGTERM);
    waitpid(slurm_, nullptr, 0);
  }
  static bool is_installed(const std::string& program) {
    for (const char* folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"})
      if (fs::exists(folder + program)) return true;
    return false;
  }

  void start() {
    const std::string script = (tests() / "private_slurm.sh").string(), where = cluster().string();
    slurm_ = fork();
    if (slurm_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // no daemon outlives the test
      execlp("bash", "bash", script.c_str(), where.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 600 && !fs::exists(cluster() / "ready") && waitpid(slurm_, nullptr, WNOHANG) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_TRUE(fs::exists(cluster() / "ready")) << text_of(cluster() / "log");
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path cluster() const { return folder_ / "cluster"; }
  std::vector<std::string> environment() const { return {"SLURM_CONF=" + (cluster() / "slurm.conf").string()}; }

  std::vector<std::string> submit(const std::vector<std::string>& more) const {
    auto arguments = run_arguments();
    arguments[1] = "submit";
    arguments.insert(arguments.end(), {"--folder", "batch"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Waits until so many problems are done. What jobs print is told where that does not happen.
  void wait_until_done(int problems) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(280);
    json status;
    while (std::chrono::steady_clock::now() < end) {
      status = answer({"bench", "status", "batch"}, environment());
      if (status["done"] >= problems) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    std::string logs;
    for (const auto& item : fs::directory_iterator(folder_ / "batch/logs")) logs += text_of(item.path());
    FAIL() << status.dump(1) << logs << text_of(cluster() / "slurmctld.log");
  }
  void wait_until_idle() {
    for (int i = 0; i < 600; ++i) {
      auto queue = runtime::run_process({"env", environment().front(), "squeue", "--noheader"});
      if (queue.ok() && queue->exit_code == 0 && queue->out.empty()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    FAIL() << "jobs do not end";
  }

  pid_t slurm_ = -1;
};

TEST_F(Slurm, RunsABatchInTasks) {
  const auto arguments = submit({"--tasks", "2", "--sbatch", "--partition=test --time=30"});
  const json told = answer(arguments, environment());
  EXPECT_EQ(told["submitted"], true);
  wait_until_done(4);
  wait_until_idle();
  EXPECT_EQ(answer(arguments, environment())["submitted"], false);  // nothing is left
  auto merged = tilepilot({"bench", "merge", "batch/task-1.db", "batch/task-2.db"});
  EXPECT_EQ(merged.exit_code, 0) << all(merged);
  EXPECT_THAT(tilepilot({"bench", "report"}).out, HasSubstr("4 of 4 problems done"));
  EXPECT_EQ(number("SELECT count(*) FROM batch_problem WHERE ending = 'verified'"), 2);

  auto refused = tilepilot(
      {"bench", "submit", "--problems", set(), "--folder", "elsewhere", "--sbatch", "--partition=none"}, environment());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("invalid partition"));
}

// A task is cancelled in its middle, and another one's time is up twice; what is done is done once.
TEST_F(Slurm, GoesOnWhereATaskWasCut) {
  const auto arguments = submit({"--tasks", "1", "--sbatch", "--time=30"});
  const json first = answer(arguments, environment());
  wait_until_done(1);
  auto cancelled = runtime::run_process({"env", environment().front(), "scancel", first["job"].get<std::string>()});
  ASSERT_TRUE(cancelled.ok() && cancelled->exit_code == 0);
  wait_until_idle();
  // The next one has no time, goes back into the queue by itself, and gives up when it may not any more.
  auto cut = arguments;
  cut.insert(cut.end(), {"--minutes", "0.001", "--requeues", "1"});
  const json second = answer(cut, environment());
  EXPECT_EQ(second["tasks_left"], json::array({1}));
  wait_until_idle();
  const std::string log = text_of(folder_ / ("batch/logs/" + second["job"].get<std::string>() + "_1.txt"));
  EXPECT_THAT(log, ::testing::ContainsRegex("batch 1: 4 problems(.|\n)*DUE TO JOB REQUEUE(.|\n)*batch 1: 4 problems"));
  EXPECT_EQ(json::parse(text_of(folder_ / "batch/answers/1.json"))["end"], "time spent");
  EXPECT_EQ(answer(arguments, environment())["tasks_left"], json::array({1}));
  wait_until_done(4);
  wait_until_idle();
  const fs::path task = folder_ / "batch/task-1.db";
  EXPECT_EQ(number_in(task, "SELECT count(*) FROM batch"), 1);
  EXPECT_EQ(number_in(task, "SELECT count(*) FROM batch_problem WHERE state = 'done'"), 4);
  EXPECT_EQ(number_in(task, "SELECT count(*) FROM run WHERE model_source LIKE '%softmax%'"), 1);
}

}  // namespace
}  // namespace tilepilot
