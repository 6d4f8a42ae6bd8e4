#include "kernelbench/merge.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <variant>

#include "kernelbench/batch_store.h"
#include "retrieval/statement.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;
using retrieval::bind_all;
using retrieval::change;
namespace fs = std::filesystem;

// A row of any table, by the names of its columns.
class Values {
 public:
  explicit Values(SQLite::Statement& row) {
    for (int i = 0; i < row.getColumnCount(); ++i) {
      const SQLite::Column column = row.getColumn(i);
      Value& value = values_[column.getName()];
      if (column.isNull()) continue;
      if (column.isInteger()) {
        value = column.getInt64();
      } else if (column.isFloat()) {
        value = column.getDouble();
      } else {
        value = column.getString();
      }
    }
  }
  bool is_null(const std::string& name) const { return std::holds_alternative<std::monostate>(values_.at(name)); }
  int64_t integer(const std::string& name) const {
    const auto* value = std::get_if<int64_t>(&values_.at(name));
    return value != nullptr ? *value : 0;
  }
  std::string text(const std::string& name) const {
    const auto* value = std::get_if<std::string>(&values_.at(name));
    return value != nullptr ? *value : std::string();
  }
  template <class Value>
  void set(const std::string& name, Value value) {
    values_[name] = std::move(value);
  }
  void set_null(const std::string& name) { values_[name] = std::monostate(); }
  void erase(const std::string& name) { values_.erase(name); }

  // "INSERT INTO table (...) VALUES (...)", or with what is to stand instead of INSERT.
  int64_t insert(SQLite::Database& database, const std::string& table, const char* verb = "INSERT") const {
    std::string names, marks;
    for (const auto& [name, value] : values_) {
      names += (names.empty() ? "" : ", ") + name;
      marks += marks.empty() ? "?" : ", ?";
    }
    SQLite::Statement statement(database, fmt::format("{} INTO {} ({}) VALUES ({})", verb, table, names, marks));
    int column = 0;
    for (const auto& [name, value] : values_) bind(statement, ++column, value);
    return statement.exec();
  }

 private:
  using Value = std::variant<std::monostate, int64_t, double, std::string>;
  static void bind(SQLite::Statement& statement, int column, const Value& value) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      statement.bind(column, *integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
      statement.bind(column, *number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      statement.bind(column, *text);
    } else {
      statement.bind(column);
    }
  }
  std::map<std::string, Value> values_;
};

template <class... Bound>
std::vector<Values> rows(SQLite::Database& database, const std::string& sql, const Bound&... bound) {
  SQLite::Statement query(database, sql);
  bind_all(query, bound...);
  std::vector<Values> found;
  while (query.executeStep()) found.emplace_back(query);
  return found;
}

// What decides which of two results of one problem stays.
enum class Standing { open, not_judged, judged };
Standing standing_of(const Values& problem) {
  if (problem.text("state") != "done") return Standing::open;
  return problem.text("ending") == to_string(Ending::not_judged) ? Standing::not_judged : Standing::judged;
}

json record_of(const Values& problem) {
  return json::parse(problem.text("record"), nullptr, /*allow_exceptions*/ false);
}

