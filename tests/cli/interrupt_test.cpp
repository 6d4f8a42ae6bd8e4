// What a signal leaves behind: nothing.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/cli/command_line.h"
#include "tests/cli/process_tree.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;

class Interrupt : public CommandLine {
 protected:
  pid_t start_generate() {
    const std::string cache = "TILEPILOT_CACHE=" + (folder_ / "cache").string();
    const std::string store_variable = "TILEPILOT_STORE=" + store().string();
    const std::string wanted = model("scale_softmax"), output = (folder_ / "out.py").string();
    const pid_t process = fork();
    if (process == 0) {
      ::signal(SIGINT, SIG_DFL);  // what a shell starts in the background ignores it
      const int progress = open((folder_ / "progress").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
      dup2(progress, STDERR_FILENO);
      dup2(progress, STDOUT_FILENO);
      execl("/usr/bin/env", "env", cache.c_str(), store_variable.c_str(), TILEPILOT_BINARY_DIR "/tilepilot", "generate",
            wanted.c_str(), "-o", output.c_str(), nullptr);
      _exit(127);
    }
    return process;
  }

  // Sends the signal once a process with `word` in its command line runs below the program.
  void interrupt_at(const std::string& word, int signal) {
    const pid_t process = start_generate();
    std::set<pid_t> descendants;
    const bool reached = comes_true(120, [&] {
      descendants.clear();
      collect_descendants(process, descendants);
      return std::any_of(descendants.begin(), descendants.end(), [&](pid_t id) {
        return content_of("/proc/" + std::to_string(id) + "/cmdline").find(word) != std::string::npos;
      });
    });
    EXPECT_TRUE(reached) << "no `" << word << "` was started";
    EXPECT_FALSE(fs::is_empty(folder_ / "cache/work"));
    kill(process, signal);
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(fs::is_empty(folder_ / "cache/work"));
    EXPECT_TRUE(comes_true(10, [&] { return std::none_of(descendants.begin(), descendants.end(), is_alive); }));
    EXPECT_FALSE(fs::exists(folder_ / "out.py"));
  }
};

// What was verified before the signal is not lost.
TEST_F(Interrupt, AfterAVerifiedAttempt) {
  const pid_t process = start_generate();
  auto told = [&](const char* text) { return content_of(folder_ / "progress").find(text) != std::string::npos; };
  EXPECT_TRUE(comes_true(240, [&] { return told("attempt 1: verified"); })) << content_of(folder_ / "progress");
  kill(process, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  EXPECT_TRUE(told("interrupted: attempt 1 is the best so far")) << content_of(folder_ / "progress");
  EXPECT_NE(content_of(folder_ / "out.py").find("class ModelNew"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_ / "cache/work"));
}

TEST_F(Interrupt, WhileTheModelIsExported) { interrupt_at("export_reference.py", SIGINT); }

TEST_F(Interrupt, WhileACandidateRuns) { interrupt_at("candidate", SIGTERM); }

}  // namespace
}  // namespace tilepilot
