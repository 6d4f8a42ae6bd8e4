#include "compiler/untrusted/landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tilepilot::untrusted {
namespace {

// As the kernel's headers have them, which may be older than the kernel.
constexpr long kCreateRules = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;
constexpr int kRuleBelowPath = 1;

struct Rules {
  uint64_t files, ports, scopes;
};
struct __attribute__((packed)) BelowPath {
  uint64_t allowed;
  int32_t parent;
};

constexpr uint64_t kExecute = 1, kWrite = 2, kRead = 4, kReadFolder = 8;
constexpr uint64_t kTruncate = 1 << 14, kDeviceControl = 1 << 15;
constexpr uint64_t kOfFiles = kExecute | kWrite | kRead | kTruncate | kDeviceControl;
constexpr uint64_t kReading = kExecute | kRead | kReadFolder;

// By version: which rights of files there are, and whether ports and scopes.
constexpr uint64_t files_of(int version) {
  const int rights = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
  return (uint64_t{1} << rights) - 1;
}

}  // namespace

Landlock::Landlock() {
  version_ = static_cast<int>(syscall(kCreateRules, nullptr, 0, kAskVersion));
  if (version_ <= 0) return;
  files_ = files_of(version_);
  const Rules rules{files_, version_ >= 4 ? uint64_t{3} : 0, version_ >= 6 ? uint64_t{3} : 0};
  const size_t size = version_ >= 6 ? 24 : version_ >= 4 ? 16 : 8;
  rules_ = static_cast<int>(syscall(kCreateRules, &rules, size, 0));
}

Landlock::~Landlock() {
  if (rules_ >= 0) close(rules_);
}

void Landlock::allow(int descriptor, bool folder, bool writing) {
  if (rules_ < 0) return;
  uint64_t rights = writing ? files_ : kReading;
  if (!folder) rights &= kOfFiles;
  const BelowPath rule{rights & files_, descriptor};
  syscall(kAddRule, rules_, kRuleBelowPath, &rule, 0);
}

void Landlock::allow_reading_below(const char* folder) {
  const int descriptor = open(folder, O_PATH | O_CLOEXEC);
  if (descriptor < 0) return;
  allow(descriptor, true, false);
  close(descriptor);
}

int Landlock::restrict_self() { return rules_ >= 0 && syscall(kRestrictSelf, rules_, 0) == 0 ? version_ : 0; }

}  // namespace tilepilot::untrusted
