// One running `tilepilot-worker`: started in a role, spoken to over a wire, ended with the object.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "eval/process/wire.h"

namespace tilepilot::eval {

struct WorkerLaunch {
  std::filesystem::path executable;
  std::string role;                   // "judge", kCandidate or kForkServer
  int threads = 0;                    // of LibTorch and of kernels; 0: all cores
  std::vector<int> descriptors = {};  // handed down; the worker finds them at kFirstInherited, in order
  bool dies_with_thread = false;      // killed when the thread that starts it ends
  // The first process of namespaces of its own, if the kernel gives them; it is told by its second argument.
  bool in_namespaces = false;
  int output = -1;  // its standard output and error; -1: this process's
  // Not empty: another program, which gets these arguments in place of the role, and the whole environment that the
  // user's own Python gets.
  std::vector<std::string> arguments = {};
};

// A worker's second argument.
inline constexpr const char* kInNamespaces = "namespaces";
inline constexpr const char* kAmongOthers = "plain";

// Roles: one candidate's process, and one that forks such processes (fork_server.h).
inline constexpr const char* kCandidate = "candidate";
inline constexpr const char* kForkServer = "fork-server";

// Where a worker finds its socket, and after it the descriptors of the launch.
inline constexpr int kWorkerSocket = 3;
inline constexpr int kFirstInherited = 4;
// A candidate's, to the process that compiles for it; closed: it compiles itself.
inline constexpr int kCompilerSocket = kFirstInherited + 1;

// In a judge's answer: whether it was its last.
inline constexpr const char* kJudgeEnds = "judge_ends";
// In a message before the answer to `open`: what the judge waits for.
inline constexpr const char* kJudgeWaits = "judge_waits";

class WorkerProcess {
 public:
  // Errors: `worker_unavailable`.
  static Result<std::unique_ptr<WorkerProcess>> start(const WorkerLaunch& launch);
  // Takes over a child of this process that somebody else has started.
  static std::unique_ptr<WorkerProcess> adopt(pid_t child, Wire wire);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;

  Wire& wire() { return wire_; }
  pid_t pid() const { return pid_; }
  struct Ending {
    int exit_code = -1;  // -1: by a signal
    int signal = 0;
  };
  // Ends the process (and its group) if it still runs, and says how it ended. `grace_s`: how long it may take to end
  // by itself.
  Ending stop(double grace_s = 0);
  // For how long the process's first thread could have run while no processor was free; 0 if the system does not say.
  double queued_seconds() const;
  double queued_seconds_of_threads() const;
  // Of processors, by the kernel's account: all its threads, those that have ended as well. 0 once it has ended.
  double cpu_seconds() const;

 private:
  WorkerProcess(pid_t pid, Wire wire) : pid_(pid), wire_(std::move(wire)) {}
  pid_t pid_;
  Wire wire_;
  Ending ending_;
};

}  // namespace tilepilot::eval
