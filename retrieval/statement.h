// One statement of SQL with its values, for what keeps its state in the database (retrieval/database.h).
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

#include "retrieval/database.h"

namespace tilepilot::retrieval {

// ISO 8601, UTC, as an expression.
inline constexpr const char* kNow = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";

// In the order of the question marks.
template <class... Values>
void bind_all(SQLite::Statement& statement, const Values&... values) {
  int column = 0;
  (statement.bind(++column, values), ...);
}

// Executes it; how many rows it has changed. Throws SQLite's exceptions: for what is part of a transaction.
template <class... Values>
int change(SQLite::Database& database, const std::string& sql, const Values&... values) {
  SQLite::Statement statement(database, sql);
  bind_all(statement, values...);
  return statement.exec();
}

// Errors: those of the database, which `file` is.
template <class... Values>
Status execute(SQLite::Database& database, const std::filesystem::path& file, const std::string& sql,
               const Values&... values) {
  try {
    change(database, sql, values...);
    return {};
  } catch (const std::exception& exception) { return database_error(file, exception); }
}

}  // namespace tilepilot::retrieval
