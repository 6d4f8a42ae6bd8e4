#include "cli/folder_guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "compiler/runtime/owned_folder.h"

namespace tilepilot::cli {
namespace {

using Folders = std::vector<std::filesystem::path>;

// Processes that end with this one need a moment, on a busy machine seconds, and write as long as they live; those of
// other runs keep their folders, and are not waited for.
void remove_what_is_left(pid_t program, const Folders& folders) {
  constexpr double kFirst = 0.02, kMore = 1.1, kSeconds = 30;
  const auto is_ending = [adopter = getppid()](pid_t owner) { return runtime::is_orphan(owner, adopter); };
  double waited = 0;
  for (double pause = kFirst; waited < kSeconds; pause *= kMore) {
    bool is_done = runtime::is_dead(program);  // its files are closed before it counts as dead
    for (const auto& folder : folders) {
      const auto left = runtime::remove_owned_folders(folder, runtime::is_dead);
      is_done = is_done && std::none_of(left.begin(), left.end(), is_ending);
    }
    if (is_done) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    waited += pause;
  }
}

// Descriptors that this process was given: others may wait for their end.
void close_all_but(int kept) {
  if (kept > 3) close_range(3, static_cast<unsigned>(kept) - 1, 0);
  close_range(static_cast<unsigned>(std::max(kept, 2)) + 1, ~0U, 0);
}

[[noreturn]] void stand_guard(pid_t program, int lifeline, const Folders& folders) {
  lifeline = fcntl(lifeline, F_DUPFD_CLOEXEC, 3);
  setsid();
  prctl(PR_SET_NAME, "tilepilot-guard");
  // A pipe that this process's output goes to ends with it, not with the guard.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; stream <= 2; ++stream) dup2(nothing, stream);
  close_all_but(lifeline);
  char byte = 0;
  while (read(lifeline, &byte, 1) < 0 && errno == EINTR) {}
  remove_what_is_left(program, folders);
  _exit(0);
}

}  // namespace

FolderGuard::FolderGuard(const Folders& folders) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  // The guard is nobody's child to wait for: the one that starts it ends at once.
  const pid_t program = getpid(), starter = fork();
  if (starter == 0) {
    close(ends[1]);
    if (fork() == 0) stand_guard(program, ends[0], folders);
    _exit(0);
  }
  close(ends[0]);
  if (starter > 0) waitpid(starter, nullptr, 0);
  lifeline_ = ends[1];
}

FolderGuard::~FolderGuard() {
  if (lifeline_ >= 0) close(lifeline_);
}

}  // namespace tilepilot::cli
