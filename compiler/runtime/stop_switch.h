// Ends running programs from another thread: the socket that ProcessOptions::abandon takes.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

namespace tilepilot::runtime {

class StopSwitch {
 public:
  StopSwitch() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    held_ = ends[0];
    watched_ = ends[1];
  }
  ~StopSwitch() {
    pull();
    if (watched_ >= 0) close(watched_);
  }
  StopSwitch(const StopSwitch&) = delete;

  // What is abandoned once it is pulled; -1: the system had no socket left.
  int watched() const { return watched_; }
  // As often as wanted, from any thread.
  void pull() {
    const int end = held_.exchange(-1);
    if (end >= 0) close(end);
  }

 private:
  std::atomic<int> held_ = -1;
  int watched_ = -1;
};

}  // namespace tilepilot::runtime
