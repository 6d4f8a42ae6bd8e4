#include "kernelbench/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

constexpr size_t kMostWeak = 10;  // rows that the text names one by one

std::string label_of(const Row& row) { return kernelbench::label_of(row.level, row.id) + " " + row.name; }

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

// One line for each group.
std::string table_of_scores(const std::vector<Group>& groups, Baseline baseline) {
  std::string text = fmt::format("{:<28}{:>9}{:>10}", baseline == Baseline::eager ? "over eager" : "over torch.compile",
                                 "problems", "verified");
  for (double threshold : kThresholds) text += fmt::format("{:>9}", fmt::format("fast_{}", threshold));
  text += fmt::format("{:>10}{:>10}{:>8}{:>8}{:>8}\n", "mean all", "verified", "least", "median", "q3");
  for (const Group& group : groups) {
    const Scores scores = score(group.rows, baseline);
    text += fmt::format("{:<28}{:>9}{:>10}", group.name, scores.problems, scores.verified);
    for (double share : scores.fast) text += fmt::format("{:>9.3f}", share);
    text += fmt::format("{:>9.3f}x{:>9.3f}x{:>8.2f}{:>8.2f}{:>8.2f}\n", scores.mean_of_all, scores.mean_of_verified,
                        scores.least, scores.median, scores.third_quartile);
  }
  return text;
}

bool compile_was_measured(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.compile_speedup > 0; });
}

std::string weak_rows(const std::vector<Row>& rows) {
  std::vector<Row> weak;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(weak),
               [](const Row& row) { return row.done && row.verified() && row.speedup < 1; });
  std::sort(weak.begin(), weak.end(), [](const Row& a, const Row& b) { return a.speedup < b.speedup; });
  if (weak.empty()) return "";
  std::string text = fmt::format("\nverified, and slower than eager: {}\n", weak.size());
  for (size_t i = 0; i < std::min(weak.size(), kMostWeak); ++i)
    text += fmt::format("  {:.2f}x  {}\n", weak[i].speedup, label_of(weak[i]));
  return text;
}

// How often each other ending came, with its most frequent reasons.
std::string endings(const std::vector<Row>& rows) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_ending;
  for (const Row& row : rows)
    if (row.done && !row.verified()) by_ending[std::string(to_string(row.ending))][row.reason].push_back(label_of(row));
  std::string text;
  for (const auto& [ending, reasons] : by_ending) {
    size_t count = 0;
    for (const auto& [reason, labels] : reasons) count += labels.size();
    text += fmt::format("\n{}: {}\n", ending, count);
    for (const auto& [reason, labels] : reasons) {
      text += fmt::format("  {} x {}\n", labels.size(), reason.empty() ? "no reason is known" : reason.substr(0, 160));
      for (size_t i = 0; i < std::min<size_t>(labels.size(), 3); ++i) text += fmt::format("      {}\n", labels[i]);
      if (labels.size() > 3) text += fmt::format("      and {} more\n", labels.size() - 3);
    }
  }
  return text;
}

// Whether results may have been known before.
std::string leakage_text(const std::vector<Row>& rows) {
  const Leakage leakage = leakage_of(rows);
  if (leakage.known == 0) return "";
  std::string text = fmt::format(
      "\nnearest entry of the corpus when each run began, of {} verified: {} at distance 0 ({} with the same graph), "
      "{} below {}, median {:.2f}\n",
      leakage.known, leakage.at_zero, leakage.same_graph, leakage.near, retrieval::kNear, leakage.median);
  if (leakage.known < leakage.verified)
    text += fmt::format("  {} more verified runs do not say it\n", leakage.verified - leakage.known);
  size_t shown = 0;
  for (const Row& row : rows) {
    if (!row.done || !row.verified() || !row.neighbour || row.neighbour->distance >= retrieval::kNear) continue;
    if (++shown > kMostWeak) continue;
    const retrieval::Neighbour& entry = *row.neighbour;
    text += fmt::format("  {:.2f}  {}: `{}` ({}{})\n", entry.distance, label_of(row), entry.name, entry.origin,
                        entry.same_graph ? ", the same graph" : "");
  }
  if (shown > kMostWeak) text += fmt::format("  and {} more\n", shown - kMostWeak);
  return text;
}

