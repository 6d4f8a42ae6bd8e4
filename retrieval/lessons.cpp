#include "retrieval/lessons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "retrieval/index/embedding.h"
#include "retrieval/index/stable_hash.h"
#include "retrieval/statement.h"

namespace tilepilot::retrieval {
namespace {

using nlohmann::json;

constexpr int kMostFixes = 2'000;  // of one kind that a query compares: the newest
constexpr double kOtherTarget = 0.7;

double likeness(const TextVector& one, const std::string& text) {
  const TextVector other = embed_text(text);
  return std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
}

template <class T>
std::vector<T> best_of(std::vector<std::pair<double, T>> ranked, int count) {
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<T> best;
  for (auto& [value, item] : ranked)
    if (static_cast<int>(best.size()) < count) best.push_back(std::move(item));
  return best;
}

}  // namespace

Result<std::unique_ptr<Lessons>> Lessons::open(const std::filesystem::path& file, bool read_only) {
  auto database = TRY(open_database(file, read_only));
  return std::unique_ptr<Lessons>(new Lessons(file, std::move(database)));
}

Status Lessons::remember(const Fix& fix) {
  const std::string uid = stable_digest({"fix", fix.kind, fix.line, fix.change, fix.from.target});
  return execute(*database_, file_,
                 fmt::format("INSERT INTO fix (uid, kind, message, line, change, target, graph, run, attempt, created) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, {}) "
                             "ON CONFLICT (uid) DO UPDATE SET seen = seen + (run <> excluded.run), run = excluded.run, "
                             "attempt = excluded.attempt",
                             kNow),
                 uid, fix.kind, fix.message, fix.line, fix.change, fix.from.target, fix.from.graph, fix.from.run,
                 fix.from.attempt);
}

Status Lessons::remember(const Lesson& lesson) {
  const std::string uid = stable_digest({"lesson", lesson.change, lesson.from.target, lesson.from.run});
  return execute(*database_, file_,
                 fmt::format("INSERT INTO lesson (uid, summary, change, patterns, target, graph, before_us, after_us, "
                             "gain_low, run, attempt, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {}) "
                             "ON CONFLICT (uid) DO NOTHING",
                             kNow),
                 uid, lesson.summary, lesson.change, json(lesson.patterns).dump(), lesson.from.target,
                 lesson.from.graph, lesson.before_us, lesson.after_us, lesson.gain_low, lesson.from.run,
                 lesson.from.attempt);
}

Result<std::vector<Fix>> Lessons::fixes(const FixQuery& query) {
  try {
    SQLite::Statement rows(
        *database_,
        "SELECT kind, message, line, change, target, graph, run, attempt, seen FROM fix WHERE kind = "
        "? AND (graph <> ? OR graph = '') ORDER BY id DESC LIMIT ?");
    bind_all(rows, query.kind, query.exclude_graph, kMostFixes);
    const TextVector wanted = embed_text(query.message + " " + query.line);
    std::vector<std::pair<double, Fix>> ranked;
    while (rows.executeStep()) {
      auto text = [&](int column) { return rows.getColumn(column).getString(); };
      Fix fix{text(0),
              text(1),
              text(2),
              text(3),
              {text(4), text(5), text(6), rows.getColumn(7).getInt()},
              rows.getColumn(8).getInt()};
      const double like = 0.1 + std::max(0.0, likeness(wanted, fix.message + " " + fix.line));
      const double place = query.target.empty() || query.target == fix.from.target ? 1 : kOtherTarget;
      ranked.emplace_back(like * place * (1 + 0.2 * std::log2(fix.seen)), std::move(fix));
    }
    return best_of(std::move(ranked), query.count);
  } catch (const std::exception& exception) { return database_error(file_, exception); }
}

Result<std::vector<Lesson>> Lessons::lessons(const LessonQuery& query) {
  try {
    SQLite::Statement rows(
        *database_,
        "SELECT summary, change, patterns, before_us, after_us, gain_low, target, graph, run, attempt "
        "FROM lesson WHERE (?1 = '' OR target = ?1) AND (graph <> ?2 OR graph = '') ORDER BY id DESC");
    bind_all(rows, query.target, query.exclude_graph);
    std::vector<std::pair<double, Lesson>> ranked;
    while (rows.executeStep()) {
      auto text = [&](int column) { return rows.getColumn(column).getString(); };
      auto number = [&](int column) { return rows.getColumn(column).getDouble(); };
      Lesson lesson{text(0),
                    text(1),
                    json::parse(text(2)),
                    number(3),
                    number(4),
                    number(5),
                    {text(6), text(7), text(8), rows.getColumn(9).getInt()}};
      const auto shared =
          std::count_if(lesson.patterns.begin(), lesson.patterns.end(), [&](const std::string& pattern) {
            return std::find(query.patterns.begin(), query.patterns.end(), pattern) != query.patterns.end();
          });
      if (shared == 0) continue;
      const double gain = std::log2(std::max(1.01, lesson.gain_low));
      ranked.emplace_back(static_cast<double>(shared) * gain, std::move(lesson));
    }
    return best_of(std::move(ranked), query.count);
  } catch (const std::exception& exception) { return database_error(file_, exception); }
}

}  // namespace tilepilot::retrieval
