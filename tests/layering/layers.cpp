#include "tests/layering/layers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace tilepilot::layering {
namespace {

struct Include {
  std::string path;
  bool angled = false;
  int line = 0;
};

std::optional<Include> parse_include(const std::string& line, int number) {
  size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '#') return std::nullopt;
  at = line.find_first_not_of(" \t", at + 1);
  if (at == std::string::npos || line.compare(at, 7, "include") != 0) return std::nullopt;
  size_t begin = line.find_first_of("\"<", at);
  if (begin == std::string::npos) return std::nullopt;
  size_t end = line.find(line[begin] == '<' ? '>' : '"', begin + 1);
  if (end == std::string::npos) return std::nullopt;
  return Include{line.substr(begin + 1, end - begin - 1), line[begin] == '<', number};
}

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> result;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (std::optional<Include> found = parse_include(line, ++number)) result.push_back(*found);
  }
  return result;
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool lies_in(const std::string& folder, const std::string& root) {
  return folder == root || folder.compare(0, root.size() + 1, root + "/") == 0;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

constexpr std::string_view kSubfolders = "/...";

bool covers_subfolders(const Layer& layer) {
  return layer.folder.size() > kSubfolders.size() &&
         layer.folder.compare(layer.folder.size() - kSubfolders.size(), kSubfolders.size(), kSubfolders) == 0;
}

std::string root_of(const Layer& layer) {
  return covers_subfolders(layer) ? layer.folder.substr(0, layer.folder.size() - kSubfolders.size()) : layer.folder;
}

// The first cycle in a graph as "a -> b -> a", or "".
std::string find_cycle(const std::map<std::string, std::set<std::string>>& edges) {
  std::set<std::string> finished;
  std::vector<std::string> path;
  std::string cycle;
  std::function<void(const std::string&)> visit = [&](const std::string& node) {
    auto earlier = std::find(path.begin(), path.end(), node);
    if (earlier != path.end()) {
      for (; earlier != path.end(); ++earlier) cycle += *earlier + " -> ";
      cycle += node;
    }
    auto next = edges.find(node);
    if (!cycle.empty() || finished.count(node) > 0 || next == edges.end()) return;
    path.push_back(node);
    for (const std::string& target : next->second) {
      if (cycle.empty()) visit(target);
    }
    path.pop_back();
    finished.insert(node);
  };
  for (const auto& [node, targets] : edges) {
    if (cycle.empty()) visit(node);
  }
  return cycle;
}

class Checker {
 public:
  Checker(const Rules& rules, const std::vector<SourceFile>& files) : rules_(rules), files_(files) {
    for (const SourceFile& file : files) paths_.insert(file.path);
  }

  std::vector<std::string> run() && {
    for (const SourceFile& file : files_) {
      if (!is_test(file.path) && layer_of(folder_of(file.path)) == nullptr) {
        found_.push_back(file.path + ": its folder has no row in the table of layers");
      }
      for (const Include& include : includes_of(file.text)) check(file, include);
    }
    std::string cycle = find_cycle(edges_);
    if (!cycle.empty()) found_.push_back("cycle of includes: " + cycle);
    return std::move(found_);
  }

 private:
  static bool is_test(const std::string& path) { return lies_in(path, "tests"); }

  // The row that is nearest to the folder.
  const Layer* layer_of(const std::string& folder) const {
    const Layer* found = nullptr;
    for (const Layer& layer : rules_.layers) {
      const bool covers = layer.folder == folder || (covers_subfolders(layer) && lies_in(folder, root_of(layer)));
      if (covers && (found == nullptr || root_of(layer).size() > root_of(*found).size())) found = &layer;
    }
    return found;
  }

  void complain(const SourceFile& file, const Include& include, const std::string& what) {
    found_.push_back(file.path + ":" + std::to_string(include.line) + ": " + include.path + " " + what);
  }

  void check(const SourceFile& file, const Include& include) {
    return include.angled ? check_third_party(file, include) : check_own(file, include);
  }

  void check_third_party(const SourceFile& file, const Include& include) {
    std::string folder = folder_of(file.path);
    for (const ThirdParty& library : rules_.third_party) {
      if (include.path.compare(0, library.header_prefix.size(), library.header_prefix) != 0) continue;
      bool allowed = std::any_of(library.folders.begin(), library.folders.end(),
                                 [&](const std::string& root) { return lies_in(folder, root); });
      if (!allowed) complain(file, include, "may not be included in " + folder);
    }
  }

  void check_own(const SourceFile& file, const Include& include) {
    std::string folder = folder_of(file.path);
    std::string path = include.path;
    if (paths_.count(path) == 0) path = folder + "/" + include.path;
    if (paths_.count(path) == 0) return complain(file, include, "is no file of the repository");
    edges_[file.path].insert(path);
    const Layer* layer = layer_of(folder);
    const Layer* target = layer_of(folder_of(path));
    if (is_test(file.path) || layer == nullptr || layer == target) return;
    bool allowed = target != nullptr && contains(layer->may_include, root_of(*target));
    if (!allowed) complain(file, include, "may not be included in " + folder);
  }

  const Rules& rules_;
  const std::vector<SourceFile>& files_;
  std::set<std::string> paths_;
  std::map<std::string, std::set<std::string>> edges_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> violations(const Rules& rules, const std::vector<SourceFile>& files) {
  return Checker(rules, files).run();
}

std::string cycle_of_layers(const Rules& rules) {
  std::map<std::string, std::set<std::string>> edges;
  for (const Layer& layer : rules.layers)
    edges[layer.folder].insert(layer.may_include.begin(), layer.may_include.end());
  return find_cycle(edges);
}

}  // namespace tilepilot::layering
