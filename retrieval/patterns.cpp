#include "retrieval/patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "retrieval/computations.h"
#include "retrieval/index/embedding.h"
#include "retrieval/target_fit.h"

namespace tilepilot::retrieval {
namespace {

constexpr int kPool = 48;       // nearest entries that are looked at
constexpr int kForPattern = 6;  // and of those nearest to one pattern

bool is_view(const std::string& op) { return operator_family(plain_operator(op)) == kViewFamily; }

std::string family_of(const std::string& op) { return std::string(operator_family(plain_operator(op))); }

std::string pair_of(const std::string& from, const std::string& to) {
  return fmt::format("{} > {}", family_of(from), family_of(to));
}

// The operators that are no views whose values reach an operator, through views or at once.
void add_pairs_by_place(const Structure& structure, std::set<std::string>& patterns) {
  std::vector<std::set<size_t>> sources(structure.ops.size());  // of what a place hands on
  for (size_t at = 0; at < structure.ops.size(); ++at)
    if (!is_view(structure.ops[at])) sources[at].insert(at);
  auto links = structure.links;
  std::sort(links.begin(), links.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [from, to] : links) {
    if (from < 0 || to <= from || static_cast<size_t>(to) >= structure.ops.size()) continue;
    const auto at = static_cast<size_t>(to);
    for (size_t source : sources[static_cast<size_t>(from)]) {
      if (is_view(structure.ops[at])) {
        sources[at].insert(source);
      } else {
        patterns.insert(pair_of(structure.ops[source], structure.ops[at]));
      }
    }
  }
}

// An entry that may be chosen.
struct Candidate {
  Hit hit;
  std::set<std::string> covers;  // of the wanted patterns
  double worth = 0;              // similarity x speed x fit
};

// 1 for what runs as fast as eager or was not measured, at most a quarter more or less: how slow eager was on another
// graph says little about what a program teaches for this one.
double speed_factor(double speedup) { return speedup > 0 ? 0.75 + 0.5 * speedup / (1 + speedup) : 1; }

// What to know of a pattern is worth: a computation more than a family, and arithmetic, which nearly every program
// shows, little.
constexpr double kComputation = 4, kArithmetic = 0.2;
constexpr double kLeastSimilarity = 0.3;  // so that a computation spelled in other operators counts at all
constexpr double kSeed = 1.25;            // seeds are short, and written to be read

bool is_arithmetic_alone(std::string_view pattern) {
  return pattern == "arithmetic" || pattern == "arithmetic > arithmetic" || pattern == "arithmetic > reduction" ||
         pattern == "reduction > arithmetic";
}

std::set<std::string> all_patterns_of(const Structure& structure) {
  auto patterns = patterns_of(structure);
  patterns.merge(computations_of(structure));
  return patterns;
}

class Pool {
 public:
  Pool(const Query& query, std::set<std::string> wanted)
      : query_(query), wanted_(std::move(wanted)), computations_(computations_of(query.structure)) {}

  void add(std::vector<Hit> hits) {
    for (Hit& hit : hits) {
      if (query_.longest_source > 0 && hit.entry.source.size() > query_.longest_source) continue;
      Candidate& candidate = candidates_[hit.entry.id];
      if (candidate.hit.entry.id == hit.entry.id && candidate.hit.score >= hit.score) continue;
      candidate.covers.clear();
      const auto has = all_patterns_of(hit.entry.structure);
      std::set_intersection(wanted_.begin(), wanted_.end(), has.begin(), has.end(),
                            std::inserter(candidate.covers, candidate.covers.end()));
      candidate.worth = (kLeastSimilarity + hit.score) * speed_factor(hit.entry.speedup) *
                        (hit.entry.origin == "seed" ? kSeed : 1) *
                        target_fit(hit.entry.target, target_needs(hit.entry.source), query_.target);
      candidate.hit = std::move(hit);
    }
  }

  std::set<std::string> uncovered() const {
    std::set<std::string> left = wanted_;
    for (const auto& [id, candidate] : candidates_)
      for (const std::string& pattern : candidate.covers) left.erase(pattern);
    return left;
  }

  // Takes the best one out: by what it adds to `covered`, or, if nothing adds, by all it covers. False: none is left.
  bool take_best(std::set<std::string>& covered, std::vector<Hit>& hits) {
    auto best = candidates_.end();
    std::pair<double, double> best_value;
    for (auto each = candidates_.begin(); each != candidates_.end(); ++each) {
      const Candidate& candidate = each->second;
      double added = 0, all = 0;
      for (const std::string& pattern : candidate.covers) {
        all += weight(pattern);
        if (!covered.contains(pattern)) added += weight(pattern);
      }
      const std::pair value(candidate.worth * added, candidate.worth * (1 + all));
      if (best != candidates_.end() && value <= best_value) continue;  // of equals, the oldest
      best = each;
      best_value = value;
    }
    if (best == candidates_.end()) return false;
    Candidate& chosen = best->second;
    if (!chosen.covers.empty()) chosen.hit.reason += fmt::format("; covers {}", fmt::join(chosen.covers, ", "));
    covered.insert(chosen.covers.begin(), chosen.covers.end());
    hits.push_back(std::move(chosen.hit));
    candidates_.erase(best);
    return true;
  }

