#include "compiler/runtime/owned_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>

#include "compiler/runtime/machine.h"

namespace tilepilot::runtime {
namespace {

namespace fs = std::filesystem;

// Process ids mean something only on one machine and in one namespace, and a cache may be shared by several.
std::string mark_of_machine() {
  std::error_code ignored;
  const std::string pids = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  return fmt::format("-{:016x}-", std::hash<std::string>()(host_name() + pids));
}

// 0: no folder of this machine.
pid_t owner_of(std::string_view name, std::string_view mark) {
  const size_t at = name.find(mark);
  if (at == std::string_view::npos) return 0;
  pid_t owner = 0;
  const auto parsed = std::from_chars(name.data() + at + mark.size(), name.data() + name.size(), owner);
  return parsed.ec == std::errc() && owner > 0 ? owner : 0;
}

struct ProcessState {
  std::string name;
  char letter = 0;   // 0: there is no such process
  pid_t parent = 0;  // likewise
};

// Linux, proc_pid_stat(5): "PID (NAME) LETTER PARENT ...".
ProcessState state_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);
  const size_t name = stat.find('('), name_end = stat.rfind(") ");
  if (name == std::string::npos || name_end == std::string::npos || name_end + 4 > stat.size()) return {};
  ProcessState state{stat.substr(name + 1, name_end - name - 1), stat[name_end + 2]};
  std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), state.parent);
  return state;
}

}  // namespace

std::string owned_folder_pattern(const fs::path& parent, std::string_view kind) {
  return (parent / fmt::format("{}{}{}-XXXXXX", kind, mark_of_machine(), getpid())).string();
}

std::vector<pid_t> remove_owned_folders(const fs::path& parent, const std::function<bool(pid_t)>& unwanted) {
  const std::string mark = mark_of_machine();
  std::vector<pid_t> left;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(parent, ignored)) {
    const pid_t owner = owner_of(item.path().filename().string(), mark);
    if (owner == 0) continue;
    if (unwanted(owner)) fs::remove_all(item.path(), ignored);
    if (fs::exists(item.path(), ignored)) left.push_back(owner);
  }
  return left;
}

bool is_dead(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  return state_of(process).letter == 'Z';
}

bool is_orphan(pid_t process, pid_t adopter) {
  constexpr int kMostGenerations = 16;
  for (int i = 0; i < kMostGenerations; ++i) {
    if (is_dead(process)) return true;
    const pid_t parent = state_of(process).parent;
    if (parent <= 1 || parent == adopter) return true;
    if (!state_of(parent).name.starts_with("tilepilot")) return false;
    process = parent;
  }
  return false;
}

}  // namespace tilepilot::runtime
