#include "cli/interrupt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "agent/work_folder.h"

namespace tilepilot::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A signal handler can reach nothing but what is static. It may do next to nothing either, so it hands the signal to a
// thread through this pipe.
std::atomic<int> write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void pass_on(int signal) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] ssize_t written = write(write_end, &byte, 1);
  errno = before;
}

// Every child leads a process group of its own, so that what it has started ends too.
void kill_children() {
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child; children >> child;) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
    }
  }
}

}  // namespace

InterruptWatch::InterruptWatch(std::filesystem::path work_folder, LastWords& last_words)
    : work_folder_(std::move(work_folder)), last_words_(last_words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;  // signals then end the program as they always do
  read_end_ = ends[0];
  write_end = ends[1];
  thread_ = std::thread([this] { watch(); });
  struct sigaction action = {};
  action.sa_handler = pass_on;
  action.sa_flags = SA_RESTART;
  for (int signal : kSignals) {
    struct sigaction before = {};
    // A signal that is ignored (nohup) stays ignored.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  if (read_end_ < 0) return;
  // If a signal came first, the thread ends the program while this waits.
  pass_on(0);
  thread_.join();
  close(read_end_);
  close(write_end.exchange(-1));
}

void InterruptWatch::watch() {
  unsigned char signal = 0;
  while (read(read_end_, &signal, 1) < 0 && errno == EINTR) {}
  if (signal == 0) return;
  for (int each : kSignals) ::signal(each, SIG_DFL);
  last_words_.say();
  // What the other thread would say now is that its children died, which is no news.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  kill_children();
  agent::WorkFolder::remove_own(work_folder_);
  kill(getpid(), signal);
  for (;;) pause();
}

}  // namespace tilepilot::cli
