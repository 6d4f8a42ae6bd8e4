#include "eval/process/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "compiler/runtime/process.h"
#include "compiler/untrusted/environment.h"
#include "compiler/untrusted/isolation.h"

namespace tilepilot::eval {
namespace {

// The same for every worker, so that both sides of a comparison run alike. A count of threads that the user set for
// OpenMP counts as it does for PyTorch, unless `threads` says another. After a parallel region the threads of an idle
// process must sleep soon: while they spin, they take the cores from the process that is being timed.
std::vector<std::string> worker_environment(int threads, untrusted::EnvironmentOf kind) {
  std::vector<std::string> environment = untrusted::environment_of(kind);
  std::erase_if(environment, [threads](std::string_view entry) {  // only the user's Python would get these
    if (entry.starts_with("OMP_NUM_THREADS=")) return threads > 0;
    return entry.starts_with("OMP_") || entry.starts_with("GOMP_") || entry.starts_with("KMP_") ||
           entry.starts_with("MKL_");
  });
  environment.emplace_back("GOMP_SPINCOUNT=10000");
  if (threads > 0) environment.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Execution {
  char** arguments;
  char** environment;
  pid_t parent;
};

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become_worker(const WorkerLaunch& launch, const std::vector<int>& descriptors,
                                const Execution& execution) {
  setpgid(0, 0);
  if (launch.dies_with_thread) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != execution.parent) _exit(127);  // it ended before the request took effect
  }
  if (launch.output >= 0 && (dup2(launch.output, STDOUT_FILENO) < 0 || dup2(launch.output, STDERR_FILENO) < 0))
    _exit(127);
  int next = kWorkerSocket;
  for (int descriptor : descriptors) {
    // All were moved out of the way above this range, so none is overwritten before it is copied.
    if (dup2(descriptor, next++) < 0) _exit(127);
  }
  // What the caller of tilepilot left open is not for workers.
  if (launch.arguments.empty()) untrusted::close_descriptors_from(next);
  execve(execution.arguments[0], execution.arguments, execution.environment);
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const WorkerLaunch& launch) {
  auto unavailable = [&](std::string_view why) {
    return make_error(DiagnosticKind::worker_unavailable, {},
                      fmt::format("`{}` cannot be started: {}", launch.executable.string(), why),
                      "build the target `tilepilot-worker`");
  };
  if (access(launch.executable.c_str(), X_OK) != 0) return unavailable(std::strerror(errno));
  auto [ours, theirs] = socket_pair();
  if (ours.number() < 0) return unavailable(std::strerror(errno));
  std::vector<Descriptor> moved;
  std::vector<int> descriptors;
  std::vector<int> wanted = {theirs.number()};
  wanted.insert(wanted.end(), launch.descriptors.begin(), launch.descriptors.end());
  for (int descriptor : wanted) {
    moved.emplace_back(fcntl(descriptor, F_DUPFD_CLOEXEC, 64));
    descriptors.push_back(moved.back().number());
  }
  std::vector<std::string> arguments = {launch.executable.string(), launch.role, kAmongOthers};
  std::vector<std::string> isolated = {launch.executable.string(), launch.role, kInNamespaces};
  const bool is_users = !launch.arguments.empty();
  if (is_users) arguments.assign(1, launch.executable.string());
  arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
  std::vector<std::string> environment = worker_environment(
      launch.threads, is_users ? untrusted::EnvironmentOf::the_user : untrusted::EnvironmentOf::workers);
  auto argument_pointers = pointers(arguments), isolated_pointers = pointers(isolated),
       environment_pointers = pointers(environment);
  Execution execution{argument_pointers.data(), environment_pointers.data(), getpid()};
  bool in_namespaces = false;
  pid_t pid = launch.in_namespaces ? untrusted::fork_into_namespaces(in_namespaces) : fork();
  if (pid < 0) return unavailable(std::strerror(errno));
  if (pid == 0) {
    // From new namespaces it cannot see its parent.
    if (in_namespaces) execution = {isolated_pointers.data(), execution.environment, 0};
    become_worker(launch, descriptors, execution);
  }
  return adopt(pid, Wire(std::move(ours)));
}

std::unique_ptr<WorkerProcess> WorkerProcess::adopt(pid_t child, Wire wire) {
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(child, std::move(wire)));
}

WorkerProcess::~WorkerProcess() { stop(); }

WorkerProcess::Ending WorkerProcess::stop(double grace_s) {
  if (pid_ <= 0) return ending_;
  int status = 0;
  double deadline = monotonic_seconds() + grace_s;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (monotonic_seconds() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    break;
  }
  kill(-pid_, SIGKILL);  // what it may have started
  pid_ = -1;
  if (WIFEXITED(status)) ending_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending_.signal = WTERMSIG(status);
  return ending_;
}

double WorkerProcess::queued_seconds() const { return runtime::queued_seconds(pid_); }
double WorkerProcess::queued_seconds_of_threads() const { return runtime::queued_seconds_of_threads(pid_); }

double WorkerProcess::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (pid_ <= 0 || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace tilepilot::eval
