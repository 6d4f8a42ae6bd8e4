// The client against workers that misbehave: shell scripts stand in for tilepilot-worker.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "eval/judge.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

class JudgeClient : public ::testing::Test {
 protected:
  void SetUp() override {
    auto test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() / fmt::format("tilepilot-client-{}-{}", getpid(), test);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // open_judge's error with a worker that does `script`.
  std::string open_error(const std::string& script) {
    auto path = folder_ / "worker";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    JudgeOptions options;
    options.worker = path;
    auto judge = open_judge(folder_, options);
    return judge.ok() ? "" : judge.error().message;
  }

  // What a shell writes as the worker's message.
  static std::string message(const nlohmann::json& body) {
    const std::string text = body.dump();
    std::string header;
    for (size_t shift = 0; shift < 32; shift += 8) header += fmt::format("\\{:03o}", (text.size() >> shift) & 255);
    return fmt::format("printf '{}\\000\\000\\000\\000%s' '{}' >&3; ", header, text);
  }

  std::filesystem::path folder_;
};

TEST(JudgeOptions, ThatNoJudgeCanKeepAreRefused) {
  EXPECT_TRUE(check_options({}).ok());
  const auto refused = [](const auto& change) {
    JudgeOptions options;
    change(options);
    const auto status = check_options(options);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(refused([](JudgeOptions& o) { o.trials = 1'000'000'000; }), HasSubstr("`trials` of 1000000000"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.trials = 0; }), HasSubstr("between 1 and 1000"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.time_limit_s = NAN; }), HasSubstr("`time_limit_s` of nan"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.memory_limit_bytes = -1; }), HasSubstr("memory_limit_bytes"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.threads = -1; }), HasSubstr("threads"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.timing_budget_s = INFINITY; }), HasSubstr("timing_budget_s"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.aten = "zzz"; }), HasSubstr("no judge knows `zzz` as `aten`"));
  EXPECT_THAT(refused([](JudgeOptions& o) { o.precision = "zzz"; }), HasSubstr("precision"));
}

// However the program ends, the judge ends with it.
TEST_F(JudgeClient, WorkerEndsWithTheProgram) {
  pid_t program = fork();
  if (program == 0) {
    open_error("echo $$ > " + (folder_ / "pid").string() + "; exec sleep 60");
    _exit(0);
  }
  pid_t worker = 0;
  for (int i = 0; i < 500 && worker == 0; ++i) {
    usleep(10'000);
    std::ifstream(folder_ / "pid") >> worker;
  }
  ASSERT_GT(worker, 0);
  EXPECT_EQ(kill(worker, 0), 0);
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  bool runs = true;
  for (int i = 0; i < 500 && runs; ++i) {
    usleep(10'000);
    std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
    std::string number, name, state;
    runs = stat >> number >> name >> state && state != "Z";
  }
  EXPECT_FALSE(runs);
  if (runs) kill(worker, SIGKILL);
}

// A judge whose GPU does not work any more says so, and the next candidate gets another judge.
TEST_F(JudgeClient, StartsAnotherWorkerAfterALastAnswer) {
  Verdict crashed;
  crashed.outcome = Outcome::crashed;
  nlohmann::json last = to_json(crashed);
  last["judge_ends"] = true;
  const auto path = folder_ / "worker", starts = folder_ / "starts";
  std::ofstream(path) << "#!/bin/sh\necho start >> " << starts.string() << "; " << message({{"target", "cuda:sm_90a"}})
                      << message(last) << "sleep 60\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  JudgeOptions options;
  options.worker = path;
  options.target = "auto";
  auto judge = open_judge(folder_, options);
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  EXPECT_EQ((*judge)->target(), "cuda:sm_90a");
  for (int number = 1; number <= 2; ++number) {
    const Verdict verdict = (*judge)->check({.source = ""});
    EXPECT_EQ(verdict.outcome, Outcome::crashed) << verdict.detail;
    EXPECT_EQ(verdict.target, "cuda:sm_90a");
    std::ifstream file(starts);
    EXPECT_EQ(std::distance(std::istream_iterator<std::string>(file), {}), number);
  }
}

TEST_F(JudgeClient, fail_NoWorker) {
  JudgeOptions options;
  options.worker = folder_ / "absent";
  auto judge = open_judge(folder_, options);
  ASSERT_FALSE(judge.ok());
  EXPECT_EQ(judge.error().kind, DiagnosticKind::worker_unavailable);
  EXPECT_THAT(judge.error().message, HasSubstr("No such file"));
}

TEST_F(JudgeClient, fail_WorkerEndsAtOnce) { EXPECT_THAT(open_error("exit 7"), HasSubstr("ended with code 7")); }

TEST_F(JudgeClient, fail_WorkerDies) { EXPECT_THAT(open_error("kill -SEGV $$"), HasSubstr("died of signal 11")); }

TEST_F(JudgeClient, fail_WorkerTalksNonsense) {
  EXPECT_THAT(open_error("printf 'nonsense at length' >&3; sleep 0.1"), HasSubstr("the worker "));
}

}  // namespace
}  // namespace tilepilot::eval
