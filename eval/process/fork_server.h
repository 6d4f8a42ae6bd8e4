// A fork server (a zygote): a process that has loaded LibTorch and does nothing but fork candidates, so that a judge
// pays for loading it once and not for each of them. It is a program started anew by the judge: of the judge it has the
// environment that workers get and one socket, and it has one thread. Candidates that it forks are children of the
// judge, which waits for them, counts their time and ends them like those that it starts itself.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "eval/process/worker_process.h"

namespace tilepilot::eval {

// The judge's side.
class ForkServer {
 public:
  // Takes a process that serves.
  explicit ForkServer(std::unique_ptr<WorkerProcess> server) : server_(std::move(server)) {}
  // Does not wait until it has loaded. Errors: `worker_unavailable`.
  static Result<std::unique_ptr<ForkServer>> start(const std::filesystem::path& executable, int threads);

  // A candidate's process as WorkerProcess::start() makes it: in namespaces if there are any, killed when the thread
  // that started the server ends. Null if there is none to be had; then there never will be, and the server has ended.
  std::unique_ptr<WorkerProcess> fork(const std::vector<int>& descriptors, int output);

  // Of the server; -1: it has ended.
  pid_t process() const { return server_ ? server_->pid() : -1; }

 private:
  std::unique_ptr<WorkerProcess> server_;
};

// The server's side: answers requests from kWorkerSocket until that closes, then ends the process, as it does if this
// process has several threads. Returns in each process that it forks, with descriptors in the places where a worker
// finds them: whether it has namespaces of its own. All of them find the same memory: nothing is kept between requests.
bool serve_forks();

}  // namespace tilepilot::eval
