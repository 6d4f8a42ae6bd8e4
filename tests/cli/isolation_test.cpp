// What candidates and the programs around them can reach and leave behind, with everything that a user's `check`
// starts.
#include <atomic>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"
#include "tests/cli/process_tree.h"

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

TEST_F(Isolation, TheKeyReachesNobody) {
  const std::string key = "planted-" + std::to_string(getpid());
  std::atomic<bool> done = false;
  std::vector<std::string> leaks;
  std::thread watcher([&] {
    while (!done) {
      for (const pid_t process : processes_with(key)) {
        const std::string name = content_of(folder_of(process) / "comm");
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

}  // namespace
}  // namespace tilepilot
