#include "agent/generate/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "agent/generate/finalists.h"

namespace tilepilot::agent {
namespace {

constexpr size_t kMostTunables = 8, kMostValues = 16;

// The values in "32, 64, 128"; empty: it is no such list.
std::vector<std::string> values_in(const std::string& list) {
  static const std::regex kValue(R"re(\s*([-+]?[\w.]+|"[^",\\]*"|'[^',\\]*')\s*(,|$))re");
  std::vector<std::string> values;
  auto at = list.cbegin();
  for (std::smatch found; at != list.cend() && values.size() < kMostValues; at = found.suffix().first) {
    if (!std::regex_search(at, list.cend(), found, kValue, std::regex_constants::match_continuous)) return {};
    values.push_back(found[1]);
  }
  return values;
}

}  // namespace

std::vector<Tunable> tunables_of(const std::string& source) {
  static const std::regex kLine(R"re([ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*([^#\s][^#]*?)[ \t]*#[ \t]*tune:(.*))re");
  std::vector<Tunable> tunables;
  for (size_t begin = 0; begin < source.size() && tunables.size() < kMostTunables;) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const std::string line = source.substr(begin, end - begin);
    std::smatch found;
    if (line.size() <= 400 && line.find("tune:") != std::string::npos && std::regex_match(line, found, kLine)) {
      Tunable tunable{found[1], found[2], values_in(found[3]), begin + static_cast<size_t>(found.position(2))};
      tunable.lists_value = std::erase(tunable.others, tunable.value) > 0;
      if (!tunable.others.empty() && values_in(tunable.value).size() == 1) tunables.push_back(std::move(tunable));
    }
    begin = end + 1;
  }
  return tunables;
}

std::string with_value(const std::string& source, const Tunable& tunable, const std::string& value) {
  std::string changed = source;
  // What the line held stays one of its choices.
  if (!tunable.lists_value)
    changed.insert(std::min(source.find('\n', tunable.at), source.size()), ", " + tunable.value);
  return changed.replace(tunable.at, tunable.value.size(), value);
}

namespace {
std::string values_of(const std::string& source) {
  std::string values;
  for (const Tunable& tunable : tunables_of(source)) values += tunable.value + "\n";
  return values;
}
}  // namespace

// The search over one program's values. It begins at the program itself, whose speed is known.
class Tuner::Descent {
 public:
  Descent(const std::vector<Attempt>& history, int variants) : left_(variants) { take(history); }

  // What became of the last variant.
  void hear(const std::vector<Attempt>& history) {
    const Attempt& last = history.back();
    if (is_right(last.verdict) && last.verdict.speedup() > speedup_) {
      take(history);
      improved_ = true;
    }
  }

  std::optional<Candidate> next() {
    while (left_ > 0) {
      const auto tunables = tunables_of(source_);
      if (name_ >= tunables.size()) {
        if (!improved_) return std::nullopt;
        improved_ = false;
        name_ = 0;
        continue;
      }
      const Tunable& tunable = tunables[name_];
      for (const std::string& value : tunable.others) {
        std::string source = with_value(source_, tunable, value);
        if (!seen_.insert(values_of(source)).second) continue;
        --left_;
        return Candidate{std::move(source),
                         fmt::format("attempt {} with {} = {}", base_ + 1, tunable.name, value),
                         base_,
                         {},
                         /*is_variant*/ true};
      }
      ++name_;
    }
    return std::nullopt;
  }

 private:
  void take(const std::vector<Attempt>& history) {
    base_ = history.size() - 1;
    source_ = history.back().candidate.source;
    speedup_ = history.back().verdict.speedup();
    seen_.insert(values_of(source_));
  }

  size_t base_ = 0;  // the attempt that holds the best values so far
  std::string source_;
  double speedup_ = 0;
  size_t name_ = 0;
  bool improved_ = false;  // since the first name
  int left_;
  std::set<std::string> seen_;  // values, all of a program's
};

Tuner::Tuner(int most_variants) : most_variants_(most_variants) {}
Tuner::~Tuner() = default;

std::optional<Candidate> Tuner::next(const std::vector<Attempt>& history) {
  if (history.empty()) return std::nullopt;
  const Attempt& last = history.back();
  if (descent_) {
    descent_->hear(history);
  } else {
    constexpr double kNearBest = 0.8;
    if (!is_right(last.verdict) || last.verdict.speedup() < kNearBest * history[*best_of(history)].told().speedup())
      return std::nullopt;
    descent_ = std::make_unique<Descent>(history, most_variants_);
  }
  auto variant = descent_->next();
  if (!variant) descent_.reset();
  return variant;
}

}  // namespace tilepilot::agent
