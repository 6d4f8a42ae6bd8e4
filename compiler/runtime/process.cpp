#include "compiler/runtime/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

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

// Null-terminated, as exec wants it.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct Program {
  std::vector<char*> arguments, environment;
  const char* folder;  // null: this process's
};

// In the child: only calls that allocate nothing.
[[noreturn]] void become(const Program& program, const untrusted::PreparedConfinement& confinement, bool in_namespaces,
                         const Pipe& out, const Pipe& err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(nothing, 0) < 0 || dup2(out.write_end, 1) < 0 || dup2(err.write_end, 2) < 0) _exit(127);
  confinement.put_on(in_namespaces);
  if (program.folder != nullptr && chdir(program.folder) != 0) _exit(127);
  execve(program.arguments[0], program.arguments.data(), program.environment.data());
  _exit(127);
}

int start_confined(const Program& program, const untrusted::Confinement& wanted, const Pipe& out, const Pipe& err,
                   pid_t& pid) {
  const untrusted::PreparedConfinement confinement(wanted);
  bool in_namespaces = false;
  pid = untrusted::fork_into_namespaces(in_namespaces);
  if (pid == 0) become(program, confinement, in_namespaces, out, err);
  return pid < 0 ? errno : 0;
}

// As a child that ends with this thread. posix_spawn() cannot ask for that.
int start_plain(const Program& program, const Pipe& out, const Pipe& err, pid_t& pid) {
  const pid_t parent = getpid();
  volatile int failure = 0;  // the child runs in this memory until it has become the program
  pid = vfork();
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool ready = dup2(nothing, 0) >= 0 && dup2(out.write_end, 1) >= 0 && dup2(err.write_end, 2) >= 0 &&
                       (program.folder == nullptr || chdir(program.folder) == 0);
    if (ready) execvpe(program.arguments[0], program.arguments.data(), program.environment.data());
    failure = errno;
    _exit(127);
  }
  if (pid < 0) return errno;
  if (failure != 0) waitpid(pid, nullptr, 0);
  return failure;
}

// Starts the program in a process group of its own, so that a time limit ends its children too. Returns an errno.
int spawn(const std::vector<std::string>& argv, const ProcessOptions& options, const Pipe& out, const Pipe& err,
          pid_t& pid) {
  std::vector<std::string> environment = untrusted::environment_of(options.environment);
  for (const std::string& more : options.more_environment) {
    const std::string name = more.substr(0, more.find('=') + 1);
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name); });
    environment.push_back(more);
  }
  const Program program{pointers_to(argv), pointers_to(environment),
                        options.working_directory.empty() ? nullptr : options.working_directory.c_str()};
  if (options.confinement) return start_confined(program, *options.confinement, out, err, pid);
  return start_plain(program, out, err, pid);
}

// What is kept of a stream.
struct Stream {
  std::string* text;
  size_t limit;
  const std::function<void(std::string_view)>* watch;
  size_t dropped = 0;

  // Takes what is there; false at the end.
  bool drain(int descriptor) {
    char buffer[1 << 16];
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count <= 0) return count < 0 && errno == EINTR;
    if (*watch) (*watch)({buffer, static_cast<size_t>(count)});
    const size_t kept = std::min(static_cast<size_t>(count), limit - text->size());
    text->append(buffer, kept);
    dropped += static_cast<size_t>(count) - kept;
    return true;
  }
  void finish() const {
    if (dropped > 0) *text += fmt::format("\n... ({} more bytes)\n", dropped);
  }
};

using Clock = std::chrono::steady_clock;

// What a limit leaves a process that has run since `begin`, in seconds.
double seconds_left(double limit, Clock::time_point begin, pid_t process) {
  constexpr double kPatience = 10;
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  return std::min(limit + queued_seconds(process), kPatience * limit) - elapsed;
}

enum class Stop { ended, time_is_up, abandoned };

// Reads both streams until they end or there is a reason to stop.
Stop collect(const Pipe& out, const Pipe& err, pid_t process, const ProcessOptions& options, ProcessResult& result) {
  pollfd waiting[3] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}, {options.abandon, POLLRDHUP, 0}};
  const std::function<void(std::string_view)> nobody;
  Stream streams[2] = {{&result.out, options.output_limit, &nobody},
                       {&result.err, options.output_limit, &options.watch_err}};
  const auto begin = Clock::now();
  Stop stop = Stop::ended;
  while (stop == Stop::ended && (waiting[0].fd >= 0 || waiting[1].fd >= 0)) {
    int wait_ms = -1;
    if (options.time_limit_s > 0) {
      const double left = seconds_left(options.time_limit_s, begin, process);
      if (left <= 0) stop = Stop::time_is_up;
      wait_ms = static_cast<int>(std::clamp(left, 0.0, 1e5) * 1000) + 1;
    }
    if (poll(waiting, 3, wait_ms) < 0 && errno != EINTR) break;
    for (int stream = 0; stream < 2; ++stream)
      if (waiting[stream].revents != 0 && !streams[stream].drain(waiting[stream].fd)) waiting[stream].fd = -1;
    if (waiting[2].revents != 0) stop = Stop::abandoned;
  }
  for (const Stream& stream : streams) stream.finish();
  return stop;
}

}  // namespace

namespace {

double queued_in(const std::filesystem::path& folder) {
  double running = 0, queued = 0;  // in nanoseconds; see Linux, Documentation/scheduler/sched-stats.rst
  std::ifstream(folder / "schedstat") >> running >> queued;
  return queued * 1e-9;
}

}  // namespace

double queued_seconds(pid_t process) { return queued_in(fmt::format("/proc/{}", process)); }

double queued_seconds_of_threads(pid_t process) {
  double queued = 0;
  std::error_code ended;
  for (std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", process), ended), end;
       !ended && thread != end; thread.increment(ended))
    queued += queued_in(thread->path());
  return queued;
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
  const auto begin = Clock::now();
  const Stop stop = collect(out, err, pid, options, result);
  result.timed_out = stop == Stop::time_is_up;
  result.abandoned = stop == Stop::abandoned;
  if (stop != Stop::ended && options.grace_s > 0) {
    ProcessOptions last = options;
    last.time_limit_s = options.grace_s;
    last.abandon = -1;
    kill(pid, SIGTERM);
    collect(out, err, pid, last, result);
  }
  if (stop != Stop::ended) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);  // it may not have come to its group yet
  }
  int ended = 0;
  while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(ended)) result.exit_code = WEXITSTATUS(ended);
  if (WIFSIGNALED(ended)) result.signal = WTERMSIG(ended);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

std::string ending_of(const ProcessResult& result) {
  if (result.timed_out) return "it did not end within its time limit";
  if (result.signal == SIGKILL) return "it was killed (signal 9), as the system does where memory is short";
  if (result.signal != 0) return fmt::format("it ended with signal {} ({})", result.signal, strsignal(result.signal));
  return fmt::format("it ended with code {}", result.exit_code);
}

}  // namespace tilepilot::runtime