std::string changes_text(const Report& report) {
  if (!report.against) return "";
  const auto changes = changes_of(report.batch, *report.against);
  std::string text = fmt::format("\nagainst batch {}:\n", report.against->id);
  std::vector<Row> now, then;
  for (const Change& change : changes) {
    now.push_back(change.now);
    then.push_back(change.then);
  }
  text += fmt::format("  {} problems in both; geometric mean of all {:.3f}x, then {:.3f}x; verified {}, then {}\n",
                      changes.size(), score(now).mean_of_all, score(then).mean_of_all, score(now).verified,
                      score(then).verified);
  for (const Difference& difference : differences_of(report.batch.header, report.against->header))
    text += fmt::format("  not alike: {} is {}, then {}\n", difference.what, difference.now, difference.then);
  size_t shown = 0;
  for (const Change& change : changes) {
    const bool differs = change.now.verified() != change.then.verified();
    if (!differs && (change.ratio() == 0 || (change.ratio() > 0.95 && change.ratio() < 1.05))) continue;
    if (++shown > 2 * kMostWeak) continue;
    text += differs ? fmt::format("  {} -> {}  {}\n", to_string(change.then.ending), to_string(change.now.ending),
                                  label_of(change.now))
                    : fmt::format("  {:.2f}x -> {:.2f}x  {}\n", change.then.speedup, change.now.speedup,
                                  label_of(change.now));
  }
  if (shown > 2 * kMostWeak) text += fmt::format("  and {} more\n", shown - 2 * kMostWeak);
  return text;
}

std::string shares_text(const std::vector<Row>& rows) {
  std::string text;
  for (const auto& [what, share_of] :
       {std::pair{"share of the roofline", +[](const Row& row) { return row.roofline_share(); }},
        std::pair{"share of the time in generated kernels", +[](const Row& row) { return row.generated_share; }}}) {
    std::vector<double> shares;
    for (const Row& row : rows)
      if (row.done && row.verified() && share_of(row) > 0) shares.push_back(share_of(row));
    if (shares.empty()) continue;
    std::sort(shares.begin(), shares.end());
    text += fmt::format("median {} {}; ", what, percent(shares[shares.size() / 2]));
  }
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char letter : text) out += letter == '"' ? "\"\"" : std::string(1, letter);
  return out + "\"";
}

}  // namespace

std::vector<Change> changes_of(const Batch& batch, const Batch& against) {
  std::map<std::pair<int, int>, Row> then;
  for (Row& row : rows_of(against))
    if (row.done) then[{row.level, row.id}] = row;
  std::vector<Change> changes;
  for (Row& row : rows_of(batch)) {
    const auto found = then.find({row.level, row.id});
    if (row.done && found != then.end() && found->second.name == row.name) changes.push_back({row, found->second});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    auto key = [](const Change& change) { return change.ratio() > 0 ? change.ratio() : 1e9; };
    return key(a) < key(b);
  });
  return changes;
}

std::vector<Difference> differences_of(const BatchHeader& batch, const BatchHeader& against) {
  std::vector<Difference> differences;
  auto compare = [&](const char* form, const std::string& now_text, const std::string& then_text) {
    const json now = json::parse(now_text, nullptr, /*allow_exceptions*/ false);
    const json then = json::parse(then_text, nullptr, /*allow_exceptions*/ false);
    if (!now.is_object() || !then.is_object()) return;
    std::set<std::string> names;
    for (const json* side : {&now, &then})
      for (const auto& [name, value] : side->items()) names.insert(name);
    auto said = [](const json& side, const std::string& name) {
      return side.contains(name) ? side[name].dump() : std::string("not said");
    };
    for (const std::string& name : names)
      if (said(now, name) != said(then, name))
        differences.push_back({fmt::format(fmt::runtime(form), name), said(now, name), said(then, name)});
  };
  if (batch.digest != against.digest)
    differences.push_back(
        {"the digest of the problems' files", batch.digest.substr(0, 12), against.digest.substr(0, 12)});
  compare("the option `{}`", batch.options, against.options);
  compare("`{}` of the environment", batch.environment, against.environment);
  return differences;
}

