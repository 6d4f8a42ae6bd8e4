// The one SQLite file that holds TilePilot's state: the corpus, runs, attempts and exchanges with language models.
// Opening it brings an older schema up to date, one numbered migration at a time, each in a transaction.
#pragma once

#include <filesystem>
#include <memory>

#include "compiler/diagnostics/result.h"

namespace SQLite {
class Database;
}

namespace tilepilot::retrieval {

// The newest schema this program knows.
int schema_version();

// Opens (and, unless read_only, creates) the file. Errors of kind `store_unusable`: not a database, not ours, written
// by a newer version, not writable, disk full. An older file opened read-only stays as it is: what is read is a copy
// in memory, brought up to date.
Result<std::shared_ptr<SQLite::Database>> open_database(const std::filesystem::path& file, bool read_only = false);

// A copy of the file in memory as it is at one moment, brought up to date; the file stays as it is, but for a rollback
// of what a killed process left half written. Errors as above; also of kind `store_unusable`: there is no such file.
Result<std::shared_ptr<SQLite::Database>> open_copy(const std::filesystem::path& file);

// Turns an SQLite exception, caught by the caller, into an error that names the file.
Error database_error(const std::filesystem::path& file, const std::exception& exception);

}  // namespace tilepilot::retrieval