 private:
  double weight(const std::string& pattern) const {
    if (computations_.contains(pattern)) return kComputation;
    return is_arithmetic_alone(pattern) ? kArithmetic : 1;
  }

  const Query& query_;
  std::set<std::string> wanted_, computations_;
  std::map<int64_t, Candidate> candidates_;  // by the entry's number
};

// One operator that is a computation, so that entries that have it are found whatever else is in the graph.
Structure structure_of_computation(const Structure& whole, const std::string& name) {
  static const std::map<std::string, std::vector<std::string>> spelled = {
      {"attention", {"aten::matmul", "aten::softmax", "aten::matmul"}},
      {"cross-entropy", {"aten::cross_entropy_loss"}},
      {"softmax", {"aten::softmax"}},
      {"normalisation", {"aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul"}},
      {"gated activation", {"aten::chunk", "aten::silu", "aten::mul"}},
      {"product and activation", {"aten::linear", "aten::relu"}},
      {"repeated steps", {"aten::mul", "aten::add"}}};
  Structure part;
  part.dtype = whole.dtype;
  part.ops = spelled.at(name);
  constexpr size_t kSteps = 16;
  while (name == "repeated steps" && part.ops.size() < kSteps) part.ops.push_back(part.ops[part.ops.size() - 2]);
  for (size_t i = 1; i < part.ops.size(); ++i) {
    part.edges.emplace_back(part.ops[i - 1], part.ops[i]);
    part.links.emplace_back(static_cast<int>(i) - 1, static_cast<int>(i));
  }
  return part;
}

// Operators of the graph that show one pattern, as a graph of their own.
Structure structure_of_pattern(const Structure& whole, const std::string& pattern) {
  Structure part;
  part.dtype = whole.dtype;
  for (const std::string& op : whole.ops)
    if (part.ops.empty() && family_of(op) == pattern) part.ops.push_back(op);
  if (!part.ops.empty()) return part;
  for (const auto& [from, to] : whole.edges) {
    if (pair_of(from, to) != pattern) continue;
    part.ops = {from, to};
    part.edges = {{from, to}};
    part.links = {{0, 1}};
    return part;
  }
  // The two are views apart.
  const size_t arrow = pattern.find(" > ");
  for (const std::string& family : {pattern.substr(0, arrow), pattern.substr(std::min(arrow + 3, pattern.size()))})
    for (const std::string& op : whole.ops)
      if (family_of(op) == family) {
        part.ops.push_back(op);
        break;
      }
  if (part.ops.size() == 2) {
    part.edges = {{part.ops[0], part.ops[1]}};
    part.links = {{0, 1}};
  }
  return part;
}

}  // namespace

std::set<std::string> patterns_of(const Structure& structure) {
  std::set<std::string> patterns;
  for (const std::string& op : structure.ops)
    if (!is_view(op)) patterns.insert(family_of(op));
  if (!structure.links.empty()) {
    add_pairs_by_place(structure, patterns);
    return patterns;
  }
  for (const auto& [from, to] : structure.edges)
    if (!is_view(from) && !is_view(to)) patterns.insert(pair_of(from, to));
  return patterns;
}

double cover(const std::set<std::string>& wanted, const std::set<std::string>& found) {
  if (wanted.empty()) return 1;
  const auto had =
      std::count_if(wanted.begin(), wanted.end(), [&](const std::string& each) { return found.contains(each); });
  return static_cast<double>(had) / static_cast<double>(wanted.size());
}

Result<Chosen> choose_covering(Corpus& corpus, const Query& query) {
  const auto wanted = all_patterns_of(query.structure);
  Pool pool(query, wanted);
  Query search = query;
  search.count = std::max(kPool, query.count);
  pool.add(TRY(corpus.search(search)));
  search.count = kForPattern;
  search.text.clear();
  search.exclude_near = 0;  // what is near to a part may be far from the whole
  auto to_search = pool.uncovered();
  // The nearest entries to the whole may show a computation among much else; those that show it alone are looked at,
  // too.
  const auto computations = computations_of(query.structure);
  to_search.insert(computations.begin(), computations.end());
  for (const std::string& pattern : to_search) {
    search.structure = computations.contains(pattern) ? structure_of_computation(query.structure, pattern)
                                                      : structure_of_pattern(query.structure, pattern);
    auto hits = TRY(corpus.search(search));
    for (Hit& hit : hits) hit.score = similarity(query.structure, hit.entry.structure);
    std::erase_if(hits, [&](const Hit& hit) { return 1 - hit.score < query.exclude_near; });
    pool.add(std::move(hits));
  }
  Chosen chosen;
  const auto missing = pool.uncovered();
  chosen.uncovered.assign(missing.begin(), missing.end());
  std::set<std::string> covered;
  while (static_cast<int>(chosen.hits.size()) < query.count && pool.take_best(covered, chosen.hits)) {}
  chosen.cover = cover(wanted, covered);
  return chosen;
}

}  // namespace tilepilot::retrieval