std::string report_text(const Report& report) {
  const auto rows = rows_of(report.batch);
  const auto groups = groups_of(rows);
  const auto done = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.done; });
  const Scores all = score(rows);
  std::string text = fmt::format("batch {} of {}, begun {}: {} of {} problems done\n", report.batch.id,
                                 report.batch.header.problems, report.batch.started, done, rows.size());
  text += fmt::format("  options {}\n\n", report.batch.header.options);
  text += table_of_scores(groups, Baseline::eager);
  if (compile_was_measured(rows)) text += "\n" + table_of_scores(groups, Baseline::compile);
  text += "failures and abstentions count as 1.0x in `mean all`, and as no success in fast_p\n";
  text += shares_text(rows);
  text += fmt::format("{:.0f} s a problem",
                      rows.empty() ? 0 : all.seconds / static_cast<double>(std::max<int64_t>(done, 1)));
  text += all.dollars > 0 ? fmt::format(", {:.2f} dollars in all\n", all.dollars) : "\n";
  return text + weak_rows(rows) + endings(rows) + leakage_text(rows) + changes_text(report);
}

std::string report_csv(const Report& report) {
  constexpr const char* kColumns[] = {"level",          "problem_id",       "name",
                                      "ending",         "speedup",          "speedup_low",
                                      "speedup_high",   "compile_speedup",  "eager_us",
                                      "candidate_us",   "compiled_us",      "roofline_us",
                                      "roofline_share", "headroom",         "generated_share",
                                      "degenerate",     "shortcut",         "attempts",
                                      "seconds",        "dollars",          "run",
                                      "nearest",        "nearest_distance", "nearest_same_graph",
                                      "reason"};
  std::string text = fmt::format("{}\r\n", fmt::join(kColumns, ","));
  for (const Row& row : rows_of(report.batch)) {
    const json object = to_json(row);
    std::string line;
    for (const char* column : kColumns) {
      const json& value = object.at(column);
      line += (line.empty() ? "" : ",") + (value.is_string() ? quoted(value.get<std::string>())
                                           : value.is_null() ? ""
                                                             : value.dump());
    }
    text += line + "\r\n";
  }
  return text;
}

json report_json(const Report& report) {
  const auto rows = rows_of(report.batch);
  auto parsed = [](const std::string& text) { return json::parse(text, nullptr, /*allow_exceptions*/ false); };
  json object = {{"ok", true},
                 {"batch", report.batch.id},
                 {"problem_set", report.batch.header.problems},
                 {"digest", report.batch.header.digest},
                 {"options", parsed(report.batch.header.options)},
                 {"environment", parsed(report.batch.header.environment)},
                 {"started", report.batch.started},
                 {"finished", report.batch.finished},
                 {"scores", json::object()},
                 {"leakage", to_json(leakage_of(rows))},
                 {"problems", json::array()}};
  for (const Group& group : groups_of(rows)) {
    json& scores = object["scores"][group.name];
    scores["eager"] = to_json(score(group.rows));
    if (compile_was_measured(rows)) scores["compile"] = to_json(score(group.rows, Baseline::compile));
  }
  for (const Row& row : rows) object["problems"].push_back(to_json(row));
  if (report.against) {
    object["against"] = report.against->id;
    object["differences"] = json::array();
    for (const Difference& difference : differences_of(report.batch.header, report.against->header))
      object["differences"].push_back({{"what", difference.what}, {"now", difference.now}, {"then", difference.then}});
    for (const Change& change : changes_of(report.batch, *report.against))
      object["changes"].push_back({{"level", change.now.level},
                                   {"problem_id", change.now.id},
                                   {"then", to_string(change.then.ending)},
                                   {"now", to_string(change.now.ending)},
                                   {"ratio", change.ratio()}});
  }
  return object;
}

}  // namespace tilepilot::kernelbench
