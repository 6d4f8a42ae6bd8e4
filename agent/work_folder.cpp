#include "agent/work_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;

// "run-MACHINE-PID-XXXXXX": process ids mean something only on one machine and in one namespace, and a cache may be
// shared by several.
std::string machine_prefix() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::error_code ignored;
  std::string pids = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  return fmt::format("run-{:016x}-", std::hash<std::string>()(host + pids));
}

void remove_if_owner(const fs::path& parent, const std::function<bool(pid_t)>& unwanted) {
  const std::string prefix = machine_prefix();
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(parent, ignored)) {
    const std::string name = item.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t owner = 0;
    auto parsed = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), owner);
    if (parsed.ec == std::errc() && owner > 0 && unwanted(owner)) fs::remove_all(item.path(), ignored);
  }
}

bool is_dead(pid_t process) { return kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

Result<WorkFolder> WorkFolder::make(const fs::path& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  remove_if_owner(parent, is_dead);
  std::string name = (parent / fmt::format("{}{}-XXXXXX", machine_prefix(), getpid())).string();
  if (mkdtemp(name.data()) == nullptr)
    return make_error(DiagnosticKind::output_unwritable, {},
                      fmt::format("cannot make a folder in `{}`: {}", parent.string(), std::strerror(errno)),
                      "set `TILEPILOT_CACHE` to a folder that can be written");
  return WorkFolder(name);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void WorkFolder::remove_own(const fs::path& parent) {
  remove_if_owner(parent, [](pid_t owner) { return owner == getpid(); });
}

}  // namespace tilepilot::agent
