#include "agent/generate/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "agent/generate/pairing.h"

namespace tilepilot::agent {
namespace {

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

// What a line leaves open that begins there; nullopt: nothing.
std::optional<Tunable> tunable_in(const std::string& line, size_t begin) {
  static const std::regex kLine(R"re([ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*([^#\s][^#]*?)[ \t]*#[ \t]*tune:(.*))re");
  std::smatch found;
  if (line.size() > 400 || line.find("tune:") == std::string::npos || !std::regex_match(line, found, kLine))
    return std::nullopt;
  Tunable tunable{found[1], found[2], values_in(found[3]), begin + static_cast<size_t>(found.position(2))};
  tunable.lists_value = std::erase(tunable.others, tunable.value) > 0;
  if (tunable.others.empty() || values_in(tunable.value).size() != 1) return std::nullopt;
  return tunable;
}

template <class Visit>
void for_each_line(const std::string& source, Visit visit) {
  for (size_t begin = 0; begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    visit(source.substr(begin, end - begin), begin);
    begin = end + 1;
  }
}

// How fast an attempt may be beside the best so far: on a busy machine a ratio says little, the end of its interval
// more.
double most_of_best(const std::vector<Attempt>& history, size_t number) {
  const size_t best = *best_of(history);
  if (const auto pairing = pairing_of(history, number, best)) return pairing->high;
  return history[number].verdict.speedup() / history[best].told().speedup();
}

}  // namespace

std::vector<Tunable> tunables_of(const std::string& source) {
  std::vector<Tunable> tunables;
  for_each_line(source, [&](const std::string& line, size_t begin) {
    if (tunables.size() == kMostTunables) return;
    if (auto tunable = tunable_in(line, begin)) tunables.push_back(*std::move(tunable));
  });
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
    if (!is_right(last.verdict)) return;
    const auto pairing = pairing_of(history, history.size() - 1, base_);
    const bool faster = pairing ? relation_of(*pairing) == Relation::faster : last.verdict.speedup() > speedup_;
    if (faster) {
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
    if (!is_right(last.verdict) || most_of_best(history, history.size() - 1) < kLeastShareOfBest) return std::nullopt;
    descent_ = std::make_unique<Descent>(history, most_variants_);
  }
  auto variant = descent_->next();
  if (!variant) descent_.reset();
  return variant;
}

size_t origin_of(const std::vector<Attempt>& history, size_t number) {
  while (history[number].candidate.is_variant) number = *history[number].candidate.changes;
  return number;
}

namespace {
// `best_variant`: the best so far, where it is a variant. It may be so without being faster than what it varies: where
// only it is distinguishable from the best before.
std::string tuning_result(size_t number, size_t fastest, std::optional<size_t> best_variant) {
  if (fastest != number) return fmt::format("the fastest is attempt {}", fastest + 1);
  if (!best_variant) return "none is faster";
  return fmt::format("attempt {} is the best so far, though not distinguishable from this attempt", *best_variant + 1);
}
}  // namespace

std::string tuning_report(const std::vector<Attempt>& history, size_t number, int most_variants) {
  const std::string& source = history[number].candidate.source;
  std::string text, other_lines;
  size_t at_line = 0, counted = 0;
  for_each_line(source, [&](const std::string& line, size_t begin) {
    ++at_line;
    static const std::regex kMeant(R"re(#[ \t]*tune:)re"), kAutotune(R"re([ \t]*@[ \t]*(tilelang\.)?autotune\b.*)re");
    if (line.size() <= 400 && std::regex_match(line, kAutotune))
      other_lines += fmt::format(
          "Line {}: `autotune` takes its first configuration and tunes nothing; leave a number open by `# tune:` "
          "instead.\n",
          at_line);
    if (line.size() > 400 || !std::regex_search(line, kMeant)) return;
    const bool has_form = tunable_in(line, begin).has_value();
    if (has_form && ++counted <= kMostTunables) return;
    other_lines += fmt::format("Line {} leaves no number open: {}.\n", at_line,
                               has_form ? fmt::format("it comes after the first {} such lines", kMostTunables)
                                        : "it is not a name, `=`, one value, and other values after `# tune:`");
  });
  if (counted == 0) return other_lines;
  size_t tried = 0, last = number;
  const auto best = best_of(history);
  const bool best_is_variant = best && history[*best].candidate.is_variant && origin_of(history, *best) == number;
  for (size_t i = number + 1; i < history.size(); ++i) {
    if (!history[i].candidate.is_variant || origin_of(history, i) != number) continue;
    ++tried;
    if (relation_of(history, i, last) == Relation::faster) last = i;
  }
  const std::vector<Attempt> until(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(number) + 1);
  if (tried > 0)
    text = fmt::format("The tuner judged {} variant{} of it; {}.\n", tried, tried == 1 ? "" : "s",
                       tuning_result(number, last, best_is_variant ? best : std::nullopt));
  else if (most_variants <= 0)
    text = "The tuner did not run: this run allows no variants.\n";
  else if (!is_right(history[number].verdict))
    text = "The tuner did not run: the program is not verified.\n";
  else if (const double share = most_of_best(until, number); share < kLeastShareOfBest)
    text = fmt::format(
        "The tuner did not run: the program is at most {:.2f} times as fast as the best so far, which is below {}.\n",
        share, kLeastShareOfBest);
  else
    text = fmt::format("The tuner did not run: less than {:.0f} s were left.\n", kLeastSecondsForVariant);
  return text + other_lines;
}

}  // namespace tilepilot::agent
