#include "compiler/runtime/owned_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

// Process ids mean something only on one machine and in one namespace, and a cache may be shared by several.
std::string mark_of_machine() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::error_code ignored;
  const std::string pids = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  return fmt::format("-{:016x}-", std::hash<std::string>()(host + pids));
}

// 0: no folder of this machine.
pid_t owner_of(std::string_view name, std::string_view mark) {
  const size_t at = name.find(mark);
  if (at == std::string_view::npos) return 0;
  pid_t owner = 0;
  const auto parsed = std::from_chars(name.data() + at + mark.size(), name.data() + name.size(), owner);
  return parsed.ec == std::errc() && owner > 0 ? owner : 0;
}

}  // namespace

std::string owned_folder_pattern(const fs::path& parent, std::string_view kind) {
  return (parent / fmt::format("{}{}{}-XXXXXX", kind, mark_of_machine(), getpid())).string();
}

int remove_owned_folders(const fs::path& parent, const std::function<bool(pid_t)>& unwanted) {
  const std::string mark = mark_of_machine();
  int left = 0;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(parent, ignored)) {
    const pid_t owner = owner_of(item.path().filename().string(), mark);
    if (owner == 0) continue;
    if (unwanted(owner)) fs::remove_all(item.path(), ignored);
    left += fs::exists(item.path(), ignored) ? 1 : 0;
  }
  return left;
}

bool is_dead(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  // Linux, proc_pid_stat(5): the state stands behind the name, which is in parentheses.
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] == 'Z';
}

}  // namespace tilepilot::runtime
