#include "compiler/untrusted/isolation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "compiler/untrusted/landlock.h"

namespace tilepilot::untrusted {
namespace {

namespace fs = std::filesystem;

// Any folder that every system has: what is below stays reachable through descriptors.
constexpr const char* kRootUnderWay = "/tmp";
constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

bool write_text(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const auto size = static_cast<ssize_t>(strlen(text));
  const bool written = write(file, text, static_cast<size_t>(size)) == size;
  close(file);
  return written;
}

// "0 <id> 1\n" without memory from the heap.
void map_identity(const char* path, unsigned id) {
  char text[40];
  std::snprintf(text, sizeof(text), "0 %u 1\n", id);
  write_text(path, text);
}

// The flags that a mount has and that a new user namespace may not take from it.
unsigned long kept_flags(const char* target) {
  struct statvfs info {};
  if (statvfs(target, &info) != 0) return 0;
  unsigned long flags = 0;
  const std::pair<unsigned long, unsigned long> known[] = {{ST_NOSUID, MS_NOSUID},         {ST_NODEV, MS_NODEV},
                                                           {ST_NOEXEC, MS_NOEXEC},         {ST_NOATIME, MS_NOATIME},
                                                           {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME}};
  for (const auto& [has, flag] : known)
    if ((info.f_flag & has) != 0) flags |= flag;
  return flags;
}

#ifdef TILEPILOT_SANITIZED
constexpr bool kLimitsMemory = false;  // a process that AddressSanitizer watches takes terabytes of addresses
#else
constexpr bool kLimitsMemory = true;
#endif

void limit(int resource, int64_t value) {
  if (value <= 0) return;
  rlimit now{};
  getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlim_t most = std::min(now.rlim_max, static_cast<rlim_t>(value));
  const rlimit wanted{most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

void set_limits(const Limits& limits) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_MSGQUEUE, &none);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  if (kLimitsMemory) limit(RLIMIT_AS, limits.memory_bytes);
  limit(RLIMIT_FSIZE, limits.file_bytes);
  limit(RLIMIT_NOFILE, limits.open_files);
}

void drop_capabilities() {
  for (int capability = 0; capability < 64; ++capability) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  syscall(SYS_capset, &header, none);
}

// As root in the new namespace it is nobody else outside of it.
void map_user(unsigned user, unsigned group) {
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else the files of its own that it writes now are not its own
  write_text("/proc/self/setgroups", "deny");
  map_identity("/proc/self/uid_map", user);
  map_identity("/proc/self/gid_map", group);
}

// Where the C library keeps the number of this thread, the process's only one. fork() renews it in the child; without
// that, functions that ask the system about the thread itself would ask about one that is not there. Null if the kernel
// does not tell.
pid_t* place_of_thread_number() {
  pid_t* place = nullptr;
  if (prctl(PR_GET_TID_ADDRESS, &place, 0, 0, 0) != 0 || place == nullptr) return nullptr;
  return *place == syscall(SYS_gettid) ? place : nullptr;
}

long clone_sibling(int namespaces, [[maybe_unused]] pid_t* thread_number) {
  [[maybe_unused]] const int flags = namespaces | CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
  return syscall(SYS_clone, flags, nullptr, nullptr, thread_number, nullptr);
#elif defined(__aarch64__)
  return syscall(SYS_clone, flags, nullptr, nullptr, nullptr, thread_number);
#else
  errno = ENOSYS;
  return -1;
#endif
}

bool gives_namespaces() {
  bool in_namespaces = false;
  const pid_t child = fork_into_namespaces(in_namespaces);
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, nullptr, 0);
  return in_namespaces;
}

}  // namespace

std::string to_string(const Layers& layers) {
  const auto yes = [](bool has) { return has ? "yes" : "no"; };
  return fmt::format("namespaces {}, own root {}, Landlock {}, seccomp {}", yes(layers.namespaces), yes(layers.root),
                     layers.landlock > 0 ? fmt::format("v{}", layers.landlock) : "no", yes(layers.seccomp));
}

PreparedConfinement::PreparedConfinement(Confinement confinement) : confinement_(std::move(confinement)) {
  for (const fs::path& path : confinement_.files.readable) add(path, false);
  for (const fs::path& path : confinement_.files.writable) add(path, true);
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.target < b.target; });
}

PreparedConfinement::~PreparedConfinement() {
  for (const Entry& entry : entries_) close(entry.descriptor);
}

