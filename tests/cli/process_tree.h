// Processes as /proc shows them, for tests that kill some and ask which are left.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tilepilot {

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::filesystem::path folder_of(pid_t process) { return "/proc/" + std::to_string(process); }

inline bool is_alive(pid_t process) {
  const std::string stat = content_of(folder_of(process) / "stat");
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

inline void collect_descendants(pid_t process, std::set<pid_t>& found) {
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(folder_of(process) / "task", ignored)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child; children >> child;)
      if (found.insert(child).second) collect_descendants(child, found);
  }
}

// Those whose environment holds a text.
inline std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (content_of(entry.path() / "environ").find(text) != std::string::npos)
      found.push_back(std::atoi(entry.path().filename().c_str()));
  return found;
}

// What each runs.
inline std::string names_of(const std::vector<pid_t>& processes) {
  std::string names;
  for (const pid_t process : processes) {
    std::string command = content_of(folder_of(process) / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    names += std::to_string(process) + " " + content_of(folder_of(process) / "comm") + command + "; ";
  }
  return names;
}

// True once `condition` is, false if it is not within the seconds.
template <class Condition>
bool comes_true(double seconds, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace tilepilot
