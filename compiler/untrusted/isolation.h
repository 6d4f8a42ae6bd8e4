// What a process is kept from, in layers, each of which a kernel may refuse: namespaces, a root folder of its own,
// capabilities, Landlock, a filter of system calls, limits. A layer that is not to be had is left out and told.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tilepilot::untrusted {

// What a process has around it.
struct Layers {
  bool namespaces = false;  // user, mount, PID, network, IPC, UTS
  bool root = false;        // an empty root folder but for what it needs
  int landlock = 0;         // the version of its interface; 0: none
  bool seccomp = false;
};
// "namespaces yes, own root yes, Landlock v7, seccomp yes"
std::string to_string(const Layers& layers);

// What it may see of the file system. What does not exist is left out.
struct FileView {
  std::vector<std::filesystem::path> readable;  // files and folders with all that is in them; to execute as well
  std::vector<std::filesystem::path> writable;  // likewise
};

// Which system calls it may make.
enum class Calls {
  computing,  // a candidate's: memory, threads, its open files and sockets, opening files to read
  compiling,  // all but sockets, other processes' memory, mounts and what else changes the machine
  driving,    // as `compiling`, and no other programs: a candidate's that uses a GPU's driver
};

struct Limits {
  int64_t cpu_seconds = 0;   // 0: none, as below
  int64_t memory_bytes = 0;  // of addresses
  int64_t file_bytes = 0;    // of one file that it writes
  int64_t open_files = 0;
};

struct Confinement {
  FileView files;
  Calls calls = Calls::compiling;
  Limits limits;
};

// A confinement made ready by one process and put on by another, its child, which allocates no memory for it: the
// parent may have threads.
class PreparedConfinement {
 public:
  explicit PreparedConfinement(Confinement confinement);
  ~PreparedConfinement();
  PreparedConfinement(const PreparedConfinement&) = delete;

  // In the process to be confined, which can never take it off. `in_namespaces`: fork_into_namespaces() gave it some.
  Layers put_on(bool in_namespaces) const;

 private:
  struct Entry {
    int descriptor;  // of what shall be seen
    bool folder, writable;
    std::string source, target;        // where it is, and where in the new root under way
    mutable int opened = -1;           // as `descriptor`, but in the child's namespace of mounts
    std::vector<std::string> parents;  // of the target, from the root on
  };
  Confinement confinement_;
  std::vector<Entry> entries_;
  void add(const std::filesystem::path& path, bool writable);
  bool enter_root() const;
  bool bind(const Entry& entry) const;
  int restrict_files(bool in_root) const;
};

// As fork(), but the child is the first process of new namespaces if the kernel gives them to this user: when it ends,
// all that it started ends. In the child, only what a signal handler may call is safe.
pid_t fork_into_namespaces(bool& in_namespaces);

// The same for a process of one thread that forks in place of its parent: the child is a child of that parent, which
// waits for it, and may call anything. Handlers of pthread_atfork() do not run. -1 where the kernel does not give this;
// it never gives fewer namespaces than fork_into_namespaces().
pid_t fork_sibling_into_namespaces(bool& in_namespaces);

// Closes all of this process's descriptors from this one on.
void close_descriptors_from(int first);

// The seccomp layer alone; false if there is none.
bool filter_calls(Calls calls);

// What this machine gives: found out by a child that puts on all layers.
Layers available_layers();

}  // namespace tilepilot::untrusted