std::string dump(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

// "verified, 1.93x in run 12"
std::string in_words(const Values& problem) {
  std::string text = problem.text("ending");
  const json record = record_of(problem);
  if (record.is_object() && record.contains("speedup") && record["speedup"].is_number())
    text += fmt::format(", {:.2f}x", record["speedup"].get<double>());
  return text + fmt::format(", begun {}", problem.text("started"));
}

// What both machines agree on stays as it is; what they do not becomes a list, as "machines".
std::string merged_environment(const std::string& one, const std::string& other) {
  auto parsed = [](const std::string& text) { return json::parse(text, nullptr, /*allow_exceptions*/ false); };
  json merged = parsed(one), added = parsed(other);
  if (merged == added || !merged.is_object() || !added.is_object()) return one;
  auto machines_of = [](const json& environment) {
    return environment.contains("machines") ? environment["machines"] : json::array({environment});
  };
  json machines = machines_of(merged);
  for (const json& each : machines_of(added))
    if (std::find(machines.begin(), machines.end(), each) == machines.end()) machines.push_back(each);
  if (machines.size() == 1) return one;
  std::sort(machines.begin(), machines.end());
  json common = machines.front();
  for (const json& each : machines)
    for (const auto& [name, value] : each.items())
      if (common.contains(name) && common[name] != value) common.erase(name);
  common["machines"] = machines;
  return dump(common);
}

// One source into the store, inside the store's transaction.
class Merge {
 public:
  Merge(SQLite::Database& store, SQLite::Database& source, const fs::path& from, MergeResult& result)
      : store_(store), source_(source), from_(from), result_(result) {}

  void run() {
    for (Values& batch : rows(source_, "SELECT * FROM batch ORDER BY id")) take_batch(batch);
    for (Values& run : rows(source_, "SELECT * FROM run ORDER BY id")) take_run(run);
    for (MergedBatch& batch : batches_) {
      take_problems(batch);
      finish(batch);
      result_.batches.push_back(batch);
    }
    for (Values& entry : rows(source_, "SELECT * FROM corpus ORDER BY id")) {
      entry.erase("id");
      entry.set("embedded", int64_t{0});  // embeddings are made where they are searched
      result_.entries += static_cast<int>(entry.insert(store_, "corpus", "INSERT OR IGNORE"));
    }
    for (const char* table : {"fix", "lesson"})
      for (Values& learnt : rows(source_, fmt::format("SELECT * FROM {} ORDER BY id", table))) {
        learnt.erase("id");
        learnt.insert(store_, table, "INSERT OR IGNORE");
      }
  }

 private:
  // The batch of the store that a source's one joins, which may have to be made.
  void take_batch(Values& batch) {
    const std::string digest = batch.text("digest"), options = batch.text("options");
    const auto nth = static_cast<size_t>(std::count_if(
        seen_.begin(), seen_.end(), [&](const auto& each) { return each == std::pair(digest, options); }));
    seen_.emplace_back(digest, options);
    MergedBatch merged{from_, batch.integer("id"), 0, false, 0};
    const auto there =
        rows(store_, "SELECT * FROM batch WHERE digest = ? AND options = ? ORDER BY id", digest, options);
    if (nth < there.size()) {
      const Values& into = there[nth];
      merged.batch = into.integer("id");
      change(store_, "UPDATE batch SET environment = ?, started = min(started, ?) WHERE id = ?",
             merged_environment(into.text("environment"), batch.text("environment")), batch.text("started"),
             merged.batch);
    } else {
      batch.erase("id");
      batch.set_null("holder");
      batch.set_null("finished");
      batch.insert(store_, "batch");
      merged.batch = store_.getLastInsertRowid();
      merged.begun = true;
    }
    batches_.push_back(merged);
  }

  int64_t batch_in_store(int64_t was) const {
    for (const MergedBatch& batch : batches_)
      if (batch.was == was) return batch.batch;
    return 0;
  }

  void take_run(Values& run) {
    const int64_t was = run.integer("id");
    run.erase("id");
    if (const int64_t batch = batch_in_store(run.integer("batch")); batch != 0) {
      run.set("batch", batch);
    } else {
      run.set_null("batch");
    }
    const auto there = rows(store_,
                            "SELECT *, (SELECT count(*) FROM attempt WHERE run = run.id AND verdict IS NOT NULL) AS "
                            "judged FROM run WHERE uid = ?",
                            run.text("uid"));
    if (there.empty()) {
      replay_from_here(run);
      run.insert(store_, "run");
      runs_[was] = store_.getLastInsertRowid();
    } else {
      runs_[was] = there.front().integer("id");
      if (!is_further(run, was, there.front())) return;
      // It was merged before it had ended.
      change(
          store_,
          "UPDATE run SET finished = nullif(?, ''), ending = nullif(?, ''), best_attempt = nullif(?, -1) WHERE id = ?",
          run.text("finished"), run.text("ending"),
          run.is_null("best_attempt") ? int64_t{-1} : run.integer("best_attempt"), runs_[was]);
      change(store_, "DELETE FROM attempt WHERE run = ?", runs_[was]);
      change(store_, "DELETE FROM exchange WHERE run = ?", runs_[was]);
    }
    ++result_.runs;
    for (const char* table : {"attempt", "exchange"})
      for (Values& row : rows(source_, fmt::format("SELECT * FROM {} WHERE run = ? ORDER BY number", table), was)) {
        row.set("run", runs_[was]);
        row.insert(store_, table);
      }
  }

  bool is_further(const Values& run, int64_t was, const Values& there) const {
    if (run.is_null("finished") != there.is_null("finished")) return there.is_null("finished");
    if (!run.is_null("finished")) return false;
    return rows(source_, "SELECT number FROM attempt WHERE run = ? AND verdict IS NOT NULL", was).size() >
           static_cast<size_t>(there.integer("judged"));
  }

  // Options may name the run whose exchanges a run was answered from.
  void replay_from_here(Values& run) const {
    json options = json::parse(run.text("options"), nullptr, /*allow_exceptions*/ false);
    if (!options.is_object() || !options.contains("replay") || !options["replay"].is_number_integer()) return;
    if (const auto found = runs_.find(options["replay"].get<int64_t>()); found != runs_.end()) {
      options["replay"] = found->second;
      run.set("options", dump(options));
    }
  }

  void take_problems(MergedBatch& batch) {
    for (Values& problem : rows(source_, "SELECT * FROM batch_problem WHERE batch = ?", batch.was)) {
      into_store(problem, batch.batch);
      const auto there = rows(store_, "SELECT * FROM batch_problem WHERE batch = ? AND level = ? AND problem = ?",
                              batch.batch, problem.integer("level"), problem.integer("problem"));
      if (!there.empty() && !wins(problem, there.front(), batch.batch)) continue;
      problem.insert(store_, "batch_problem", "INSERT OR REPLACE");
      if (standing_of(problem) != Standing::open) ++batch.taken;
    }
  }

  // With the numbers that things have there.
  void into_store(Values& problem, int64_t batch) const {
    problem.set("batch", batch);
    if (problem.text("state") == "running") problem.set("state", std::string("waiting"));
    const auto run = runs_.find(problem.integer("run"));
    if (run == runs_.end()) {
      problem.set_null("run");
      return;
    }
    problem.set("run", run->second);
    json record = record_of(problem);
    if (!record.is_object() || !record.contains("run")) return;
    record["run"] = run->second;
    problem.set("record", dump(record));
  }

  bool wins(const Values& problem, const Values& there, int64_t batch) {
    const Standing standing = standing_of(problem), other = standing_of(there);
    if (standing != other) return standing > other;
    if (standing != Standing::judged) return false;
    if (problem.text("record") == there.text("record") && problem.text("ending") == there.text("ending")) return false;
    const bool earlier = problem.text("started") < there.text("started");
    const Values &kept = earlier ? problem : there, &left = earlier ? there : problem;
    const auto level = static_cast<int>(there.integer("level")), id = static_cast<int>(there.integer("problem"));
    result_.differences.push_back({batch, label_of(level, id), in_words(kept), in_words(left), from_});
    return earlier;
  }

  void finish(const MergedBatch& batch) {
    const auto ended = rows(source_, "SELECT coalesce(finished, '') AS finished FROM batch WHERE id = ?", batch.was);
    change(store_,
           fmt::format("UPDATE batch SET finished = CASE WHEN EXISTS (SELECT 1 FROM batch_problem WHERE batch = ?1 AND "
                       "state <> 'done') THEN NULL ELSE coalesce(nullif(max(coalesce(finished, ''), ?2), ''), {}) END "
                       "WHERE id = ?1",
                       retrieval::kNow),
           batch.batch, ended.front().text("finished"));
  }

  SQLite::Database& store_;
  SQLite::Database& source_;
  const fs::path& from_;
  MergeResult& result_;
  std::vector<std::pair<std::string, std::string>> seen_;  // kinds of this source's batches: digest and options
  std::vector<MergedBatch> batches_;
  std::map<int64_t, int64_t> runs_;  // numbers here and in the store
};

Error being_run(const HeldBatch& by, const fs::path& file) {
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("batch {} of `{}` is being run by {}", by.batch, file.string(), by.where),
                    "merge when it has ended");
}

