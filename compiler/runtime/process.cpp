#include "compiler/runtime/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

extern char** environ;

namespace tilepilot::runtime {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_write() {
    if (write_end >= 0) ::close(write_end);
    write_end = -1;
  }
  ~Pipe() {
    close_write();
    if (read_end >= 0) ::close(read_end);
  }
};

// Starts the program in a process group of its own, so that a time limit ends its children too. Returns an errno.
int spawn(const std::vector<std::string>& argv, const ProcessOptions& options, const Pipe& out, const Pipe& err,
          pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, 2);
  if (!options.working_directory.empty())
    posix_spawn_file_actions_addchdir_np(&actions, options.working_directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  int status = posix_spawnp(&pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return status;
}

// Appends what is there; false at the end of the stream.
bool drain(int descriptor, std::string& text) {
  char buffer[1 << 16];
  ssize_t count = read(descriptor, buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

using Clock = std::chrono::steady_clock;

// What a limit leaves a process that has run since `begin`, in seconds.
double seconds_left(double limit, Clock::time_point begin, pid_t process) {
  constexpr double kPatience = 10;
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  return std::min(limit + queued_seconds(process), kPatience * limit) - elapsed;
}

// Reads both streams until they end or the time is up; false if it was.
bool collect(const Pipe& out, const Pipe& err, pid_t process, double limit, ProcessResult& result) {
  pollfd waiting[2] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  const auto begin = Clock::now();
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    int wait_ms = -1;
    if (limit > 0) {
      const double left = seconds_left(limit, begin, process);
      if (left <= 0) return false;
      wait_ms = static_cast<int>(left * 1000) + 1;
    }
    if (poll(waiting, 2, wait_ms) < 0 && errno != EINTR) return true;
    for (int stream = 0; stream < 2; ++stream)
      if (waiting[stream].revents != 0 && !drain(waiting[stream].fd, *texts[stream])) waiting[stream].fd = -1;
  }
  return true;
}

}  // namespace

double queued_seconds(pid_t process) {
  double running = 0, queued = 0;  // in nanoseconds; see Linux, Documentation/scheduler/sched-stats.rst
  std::ifstream(fmt::format("/proc/{}/schedstat", process)) >> running >> queued;
  return queued * 1e-9;
}

Result<ProcessResult> run_process(const std::vector<std::string>& argv, const ProcessOptions& options) {
  Pipe out, err;
  pid_t pid = -1;
  int status = out.open() && err.open() ? spawn(argv, options, out, err, pid) : errno;
  if (status != 0)
    return make_error(DiagnosticKind::load_failed, {},
                      fmt::format("cannot run `{}`: {}", argv[0], std::strerror(status)));
  out.close_write();
  err.close_write();
  ProcessResult result;
  result.timed_out = !collect(out, err, pid, options.time_limit_s, result);
  if (result.timed_out) kill(-pid, SIGKILL);
  int ended = 0;
  while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(ended)) result.exit_code = WEXITSTATUS(ended);
  if (WIFSIGNALED(ended)) result.signal = WTERMSIG(ended);
  return result;
}

}  // namespace tilepilot::runtime
