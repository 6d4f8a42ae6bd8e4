#include "agent/llm/processor_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;

// The first line; empty: there is no such file.
std::string line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "2048K", "32M"; 0: it is no size.
int64_t size_of(const std::string& text) {
  const int64_t number = std::atoll(text.c_str());
  return text.ends_with('K') ? number << 10 : text.ends_with('M') ? number << 20 : number;
}

// How many "0-3,8" are.
int count_of(const std::string& list) {
  int count = 0;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string range = list.substr(begin, end - begin);
    const size_t dash = range.find('-');
    const int first = std::atoi(range.c_str());
    count += dash == std::string::npos ? 1 : std::atoi(range.c_str() + dash + 1) - first + 1;
    begin = end + 1;
  }
  return std::max(count, 1);
}

bool is_numbered(const std::string& name, const std::string& prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

std::vector<fs::path> numbered_folders(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (is_numbered(it->path().filename().string(), prefix)) found.push_back(it->path());
  return found;
}

std::string bytes_text(int64_t bytes) {
  constexpr int64_t kFewMegabytes = int64_t{8} << 20;
  return bytes >= kFewMegabytes ? fmt::format("{} MB", bytes >> 20) : fmt::format("{} KB", bytes >> 10);
}

}  // namespace

ProcessorFacts processor_facts(const fs::path& folder) {
  ProcessorFacts facts;
  for (const fs::path& cache : numbered_folders(folder / "cpu0" / "cache", "index")) {
    const std::string type = line_of(cache / "type");
    const int64_t bytes = size_of(line_of(cache / "size"));
    if ((type == "Data" || type == "Unified") && bytes > 0)
      facts.caches.push_back(
          {std::atoi(line_of(cache / "level").c_str()), bytes, count_of(line_of(cache / "shared_cpu_list"))});
  }
  std::sort(facts.caches.begin(), facts.caches.end(), [](auto& a, auto& b) { return a.level < b.level; });
  std::set<std::string> cores;  // the threads of each
  for (const fs::path& thread : numbered_folders(folder, "cpu"))
    if (const std::string siblings = line_of(thread / "topology" / "thread_siblings_list"); !siblings.empty())
      cores.insert(siblings);
  facts.cores = static_cast<int>(cores.size());
  return facts;
}

std::string caches_text(const ProcessorFacts& facts) {
  std::string text;
  for (const DataCache& cache : facts.caches)
    text += fmt::format(", {} of L{} for {}", bytes_text(cache.bytes), cache.level,
                        cache.threads == 1 ? std::string("each thread") : fmt::format("{} threads", cache.threads));
  return text;
}

}  // namespace tilepilot::agent