// That nobody runs a batch of these databases. One whose process is elsewhere is watched for a while, all of them at
// once.
Status check_idle(const std::vector<fs::path>& files, const std::function<void(const std::string&)>& waits,
                  const HoldTimes& times) {
  std::vector<std::pair<fs::path, HeldBatch>> watched;
  auto look = [](const fs::path& file) -> Result<std::vector<HeldBatch>> {
    auto copy = TRY(retrieval::open_copy(file));
    try {
      auto found = held_batches(*copy);
      for (const Values& batch : rows(*copy, "SELECT id FROM batch")) {
        // One of a version that writes no row.
        if (const auto lock = lock_batch(file, batch.integer("id")); !lock.ok())
          found.push_back({batch.integer("id"), "", 0, "another process", true});
      }
      return found;
    } catch (const std::exception& exception) { return retrieval::database_error(file, exception); }
  };
  for (const fs::path& file : files)
    for (HeldBatch& held : TRY(look(file))) {
      if (held.is_here) return being_run(held, file);
      watched.emplace_back(file, std::move(held));
    }
  if (watched.empty()) return {};
  waits(fmt::format("{} batches were being run on other machines; looking for {:.0f} s whether they still are",
                    watched.size(), times.patience_s));
  std::this_thread::sleep_for(std::chrono::duration<double>(times.patience_s));
  for (const auto& [file, then] : watched)
    for (const HeldBatch& now : TRY(look(file)))
      if (now.batch == then.batch && (now.holder != then.holder || now.heartbeat != then.heartbeat))
        return being_run(now, file);
  return {};
}

