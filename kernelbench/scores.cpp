#include "kernelbench/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "eval/judge.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

// What stands at a path of keys; `otherwise` where something else does.
template <class Value>
Value at(const json& object, std::initializer_list<const char*> keys, Value otherwise) {
  const json* node = &object;
  for (const char* key : keys) {
    if (!node->is_object()) return otherwise;
    const auto found = node->find(key);
    if (found == node->end()) return otherwise;
    node = &*found;
  }
  try {
    return node->get<Value>();
  } catch (const json::exception&) { return otherwise; }
}

void read_verdict(const json& node, Row& row) {
  eval::Verdict verdict;
  try {
    verdict = eval::verdict_from_json(node);
  } catch (const json::exception&) { return; }  // of a version that writes others
  row.low = verdict.speedup_low;
  row.high = verdict.speedup_high;
  row.generated_share = verdict.generated_share;
  row.degenerate = row.degenerate || verdict.degenerate;
  if (verdict.eager) row.eager_us = verdict.eager->median_us;
  if (verdict.candidate) row.candidate_us = verdict.candidate->median_us;
  row.speedup = verdict.speedup();
  if (const eval::CompiledTiming* compiled = verdict.best_compiled()) {
    row.compiled_us = compiled->timing.median_us;
    row.compile_speedup = compiled->speedup;
  }
}

// Of sorted numbers, interpolated as NumPy's default is.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double geometric_mean(const std::vector<double>& numbers) {
  if (numbers.empty()) return 0;
  double sum = 0;
  for (double number : numbers) sum += std::log(number);
  return std::exp(sum / static_cast<double>(numbers.size()));
}

double distance_of(const Row& row) { return row.neighbour ? row.neighbour->distance : 1; }

}  // namespace