void PreparedConfinement::add(const fs::path& path, bool writable) {
  const int descriptor = open(path.c_str(), O_PATH | O_CLOEXEC);
  struct stat info {};
  if (descriptor < 0 || fstat(descriptor, &info) != 0) {
    if (descriptor >= 0) close(descriptor);
    return;
  }
  Entry entry{descriptor, S_ISDIR(info.st_mode), writable, path.string(), {}, -1, {}};
  fs::path target = kRootUnderWay;
  for (const fs::path& part : path.relative_path()) {
    entry.parents.push_back(target.string());
    target /= part;
  }
  entry.target = target.string();
  if (target != kRootUnderWay) entries_.push_back(std::move(entry));
}

bool PreparedConfinement::bind(const Entry& entry) const {
  for (const std::string& parent : entry.parents) mkdir(parent.c_str(), 0755);
  if (entry.folder) {
    mkdir(entry.target.c_str(), 0755);
  } else if (const int file = open(entry.target.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0644); file >= 0) {
    close(file);
  }
  char source[40];  // what the folder of the new root may hide
  std::snprintf(source, sizeof(source), "/proc/self/fd/%d", entry.opened);
  if (mount(source, entry.target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID | kept_flags(entry.target.c_str());
  return mount(nullptr, entry.target.c_str(), nullptr, flags | (entry.writable ? 0 : MS_RDONLY), nullptr) == 0;
}

bool PreparedConfinement::enter_root() const {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const Entry& entry : entries_) entry.opened = open(entry.source.c_str(), O_PATH | O_CLOEXEC);
  if (mount("none", kRootUnderWay, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755") != 0) return false;
  bool complete = true;
  for (const Entry& entry : entries_) {
    complete = complete && bind(entry);
    close(entry.opened);
  }
  complete = complete && chdir(kRootUnderWay) == 0 && syscall(SYS_pivot_root, ".", ".") == 0;
  if (!complete) {
    umount2(kRootUnderWay, MNT_DETACH);
    return false;
  }
  // The old root lies on the new one; what is left behind holds nothing of it.
  const bool gone = umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
  mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr);
  return gone;
}

int PreparedConfinement::restrict_files(bool in_root) const {
  Landlock landlock;
  if (in_root) landlock.allow_reading_below("/");
  for (const Entry& entry : entries_) {
    // In the new root they are other mounts, but the same files.
    if (entry.writable || !in_root) landlock.allow(entry.descriptor, entry.folder, entry.writable);
  }
  return landlock.restrict_self();
}

Layers PreparedConfinement::put_on(bool in_namespaces) const {
  Layers layers;
  layers.namespaces = in_namespaces;
  layers.root = in_namespaces && enter_root();
  set_limits(confinement_.limits);
  drop_capabilities();
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  layers.landlock = restrict_files(layers.root);
  layers.seccomp = filter_calls(confinement_.calls);
  return layers;
}

pid_t fork_into_namespaces(bool& in_namespaces) {
  const unsigned user = geteuid(), group = getegid();
  const long child = syscall(SYS_clone, kNamespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  in_namespaces = child >= 0;
  if (child != 0) return in_namespaces ? static_cast<pid_t>(child) : fork();
  map_user(user, group);
  return 0;
}

pid_t fork_sibling_into_namespaces(bool& in_namespaces) {
  const unsigned user = geteuid(), group = getegid();
  pid_t* const thread_number = place_of_thread_number();
  if (thread_number == nullptr) return -1;
  long child = clone_sibling(kNamespaces, thread_number);
  in_namespaces = child >= 0;
  if (child < 0 && !gives_namespaces()) child = clone_sibling(0, thread_number);
  if (child == 0 && in_namespaces) map_user(user, group);
  return static_cast<pid_t>(child);
}

void close_descriptors_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
  constexpr int kMost = 1024;
  for (int number = first; number < kMost; ++number) close(number);
}

Layers available_layers() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const PreparedConfinement confinement({{{"/usr"}, {}}, Calls::compiling, {}});
  bool in_namespaces = false;
  const pid_t child = fork_into_namespaces(in_namespaces);
  if (child == 0) {
    const Layers found = confinement.put_on(in_namespaces);
    const bool told = write(ends[1], &found, sizeof(found)) == sizeof(found);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Layers layers;
  if (child < 0 || read(ends[0], &layers, sizeof(layers)) != sizeof(layers)) layers = {};
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return layers;
}

}  // namespace tilepilot::untrusted
