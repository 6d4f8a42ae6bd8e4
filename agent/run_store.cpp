#include "agent/run_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "retrieval/database.h"

namespace tilepilot::agent {
namespace {

constexpr const char* kNow = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";

// Runs one statement with its values bound in order.
template <class... Values>
Status execute(SQLite::Database& database, const std::filesystem::path& file, const std::string& sql,
               const Values&... values) {
  try {
    SQLite::Statement statement(database, sql);
    int column = 0;
    (statement.bind(++column, values), ...);
    statement.exec();
    return {};
  } catch (const std::exception& exception) { return retrieval::database_error(file, exception); }
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::open(const std::filesystem::path& file) {
  auto database = TRY(retrieval::open_database(file));
  return std::unique_ptr<RunStore>(new RunStore(file, std::move(database)));
}

Result<int64_t> RunStore::begin_run(const RunHeader& header) {
  TRY(execute(
      *database_, file_,
      fmt::format("INSERT INTO run (model, model_source, author, options, started) VALUES (?, ?, ?, ?, {})", kNow),
      header.model, header.model_source, header.author, header.options));
  return database_->getLastInsertRowid();
}

Status RunStore::save_attempt(int64_t run, int number, const Candidate& candidate,
                              const std::optional<eval::Verdict>& verdict) {
  if (!verdict)
    return execute(
        *database_, file_,
        fmt::format("INSERT INTO attempt (run, number, summary, source, started) VALUES (?, ?, ?, ?, {})", kNow), run,
        number, candidate.summary, candidate.source);
  return execute(*database_, file_, "UPDATE attempt SET verdict = ? WHERE run = ? AND number = ?",
                 eval::to_json(*verdict).dump(), run, number);
}

Status RunStore::finish_run(int64_t run, std::string_view ending, std::optional<int> best_attempt) {
  TRY(execute(*database_, file_, fmt::format("UPDATE run SET finished = {}, ending = ? WHERE id = ?", kNow),
              std::string(ending), run));
  if (!best_attempt) return {};
  return execute(*database_, file_, "UPDATE run SET best_attempt = ? WHERE id = ?", *best_attempt, run);
}

Status RunStore::save_exchange(int64_t run, int number, const Exchange& exchange) {
  if (exchange.status == 0)
    return execute(*database_, file_,
                   "INSERT OR REPLACE INTO exchange (run, number, request, reply) VALUES (?, ?, ?, ?)", run, number,
                   exchange.request, exchange.reply);
  return execute(
      *database_, file_,
      "INSERT OR REPLACE INTO exchange (run, number, request, status, reply, input_tokens, output_tokens, dollars, "
      "seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      run, number, exchange.request, exchange.status, exchange.reply, exchange.input_tokens, exchange.output_tokens,
      exchange.dollars, exchange.seconds);
}

Result<std::vector<Exchange>> RunStore::exchanges(int64_t run) {
  try {
    SQLite::Statement known(*database_, "SELECT 1 FROM run WHERE id = ?");
    known.bind(1, run);
    if (!known.executeStep())
      return make_error(DiagnosticKind::value_error, {},
                        fmt::format("there is no run {} in `{}`", run, file_.string()));
    SQLite::Statement query(
        *database_,
        "SELECT request, status, reply, input_tokens, output_tokens, dollars, seconds FROM exchange "
        "WHERE run = ? AND status IS NOT NULL ORDER BY number");
    query.bind(1, run);
    std::vector<Exchange> exchanges;
    while (query.executeStep())
      exchanges.push_back({query.getColumn(0).getString(), query.getColumn(1).getInt(), query.getColumn(2).getString(),
                           query.getColumn(3).getInt64(), query.getColumn(4).getInt64(), query.getColumn(5).getDouble(),
                           query.getColumn(6).getDouble()});
    return exchanges;
  } catch (const std::exception& exception) { return retrieval::database_error(file_, exception); }
}

}  // namespace tilepilot::agent
