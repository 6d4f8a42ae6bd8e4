#include "agent/store/run_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/generate/finalists.h"
#include "retrieval/statement.h"

namespace tilepilot::agent {

using retrieval::execute;
using retrieval::kNow;

namespace {

// A candidate's own texts may hold anything.
std::string as_text(const eval::Verdict& verdict) {
  return eval::to_json(verdict).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr const char* kSummary =
    "SELECT id, model, author, started, coalesce(finished, ''), coalesce(ending, ''), "
    "(SELECT count(*) FROM attempt WHERE attempt.run = run.id), model_source, options, best_attempt, "
    "coalesce(neighbour, '') FROM run ";

RunSummary summary_in(SQLite::Statement& row) {
  auto text = [&](int column) { return row.getColumn(column).getString(); };
  return {row.getColumn(0).getInt64(), text(1), text(2), text(3), text(4), text(5), row.getColumn(6).getInt()};
}

Exchange exchange_in(SQLite::Statement& row) {
  auto text = [&](int column) { return row.getColumn(column).getString(); };
  auto count = [&](int column) { return row.getColumn(column).getInt64(); };
  return {.request = text(0),
          .status = row.getColumn(1).getInt(),
          .reply = text(2),
          .failure = text(3),
          .input_tokens = count(4),
          .output_tokens = count(5),
          .cached_tokens = count(6),
          .estimated = count(7) != 0,
          .dollars = row.getColumn(8).getDouble(),
          .seconds = row.getColumn(9).getDouble(),
          .attempt = row.getColumn(10).getInt(),
          .started = text(11)};
}

// Nullopt: none, or one that this version cannot read.
std::optional<eval::Verdict> verdict_in(const SQLite::Column& column) {
  if (column.isNull()) return std::nullopt;
  try {
    return eval::verdict_from_json(nlohmann::json::parse(column.getString()));
  } catch (const nlohmann::json::exception&) { return std::nullopt; }
}

// Those with earlier attempts; whatever else stands there is none.
std::vector<Pairing> pairings_in(const SQLite::Column& column, size_t number) {
  std::vector<Pairing> pairings;
  if (column.isNull()) return pairings;
  try {
    pairings = eval::paired_ratios_from_json(nlohmann::json::parse(column.getString()));
  } catch (const nlohmann::json::exception&) { return {}; }
  std::erase_if(pairings, [&](const Pairing& each) { return each.other >= number; });
  return pairings;
}

std::vector<Attempt> attempts_of(SQLite::Database& database, int64_t run) {
  SQLite::Statement query(database,
                          "SELECT source, summary, verdict, compared, changes, exchange, variant, pairings FROM "
                          "attempt WHERE run = ? ORDER BY number");
  query.bind(1, run);
  std::vector<Attempt> attempts;
  while (query.executeStep()) {
    Attempt attempt{{query.getColumn(0).getString(), query.getColumn(1).getString()}, {}, {}};
    eval::Verdict unjudged;
    unjudged.detail = "not judged";
    if (!query.getColumn(4).isNull()) attempt.candidate.changes = static_cast<size_t>(query.getColumn(4).getInt64());
    if (!query.getColumn(5).isNull()) attempt.candidate.exchange = query.getColumn(5).getInt();
    attempt.candidate.is_variant = query.getColumn(6).getInt() != 0;
    attempt.verdict = verdict_in(query.getColumn(2)).value_or(unjudged);
    attempt.compared = verdict_in(query.getColumn(3));
    attempt.pairings = pairings_in(query.getColumn(7), attempts.size());
    attempts.push_back(std::move(attempt));
  }
  return attempts;
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::open(const std::filesystem::path& file, bool read_only) {
  auto database = TRY(retrieval::open_database(file, read_only));
  return std::unique_ptr<RunStore>(new RunStore(file, std::move(database)));
}

Result<std::vector<RunSummary>> RunStore::list(int most) {
  try {
    SQLite::Statement query(*database_, std::string(kSummary) + "ORDER BY id DESC LIMIT ?");
    query.bind(1, most);
    std::vector<RunSummary> runs;
    while (query.executeStep()) runs.push_back(summary_in(query));
    return runs;
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Result<std::optional<StoredRun>> RunStore::find(int64_t run) {
  try {
    SQLite::Statement query(*database_, std::string(kSummary) + "WHERE id = ?");
    query.bind(1, run);
    if (!query.executeStep()) return std::optional<StoredRun>();
    StoredRun found{
        summary_in(query), query.getColumn(7).getString(), query.getColumn(8).getString(), {}, false, {}, {}};
    const auto neighbour = nlohmann::json::parse(query.getColumn(10).getString(), nullptr, /*allow_exceptions*/ false);
    found.neighbour = retrieval::neighbour_from_json(neighbour);
    found.neighbour_known = found.neighbour || neighbour.is_null();
    found.attempts = attempts_of(*database_, run);
    found.best = query.getColumn(9).isNull() ? best_of(found.attempts)
                                             : std::optional(static_cast<size_t>(query.getColumn(9).getInt()));
    if (found.best && *found.best >= found.attempts.size()) found.best.reset();
    return std::optional(std::move(found));
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Result<std::string> RunStore::uid(int64_t run) {
  try {
    SQLite::Statement query(*database_, "SELECT uid FROM run WHERE id = ?");
    query.bind(1, run);
    return query.executeStep() ? query.getColumn(0).getString() : std::string();
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Result<int64_t> RunStore::begin_run(const RunHeader& header) {
  nlohmann::json neighbour = nullptr;
  if (header.neighbour) neighbour = retrieval::to_json(*header.neighbour);
  TRY(execute(*database_, file_,
              fmt::format("INSERT INTO run (model, model_source, author, options, batch, neighbour, started, uid) "
                          "VALUES (?, ?, ?, ?, nullif(?, 0), ?, {}, lower(hex(randomblob(16))))",
                          kNow),
              header.model, header.model_source, header.author, header.options, header.batch, neighbour.dump()));
  return database_->getLastInsertRowid();
}

Result<std::optional<int64_t>> RunStore::find_interrupted(int64_t batch, const std::string& model_source) {
  try {
    SQLite::Statement query(
        *database_,
        "SELECT id FROM run WHERE batch = ? AND model_source = ? AND finished IS NULL ORDER BY id DESC LIMIT 1");
    retrieval::bind_all(query, batch, model_source);
    return query.executeStep() ? std::optional(query.getColumn(0).getInt64()) : std::optional<int64_t>();
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Status RunStore::drop_attempts(int64_t run, int first) {
  return execute(*database_, file_, "DELETE FROM attempt WHERE run = ? AND number >= ?", run, first);
}

Status RunStore::save_attempt(int64_t run, int number, const Candidate& candidate,
                              const std::optional<eval::Verdict>& verdict) {
  if (!verdict)
    return execute(
        *database_, file_,
        fmt::format("INSERT INTO attempt (run, number, summary, source, changes, exchange, variant, started) "
                    "VALUES (?, ?, ?, ?, nullif(?, -1), nullif(?, -1), ?, {})",
                    kNow),
        run, number, candidate.summary, candidate.source,
        candidate.changes ? static_cast<int64_t>(*candidate.changes) : -1, candidate.exchange.value_or(-1),
        candidate.is_variant ? 1 : 0);
  return execute(*database_, file_, "UPDATE attempt SET verdict = ? WHERE run = ? AND number = ?", as_text(*verdict),
                 run, number);
}

Status RunStore::save_pairings(int64_t run, int number, const std::vector<Pairing>& pairings) {
  return execute(*database_, file_, "UPDATE attempt SET pairings = ? WHERE run = ? AND number = ?",
                 eval::to_json(pairings).dump(), run, number);
}

Status RunStore::save_comparison(int64_t run, int number, const eval::Verdict& verdict) {
  return execute(*database_, file_, "UPDATE attempt SET compared = ? WHERE run = ? AND number = ?", as_text(verdict),
                 run, number);
}

Status RunStore::finish_run(int64_t run, std::string_view ending, std::optional<int> best_attempt) {
  TRY(execute(*database_, file_, fmt::format("UPDATE run SET finished = {}, ending = ? WHERE id = ?", kNow),
              std::string(ending), run));
  if (!best_attempt) return {};
  return execute(*database_, file_, "UPDATE run SET best_attempt = ? WHERE id = ?", *best_attempt, run);
}

Status RunStore::save_exchange(int64_t run, int number, const Exchange& exchange) {
  return execute(
      *database_, file_,
      fmt::format("INSERT INTO exchange (run, number, request, status, reply, failure, input_tokens, output_tokens, "
                  "cached_tokens, estimated, dollars, seconds, attempt, started) "
                  "VALUES (?, ?, ?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, {}) "
                  "ON CONFLICT (run, number) DO UPDATE SET status = excluded.status, reply = excluded.reply, "
                  "failure = excluded.failure, input_tokens = excluded.input_tokens, "
                  "output_tokens = excluded.output_tokens, cached_tokens = excluded.cached_tokens, "
                  "estimated = excluded.estimated, dollars = excluded.dollars, seconds = excluded.seconds",
                  kNow),
      run, number, exchange.request, exchange.status, exchange.reply, exchange.failure, exchange.input_tokens,
      exchange.output_tokens, exchange.cached_tokens, exchange.estimated ? 1 : 0, exchange.dollars, exchange.seconds,
      exchange.attempt);
}

Result<int> RunStore::next_exchange(int64_t run) {
  try {
    SQLite::Statement query(*database_, "SELECT coalesce(max(number) + 1, 0) FROM exchange WHERE run = ?");
    query.bind(1, run);
    query.executeStep();
    return query.getColumn(0).getInt();
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Result<RecordedUse> RunStore::recorded_use(const std::string& model) {
  try {
    SQLite::Statement query(*database_,
                            "SELECT count(DISTINCT run), count(DISTINCT run || ' ' || attempt), count(*), "
                            "coalesce(avg(output_tokens), 0) FROM exchange JOIN run ON run.id = exchange.run "
                            "WHERE status = 200 AND failure = '' AND json_valid(options) "
                            "AND json_extract(options, '$.model') = ? AND json_extract(options, '$.replay') IS NULL");
    query.bind(1, model);
    query.executeStep();
    RecordedUse use;
    use.runs = query.getColumn(0).getInt();
    if (use.runs == 0) return use;
    const double attempts = query.getColumn(1).getInt();
    use.attempts = attempts / use.runs;
    use.requests_an_attempt = query.getColumn(2).getInt() / attempts;
    use.output_tokens = query.getColumn(3).getDouble();
    return use;
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

Result<std::vector<Exchange>> RunStore::exchanges(int64_t run) {
  try {
    SQLite::Statement known(*database_, "SELECT 1 FROM run WHERE id = ?");
    known.bind(1, run);
    if (!known.executeStep())
      return make_error(DiagnosticKind::value_error, {},
                        fmt::format("there is no run {} in `{}`", run, file_.string()));
    SQLite::Statement query(*database_,
                            "SELECT request, coalesce(status, 0), coalesce(reply, ''), failure, input_tokens, "
                            "output_tokens, cached_tokens, estimated, dollars, seconds, attempt, started "
                            "FROM exchange WHERE run = ? ORDER BY number");
    query.bind(1, run);
    std::vector<Exchange> exchanges;
    while (query.executeStep()) exchanges.push_back(exchange_in(query));
    return exchanges;
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

}  // namespace tilepilot::agent
