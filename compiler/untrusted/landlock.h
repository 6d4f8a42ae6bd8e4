// Landlock: a process gives up access to files, TCP ports, and signals to and abstract sockets of others, for ever and
// without being root. See Documentation/userspace-api/landlock.rst of Linux.
#pragma once

#include <cstdint>

namespace tilepilot::untrusted {

// The rules of one process. Nothing but what is allowed stays possible. Allocates no memory.
class Landlock {
 public:
  Landlock();
  ~Landlock();
  Landlock(const Landlock&) = delete;

  // `descriptor` is open on a file, or on a folder and all below it. Reading includes executing.
  void allow(int descriptor, bool folder, bool writing);
  void allow_reading_below(const char* folder);
  // The version of the interface that is in force; 0: there is no Landlock.
  int restrict_self();

 private:
  int version_ = 0;
  uint64_t files_ = 0;  // rights on files that the rules handle
  int rules_ = -1;
};

}  // namespace tilepilot::untrusted
