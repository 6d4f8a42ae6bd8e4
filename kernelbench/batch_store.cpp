#include "kernelbench/batch_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "retrieval/statement.h"

namespace tilepilot::kernelbench {

using retrieval::bind_all;
using retrieval::kNow;

namespace {

constexpr std::string_view kStates[] = {"waiting", "running", "done"};
constexpr std::string_view kEndings[] = {"verified",   "given_inputs_only", "failed",    "abstained",
                                         "not_loaded", "does_not_fit",      "not_judged"};

template <size_t count>
std::optional<size_t> place_of(std::string_view name, const std::string_view (&names)[count]) {
  const auto* found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<size_t>(found - std::begin(names));
}

std::string text_of(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

BatchProblem problem_in(SQLite::Statement& row) {
  auto text = [&](int column) { return row.getColumn(column).getString(); };
  BatchProblem found;
  found.problem = {row.getColumn(0).getInt(), row.getColumn(1).getInt(), text(2), text(3), text(4)};
  found.state = static_cast<State>(place_of(text(5), kStates).value_or(0));
  found.tries = row.getColumn(6).getInt();
  Outcome& outcome = found.outcome;
  outcome.ending = parse_ending(text(7)).value_or(Ending::not_judged);
  outcome.reason = text(8);
  outcome.run = row.getColumn(9).getInt64();
  outcome.seconds = row.getColumn(10).getDouble();
  outcome.dollars = row.getColumn(11).getDouble();
  outcome.record = nlohmann::json::parse(text(12), nullptr, /*allow_exceptions*/ false);
  return found;
}

}  // namespace

std::string_view to_string(Ending ending) { return kEndings[static_cast<size_t>(ending)]; }

std::optional<Ending> parse_ending(std::string_view name) {
  const auto place = place_of(name, kEndings);
  return place ? std::optional(static_cast<Ending>(*place)) : std::nullopt;
}

// SQLite's exceptions end here.
template <class Body>
auto BatchStore::guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Result<std::unique_ptr<BatchStore>> BatchStore::open(const std::filesystem::path& file, bool read_only) {
  auto database = TRY(retrieval::open_database(file, read_only));
  return std::unique_ptr<BatchStore>(new BatchStore(file, std::move(database)));
}

Result<std::optional<int64_t>> BatchStore::find(const std::string& root, const std::string& options) {
  return guarded([&]() -> Result<std::optional<int64_t>> {
    SQLite::Statement query(*database_,
                            "SELECT id FROM batch WHERE problems = ? AND options = ? ORDER BY id DESC LIMIT 1");
    bind_all(query, root, options);
    return query.executeStep() ? std::optional(query.getColumn(0).getInt64()) : std::nullopt;
  });
}

Result<int64_t> BatchStore::begin(const BatchHeader& header, const std::vector<Problem>& problems) {
  return guarded([&]() -> Result<int64_t> {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    retrieval::change(
        *database_,
        fmt::format("INSERT INTO batch (problems, digest, options, environment, started) VALUES (?, ?, ?, ?, {})",
                    kNow),
        header.problems, header.digest, header.options, header.environment);
    const int64_t batch = database_->getLastInsertRowid();
    SQLite::Statement add(
        *database_, "INSERT INTO batch_problem (batch, level, problem, name, file, source) VALUES (?, ?, ?, ?, ?, ?)");
    for (const Problem& problem : problems) {
      add.reset();
      bind_all(add, batch, problem.level, problem.id, problem.name, problem.file.string(), problem.source);
      add.exec();
    }
    transaction.commit();
    return batch;
  });
}

Result<std::optional<Batch>> BatchStore::load(int64_t batch) {
  return guarded([&]() -> Result<std::optional<Batch>> {
    SQLite::Statement query(*database_,
                            "SELECT id, problems, digest, options, environment, started, coalesce(finished, '') "
                            "FROM batch WHERE id = ?1 OR ?1 = 0 ORDER BY id DESC LIMIT 1");
    query.bind(1, batch);
    if (!query.executeStep()) return std::optional<Batch>();
    auto text = [&](int column) { return query.getColumn(column).getString(); };
    Batch found{query.getColumn(0).getInt64(), {text(1), text(2), text(3), text(4)}, text(5), text(6), {}};
    SQLite::Statement rows(*database_,
                           "SELECT level, problem, name, file, source, state, tries, coalesce(ending, ''), reason, "
                           "coalesce(run, 0), seconds, dollars, coalesce(record, 'null') FROM batch_problem "
                           "WHERE batch = ? ORDER BY level, problem");
    rows.bind(1, found.id);
    while (rows.executeStep()) found.problems.push_back(problem_in(rows));
    return std::optional(std::move(found));
  });
}

Result<std::vector<BatchSummary>> BatchStore::list() {
  return guarded([&]() -> Result<std::vector<BatchSummary>> {
    SQLite::Statement query(
        *database_,
        "SELECT id, problems, options, started, coalesce(finished, ''), "
        "(SELECT count(*) FROM batch_problem WHERE batch = batch.id), "
        "(SELECT count(*) FROM batch_problem WHERE batch = batch.id AND state = 'done'), "
        "(SELECT count(*) FROM batch_problem WHERE batch = batch.id AND state = 'done' AND ending = 'verified') "
        "FROM batch ORDER BY id DESC");
    std::vector<BatchSummary> batches;
    while (query.executeStep()) {
      auto text = [&](int column) { return query.getColumn(column).getString(); };
      batches.push_back({query.getColumn(0).getInt64(), text(1), text(2), text(3), text(4), query.getColumn(5).getInt(),
                         query.getColumn(6).getInt(), query.getColumn(7).getInt()});
    }
    return batches;
  });
}

Status BatchStore::recover(int64_t batch) {
  return retrieval::execute(*database_, file_,
                            "UPDATE batch_problem SET state = 'waiting' WHERE batch = ? AND (state = 'running' OR "
                            "(state = 'done' AND ending = 'not_judged'))",
                            batch);
}

Status BatchStore::set_running(int64_t batch, const Problem& problem) {
  return retrieval::execute(*database_, file_,
                            fmt::format("UPDATE batch_problem SET state = 'running', tries = tries + 1, started = {} "
                                        "WHERE batch = ? AND level = ? AND problem = ?",
                                        kNow),
                            batch, problem.level, problem.id);
}

Status BatchStore::set_done(int64_t batch, const Problem& problem, const Outcome& outcome) {
  // What earlier tries have cost was spent all the same.
  return retrieval::execute(*database_, file_,
                            "UPDATE batch_problem SET state = 'done', ending = ?, reason = ?, run = nullif(?, 0), "
                            "seconds = seconds + ?, dollars = dollars + ?, record = ? "
                            "WHERE batch = ? AND level = ? AND problem = ?",
                            std::string(to_string(outcome.ending)), outcome.reason, outcome.run, outcome.seconds,
                            outcome.dollars, text_of(outcome.record), batch, problem.level, problem.id);
}

Status BatchStore::set_waiting(int64_t batch, const Problem& problem) {
  return retrieval::execute(*database_, file_,
                            "UPDATE batch_problem SET state = 'waiting' WHERE batch = ? AND level = ? AND problem = ?",
                            batch, problem.level, problem.id);
}

Status BatchStore::finish(int64_t batch) {
  return retrieval::execute(
      *database_, file_,
      fmt::format("UPDATE batch SET finished = CASE WHEN EXISTS (SELECT 1 FROM batch_problem WHERE batch = ?1 AND "
                  "state <> 'done') THEN NULL ELSE {} END WHERE id = ?1",
                  kNow),
      batch);
}

}  // namespace tilepilot::kernelbench