std::vector<Row> rows_of(const Batch& batch) {
  std::vector<Row> rows;
  for (const BatchProblem& each : batch.problems) {
    Row row;
    row.level = each.problem.level;
    row.id = each.problem.id;
    row.name = each.problem.name;
    row.done = each.state == State::done;
    const Outcome& outcome = each.outcome;
    row.seconds = outcome.seconds;
    row.dollars = outcome.dollars;
    if (row.done) {
      row.ending = outcome.ending;
      row.reason = outcome.reason;
      row.run = outcome.run;
      const json& record = outcome.record;
      row.roofline_us = at(record, {"preflight", "roofline_us"}, 0.0);
      if (row.roofline_us > 0) row.headroom = at(record, {"preflight", "eager_modelled_us"}, 0.0) / row.roofline_us;
      row.shortcut = !at(record, {"preflight", "shortcuts"}, json::array()).empty();
      row.degenerate = !at(record, {"preflight", "degenerate"}, json::array()).empty();
      if (const auto found = record.is_object() ? record.find("neighbour") : record.end(); found != record.end()) {
        row.neighbour = retrieval::neighbour_from_json(*found);
        row.neighbour_known = row.neighbour || found->is_null();
      }
      row.attempts = static_cast<int>(at(record, {"attempts"}, json::array()).size());
      if (row.verified() || row.ending == Ending::given_inputs_only)
        read_verdict(at(record, {"verdict"}, json::object()), row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Scores score(const std::vector<Row>& rows, Baseline baseline) {
  Scores scores;
  std::vector<double> all, verified, faster;
  for (const Row& row : rows) {
    const double speedup = baseline == Baseline::eager ? row.speedup : row.compile_speedup;
    const bool counts = row.done && row.verified() && speedup > 0;
    ++scores.problems;
    scores.seconds += row.seconds;
    scores.dollars += row.dollars;
    all.push_back(counts ? speedup : 1);
    if (!counts) continue;
    ++scores.verified;
    verified.push_back(speedup);
    if (speedup > 1) faster.push_back(speedup);
    for (size_t i = 0; i < kThresholds.size(); ++i) scores.fast[i] += speedup > kThresholds[i] ? 1 : 0;
  }
  for (double& share : scores.fast) share /= std::max(scores.problems, 1);
  if (!all.empty()) scores.mean_of_all = geometric_mean(all);
  scores.mean_of_verified = geometric_mean(verified);
  scores.mean_of_faster = geometric_mean(faster);
  std::sort(verified.begin(), verified.end());
  scores.least = quantile(verified, 0);
  scores.first_quartile = quantile(verified, 0.25);
  scores.median = quantile(verified, 0.5);
  scores.third_quartile = quantile(verified, 0.75);
  return scores;
}

Leakage leakage_of(const std::vector<Row>& rows) {
  Leakage leakage;
  std::vector<double> distances;
  for (const Row& row : rows) {
    if (!row.done || !row.verified()) continue;
    ++leakage.verified;
    if (!row.neighbour_known) continue;
    const double distance = distance_of(row);
    distances.push_back(distance);
    leakage.same_graph += row.neighbour && row.neighbour->same_graph ? 1 : 0;
    leakage.at_zero += distance == 0 ? 1 : 0;
    leakage.near += distance < retrieval::kNear ? 1 : 0;
  }
  leakage.known = static_cast<int>(distances.size());
  std::sort(distances.begin(), distances.end());
  if (!distances.empty()) leakage.median = quantile(distances, 0.5);
  return leakage;
}

std::vector<Group> groups_of(const std::vector<Row>& rows) {
  auto those = [&](const std::function<bool(const Row&)>& belongs) {
    std::vector<Row> some;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(some), belongs);
    return some;
  };
  std::vector<Group> groups = {{"all", rows}};
  // The others count as failures above; with `--shuffle` these are a sample.
  const auto done = those([](const Row& row) { return row.done; });
  if (!done.empty() && done.size() < rows.size()) groups.push_back({"done so far", done});
  std::set<int> levels;
  for (const Row& row : rows) levels.insert(row.level);
  if (levels.size() > 1) {
    for (int level : levels)
      groups.push_back({fmt::format("level {}", level), those([=](const Row& row) { return row.level == level; })});
  }
  auto add_without = [&](const char* name, bool Row::*mark) {
    if (std::any_of(rows.begin(), rows.end(), [mark](const Row& row) { return row.*mark; }))
      groups.push_back({name, those([mark](const Row& row) { return !(row.*mark); })});
  };
  add_without("without degenerate problems", &Row::degenerate);
  add_without("without exact shortcuts", &Row::shortcut);
  return groups;
}

json to_json(const Row& row) {
  return {
      {"level", row.level},
      {"problem_id", row.id},
      {"name", row.name},
      {"done", row.done},
      {"ending", row.done ? std::string(to_string(row.ending)) : "waiting"},
      {"reason", row.reason},
      {"speedup", row.speedup},
      {"speedup_low", row.low},
      {"speedup_high", row.high},
      {"compile_speedup", row.compile_speedup},
      {"eager_us", row.eager_us},
      {"candidate_us", row.candidate_us},
      {"compiled_us", row.compiled_us},
      {"roofline_us", row.roofline_us},
      {"roofline_share", row.roofline_share()},
      {"headroom", row.headroom},
      {"generated_share", row.generated_share},
      {"degenerate", row.degenerate},
      {"shortcut", row.shortcut},
      {"attempts", row.attempts},
      {"seconds", row.seconds},
      {"dollars", row.dollars},
      {"run", row.run},
      {"nearest", row.neighbour ? json(row.neighbour->name) : json(nullptr)},
      {"nearest_origin", row.neighbour ? json(row.neighbour->origin) : json(nullptr)},
      {"nearest_distance", row.neighbour_known ? json(distance_of(row)) : json(nullptr)},
      {"nearest_same_graph", row.neighbour_known ? json(row.neighbour && row.neighbour->same_graph) : json(nullptr)}};
}

json to_json(const Leakage& leakage) {
  return {{"verified", leakage.verified},
          {"known", leakage.known},
          {"same_graph", leakage.same_graph},
          {"at_zero", leakage.at_zero},
          {"near", leakage.near},
          {"near_below", retrieval::kNear},
          {"median_distance", leakage.known > 0 ? json(leakage.median) : json(nullptr)}};
}

json to_json(const Scores& scores) {
  json fast = json::object();
  for (size_t i = 0; i < kThresholds.size(); ++i) fast[fmt::format("{}", kThresholds[i])] = scores.fast[i];
  return {{"problems", scores.problems},
          {"verified", scores.verified},
          {"fast_p", fast},
          {"geomean_all", scores.mean_of_all},
          {"geomean_verified", scores.mean_of_verified},
          {"geomean_faster", scores.mean_of_faster},
          {"least", scores.least},
          {"first_quartile", scores.first_quartile},
          {"median", scores.median},
          {"third_quartile", scores.third_quartile},
          {"seconds", scores.seconds},
          {"dollars", scores.dollars}};
}

}  // namespace tilepilot::kernelbench
