#include "compiler/runtime/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace tilepilot::runtime {
namespace {

TEST(ProcessTest, GivesWhatTheProgramWroteAndItsCode) {
  const auto ran = run_process({"sh", "-c", "echo one; echo two >&2; exit 3"});
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->out, "one\n");
  EXPECT_EQ(ran->err, "two\n");
  EXPECT_EQ(ran->exit_code, 3);
  EXPECT_FALSE(ran->timed_out);
}

TEST(ProcessTest, TheTimeLimitEndsTheProgramAndItsChildren) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ran =
      run_process({"sh", "-c", "sleep 60 & echo $!; wait"}, {.time_limit_s = 0.3, .working_directory = {}});
  ASSERT_TRUE(ran.ok());
  EXPECT_TRUE(ran->timed_out);
  EXPECT_EQ(ran->exit_code, -1);
  EXPECT_EQ(ran->signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  // The child has lost its parent and is gone as soon as somebody waits for it.
  const pid_t child = std::stoi(ran->out);
  for (int k = 0; k < 100 && kill(child, 0) == 0; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::ifstream state("/proc/" + std::to_string(child) + "/stat");
  std::string id, name, letter;
  const bool is_gone = !(state >> id >> name >> letter) || letter == "Z";
  EXPECT_TRUE(is_gone);
}

TEST(ProcessTest, KnowsHowLongAProcessWaitedForAProcessor) {
  if (!std::ifstream("/proc/self/schedstat")) GTEST_SKIP() << "this system does not say how long processes wait";
  const double before = queued_seconds(getpid());
  std::atomic<bool> done = false;
  std::vector<std::thread> busy;
  for (unsigned k = 0; k < 4 * std::thread::hardware_concurrency(); ++k)
    busy.emplace_back([&] {
      while (!done) {}
    });
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(400)) {}
  done = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_GT(queued_seconds(getpid()), before);
}

TEST(ProcessTest, fail_NoSuchProgram) {
  const auto ran = run_process({"tilepilot-no-such-program"});
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().kind, DiagnosticKind::load_failed);
}

}  // namespace
}  // namespace tilepilot::runtime
