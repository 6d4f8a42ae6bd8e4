#include "compiler/runtime/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
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

TEST(ProcessTest, KeepsOnlySoMuchOfWhatIsWritten) {
  ProcessOptions options;
  options.output_limit = 1000;
  const auto ran = run_process({"sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x >&2; echo small"}, options);
  ASSERT_TRUE(ran.ok());
  EXPECT_LT(ran->err.size(), 1100u);
  EXPECT_NE(ran->err.find("4999000 more bytes"), std::string::npos);
  EXPECT_EQ(ran->out, "small\n");
}

TEST(ProcessTest, TheKeyReachesNobody) {
  setenv("TILEPILOT_API_KEY", "a secret", 1);
  setenv("OTHER_VARIABLE", "seen", 1);
  ProcessOptions options;
  for (const auto kind : {untrusted::EnvironmentOf::the_user, untrusted::EnvironmentOf::compilers}) {
    options.environment = kind;
    const auto ran = run_process({"env"}, options);
    ASSERT_TRUE(ran.ok());
    EXPECT_EQ(ran->out.find("a secret"), std::string::npos);
    EXPECT_EQ(ran->out.find("seen") != std::string::npos, kind == untrusted::EnvironmentOf::the_user);
    EXPECT_NE(ran->out.find("PATH="), std::string::npos);
  }
  options.environment = untrusted::EnvironmentOf::the_user;
  options.more_environment = {"OTHER_VARIABLE=another"};
  const auto ran = run_process({"sh", "-c", "echo $OTHER_VARIABLE; env | grep -c OTHER_VARIABLE="}, options);
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->out, "another\n1\n");
  unsetenv("TILEPILOT_API_KEY");
  unsetenv("OTHER_VARIABLE");
}

ProcessOptions confined() {
  ProcessOptions options;
  options.confinement = untrusted::Confinement{
      {{"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"}, {"/dev/null"}}, untrusted::Calls::compiling, {}};
  return options;
}

// Whatever of the layers this machine gives: each alone keeps a file of others from being read.
TEST(ProcessTest, AConfinedProgramSeesOnlyItsFiles) {
  const auto layers = untrusted::available_layers();
  if (!layers.root && layers.landlock == 0) GTEST_SKIP() << untrusted::to_string(layers);
  const auto ran =
      run_process({"/bin/sh", "-c", "cat /etc/passwd; echo x > /usr/x; echo x > /tmp/x; echo here"}, confined());
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->out, "here\n") << ran->err;
}

// How many processes were started so.
int running(const std::string& program, const std::string& argument) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::string first, second;
    if (std::getline(file, first, '\0') && std::getline(file, second, '\0'))
      count += first == program && second == argument;
  }
  return count;
}

// What it starts in the background ends with it, though in a session of its own.
TEST(ProcessTest, NothingOutlivesAConfinedProgram) {
  if (!untrusted::available_layers().namespaces) GTEST_SKIP() << "this machine gives no namespaces";
  const std::string name = "31.0" + std::to_string(getpid());
  const auto ran = run_process({"/bin/sh", "-c", "setsid sleep " + name + " >/dev/null 2>&1 & exit 0"}, confined());
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->exit_code, 0) << ran->err;
  EXPECT_EQ(running("sleep", name), 0);
}

TEST(ProcessTest, EndsWhatNobodyWaitsForAnyMore) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::thread hangs_up([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    close(ends[1]);
  });
  ProcessOptions options;
  options.abandon = ends[0];
  const auto ran = run_process({"sleep", "60"}, options);
  hangs_up.join();
  close(ends[0]);
  ASSERT_TRUE(ran.ok());
  EXPECT_TRUE(ran->abandoned);
  EXPECT_EQ(ran->signal, SIGKILL);
}

TEST(ProcessTest, GivesTimeForLastWords) {
  ProcessOptions options{.time_limit_s = 0.3};
  options.grace_s = 20;
  const auto begin = std::chrono::steady_clock::now();
  const auto told = run_process(
      {"bash", "-c", "trap 'echo last; exit 5' TERM; echo first; sleep 60 >/dev/null 2>&1 & wait"}, options);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->out, "first\nlast\n");
  EXPECT_EQ(told->exit_code, 5);
  EXPECT_TRUE(told->timed_out);
  // A program that does not heed the signal is killed, and so are children that keep its streams open.
  options.grace_s = 0.3;
  const auto deaf = run_process({"bash", "-c", "trap '' TERM; echo first; sleep 60; sleep 60"}, options);
  ASSERT_TRUE(deaf.ok());
  EXPECT_EQ(deaf->signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(ProcessTest, SaysHowAProgramEnded) {
  EXPECT_EQ(ending_of(*run_process({"sh", "-c", "exit 1"})), "it ended with code 1");
  EXPECT_NE(ending_of(*run_process({"sh", "-c", "kill -9 $$"})).find("memory"), std::string::npos);
}

TEST(ProcessTest, fail_NoSuchProgram) {
  const auto ran = run_process({"tilepilot-no-such-program"});
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().kind, DiagnosticKind::load_failed);
}

}  // namespace
}  // namespace tilepilot::runtime
