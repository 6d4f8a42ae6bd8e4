// What candidates and the programs around them can reach and leave behind, with everything that a user's `check`
// starts.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "compiler/untrusted/isolation.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Isolation : public CommandLine {
 protected:
  nlohmann::json verdict_of(const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"check",    candidate(name),  "-r",    model("double"), "--no-timing",
                                          "--target", "emulate:sm_90a", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    result_ = tilepilot(arguments);
    return nlohmann::json::parse(result_.out, nullptr, false);
  }

  runtime::ProcessResult result_;
};

TEST_F(Isolation, ForeignSourceIsRefusedAndAdmittedWithAMark) {
  auto refused = verdict_of("foreign_double");
  EXPECT_EQ(refused["outcome"], "rejected") << all(result_);
  EXPECT_EQ(refused["guard"], "foreign_source");
  EXPECT_EQ(refused["line"], 20);
  auto admitted = verdict_of("foreign_double", {"--allow-foreign"});
  EXPECT_EQ(admitted["outcome"], "verified") << all(result_);
  EXPECT_EQ(admitted["foreign_source"], true);
}

TEST_F(Isolation, fail_ForeignSourceThatAnswersInTheCandidatesPlace) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "its system calls have the numbers of x86-64";
#endif
  auto verdict = verdict_of("foreign_liar", {"--allow-foreign"});
  EXPECT_EQ(verdict["outcome"], "rejected") << all(result_);
  EXPECT_EQ(verdict["guard"], "protocol");
  EXPECT_EQ(verdict["foreign_source"], true);
  EXPECT_THAT(result_.err, HasSubstr("still here \\x1b[2J"));
  EXPECT_THAT(result_.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result_.err, Not(HasSubstr("it got out")));
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Processes whose environment holds a text.
std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (contents(entry.path() / "environ").find(text) != std::string::npos)
      found.push_back(std::atoi(entry.path().filename().c_str()));
  return found;
}

std::vector<pid_t> workers_with(const std::string& text) {
  std::vector<pid_t> found = processes_with(text);
  std::erase_if(found, [](pid_t process) {
    return contents("/proc/" + std::to_string(process) + "/comm") != "tilepilot-worke\n";
  });
  return found;
}

TEST_F(Isolation, TheKeyReachesNobody) {
  const std::string key = "planted-" + std::to_string(getpid());
  std::atomic<bool> done = false;
  std::vector<std::string> leaks;
  std::thread watcher([&] {
    while (!done) {
      for (const pid_t process : processes_with(key)) {
        const std::string name = contents("/proc/" + std::to_string(process) + "/comm");
        // The program itself, until it has read it, and what the test starts it with.
        if (name != "env\n" && name != "tilepilot\n" && name != "test_cli\n" && !name.empty()) leaks.push_back(name);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const auto result =
      check("good_matmul", {}, {"TILEPILOT_API_KEY=" + key, "TILEPILOT_CACHE=" + (folder_ / "c").string()});
  done = true;
  watcher.join();
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(leaks, ::testing::IsEmpty());
}

// Processes of a run have its mark in their environments; so have their temporary files' folder.
TEST_F(Isolation, KilledAtAnyMomentNothingIsLeft) {
  if (!untrusted::available_layers().namespaces) GTEST_SKIP() << "this machine gives no namespaces";
  const char* rounds = std::getenv("TILEPILOT_KILL_ROUNDS");
  std::mt19937 random(11);
  const auto temporary = folder_ / "temporary";
  std::filesystem::create_directories(temporary);
  const std::string mark = "TMPDIR=" + temporary.string();
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 6); ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const int nothing = open("/dev/null", O_RDWR);
      dup2(nothing, 1);
      dup2(nothing, 2);
      setenv("TMPDIR", temporary.c_str(), 1);
      setenv("TILEPILOT_CACHE", (folder_ / ("cache" + std::to_string(round))).c_str(), 1);
      setenv("TILEPILOT_STORE", store().c_str(), 1);
      const std::string candidate_path = candidate("good_matmul"), model_path = model("matmul");
      execl(TILEPILOT_BINARY_DIR "/tilepilot", "tilepilot", "check", candidate_path.c_str(), "-r", model_path.c_str(),
            nullptr);
      _exit(127);
    }
    // The export comes first; then the judge, its broker and the candidate are there.
    std::vector<pid_t> victims;
    for (int k = 0; k < 12000 && (victims = workers_with(mark)).empty(); ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 3000));
    victims = workers_with(mark);
    victims.push_back(child);
    kill(victims[random() % victims.size()], SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 500));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (int k = 0; k < 500 && !processes_with(mark).empty(); ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::string names;
    for (const pid_t process : processes_with(mark))
      names += contents("/proc/" + std::to_string(process) + "/cmdline") + "; ";
    EXPECT_EQ(names, "") << "round " << round;
    for (const auto& file : std::filesystem::directory_iterator(temporary))
      EXPECT_THAT(file.path().filename().string(), ::testing::StartsWith("torchinductor"));  // PyTorch's own
  }
}

}  // namespace
}  // namespace tilepilot