Status check_sources(const std::vector<fs::path>& sources, const fs::path& store) {
  if (sources.empty())
    return make_error(DiagnosticKind::bad_usage, {}, "there is nothing to merge",
                      "name databases: `bench merge DB...`");
  std::error_code error;
  for (const fs::path& source : sources) {
    if (!fs::exists(source, error))
      return make_error(DiagnosticKind::bad_usage, {}, fmt::format("there is no database `{}`", source.string()));
    if (fs::equivalent(source, store, error))
      return make_error(DiagnosticKind::bad_usage, {},
                        fmt::format("`{}` is the database that the others are merged into", source.string()),
                        "leave it out, or give another one with `--store`");
  }
  return {};
}

}  // namespace

Result<MergeResult> merge_databases(const std::vector<fs::path>& sources, const fs::path& store,
                                    const std::function<void(const std::string&)>& waits, const HoldTimes& times) {
  TRY(check_sources(sources, store));
  std::error_code ignored;
  std::vector<fs::path> files = sources;
  if (fs::exists(store, ignored)) files.push_back(store);
  TRY(check_idle(files, waits, times));
  auto database = TRY(retrieval::open_database(store));
  MergeResult result;
  try {
    SQLite::Transaction transaction(*database, SQLite::TransactionBehavior::IMMEDIATE);
    for (const HeldBatch& held : held_batches(*database))
      if (held.is_here) return being_run(held, store);
    for (const fs::path& source : sources) {
      auto copy = TRY(retrieval::open_copy(source));
      Merge(*database, *copy, source, result).run();
    }
    transaction.commit();
  } catch (const std::exception& exception) { return retrieval::database_error(store, exception); }
  return result;
}

}  // namespace tilepilot::kernelbench
