#include "retrieval/database.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>

namespace tilepilot::retrieval {
namespace {

// Marks the file as ours (PRAGMA application_id): "TiPi".
constexpr int kApplicationId = 0x54695069;

constexpr int kBusyTimeout = 10'000;  // ms

// Migration k brings schema k to schema k + 1. Never edit one that was released: append.
constexpr std::array<const char*, 9> kMigrations = {
    R"sql(
CREATE TABLE corpus (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('seed', 'generated')),
  summary TEXT NOT NULL,
  tags TEXT NOT NULL,               -- JSON list
  structure TEXT NOT NULL,          -- JSON object, see retrieval/corpus.h
  source TEXT NOT NULL,
  fingerprint TEXT NOT NULL UNIQUE,
  speedup REAL NOT NULL DEFAULT 0,
  target TEXT NOT NULL,
  created TEXT NOT NULL
);
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,              -- path as given
  model_source TEXT NOT NULL,
  author TEXT NOT NULL,
  options TEXT NOT NULL,            -- JSON object
  started TEXT NOT NULL,
  finished TEXT,
  ending TEXT,                      -- why the loop stopped
  best_attempt INTEGER
);
CREATE TABLE attempt (
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  summary TEXT NOT NULL,
  source TEXT NOT NULL,
  verdict TEXT,                     -- JSON object; NULL while it is judged
  started TEXT NOT NULL,
  PRIMARY KEY (run, number)
);
CREATE TABLE exchange (
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  request TEXT NOT NULL,            -- JSON body as sent, without the key
  status INTEGER,                   -- HTTP status; NULL while waiting
  reply TEXT,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  dollars REAL NOT NULL DEFAULT 0,
  seconds REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (run, number)
);
)sql",
    // A verdict for one target is no evidence for another: a program is there once for each.
    R"sql(
CREATE TABLE corpus_of_targets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('seed', 'generated')),
  summary TEXT NOT NULL,
  tags TEXT NOT NULL,               -- JSON list
  structure TEXT NOT NULL,          -- JSON object, see retrieval/corpus.h
  source TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  speedup REAL NOT NULL DEFAULT 0,
  target TEXT NOT NULL,
  created TEXT NOT NULL,
  UNIQUE (fingerprint, target)
);
INSERT INTO corpus_of_targets SELECT * FROM corpus;
DROP TABLE corpus;
ALTER TABLE corpus_of_targets RENAME TO corpus;
)sql",
    // Finalists are measured side by side; what an attempt reached alone stays beside it.
    R"sql(
ALTER TABLE attempt ADD COLUMN compared TEXT;  -- JSON object; NULL: no finalist
)sql",
    // Batches of problems (kernelbench/batch_store.h). A run of `generate` that a batch began bears its number.
    R"sql(
CREATE TABLE batch (
  id INTEGER PRIMARY KEY,
  problems TEXT NOT NULL,           -- root of the problem set
  digest TEXT NOT NULL,             -- of the set
  options TEXT NOT NULL,            -- JSON object: what results depend on
  environment TEXT NOT NULL,        -- JSON object
  started TEXT NOT NULL,
  finished TEXT                     -- NULL while problems are left
);
CREATE TABLE batch_problem (
  batch INTEGER NOT NULL REFERENCES batch(id) ON DELETE CASCADE,
  level INTEGER NOT NULL,
  problem INTEGER NOT NULL,
  name TEXT NOT NULL,
  file TEXT NOT NULL,               -- empty: the problem set is a list
  source TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done')),
  tries INTEGER NOT NULL DEFAULT 0,
  ending TEXT,
  reason TEXT NOT NULL DEFAULT '',
  run INTEGER REFERENCES run(id) ON DELETE SET NULL,
  seconds REAL NOT NULL DEFAULT 0,
  dollars REAL NOT NULL DEFAULT 0,
  record TEXT,                      -- JSON object: what `generate` printed
  started TEXT,
  PRIMARY KEY (batch, level, problem)
);
ALTER TABLE run ADD COLUMN batch INTEGER;
)sql",
    // Databases are merged: a run has one name in all of them. A batch says who runs it, for other machines, and a run
    // how near the corpus was when it began.
    R"sql(
ALTER TABLE run ADD COLUMN uid TEXT;  -- random
UPDATE run SET uid = lower(hex(randomblob(16)));
CREATE UNIQUE INDEX run_uid ON run (uid);
ALTER TABLE run ADD COLUMN neighbour TEXT;  -- JSON object (retrieval/neighbour.h), or null: there was none
ALTER TABLE batch ADD COLUMN holder TEXT;   -- JSON object (kernelbench/batch_hold.h); NULL: nobody runs it
ALTER TABLE batch ADD COLUMN heartbeat INTEGER NOT NULL DEFAULT 0;  -- grows while it is run
)sql",
    // Tries that failed may be billed too, and a transcript says what each exchange was for.
    R"sql(
ALTER TABLE exchange ADD COLUMN failure TEXT NOT NULL DEFAULT '';         -- why there is no usable reply
ALTER TABLE exchange ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE exchange ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;     -- 1: tokens are our own count
ALTER TABLE exchange ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;       -- which the author was about to write
ALTER TABLE exchange ADD COLUMN started TEXT NOT NULL DEFAULT '';
UPDATE exchange SET failure = reply, reply = '' WHERE status IS NULL AND reply <> '';
)sql",
    // Entries say what they were proven for, how fast they are and where they come from; embeddings are stored, and so
    // is what attempts have taught. Columns that every search reads come before the long texts.
    R"sql(
CREATE TABLE corpus_with_provenance (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(16)))),  -- the entry's name in all databases
  name TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('seed', 'generated')),
  target TEXT NOT NULL,
  fingerprint TEXT NOT NULL,        -- of the program
  graph TEXT NOT NULL DEFAULT '',   -- fingerprint of the model's op graph; empty: not known
  speedup REAL NOT NULL DEFAULT 0,          -- against eager; 0: not measured
  compile_speedup REAL NOT NULL DEFAULT 0,  -- against torch.compile; 0: not measured
  roofline REAL NOT NULL DEFAULT 0,         -- least possible time by its time; 0: not measured
  embedded INTEGER NOT NULL DEFAULT 0,      -- version of its row in `embedding`; 0: it has none
  quarantined TEXT,                 -- why it is not retrieved; NULL: it is
  verified TEXT,                    -- when it was proven last; NULL: not known
  licence TEXT NOT NULL DEFAULT '', -- SPDX; empty: not stated
  created TEXT NOT NULL,
  summary TEXT NOT NULL,
  tags TEXT NOT NULL,               -- JSON list
  structure TEXT NOT NULL,          -- JSON object, see retrieval/corpus.h
  shapes TEXT NOT NULL DEFAULT '{}',      -- JSON object: lists of tensors, inputs and outputs
  toolchain TEXT NOT NULL DEFAULT '{}',   -- JSON object: what it was proven with
  task TEXT NOT NULL DEFAULT '{}',        -- JSON object: how its model was exported and judged
  lineage TEXT NOT NULL DEFAULT '{}',     -- JSON object: run, attempt, author, entries it was shown
  certificate TEXT NOT NULL DEFAULT '',   -- JSON object; empty: none
  source TEXT NOT NULL,
  model_source TEXT NOT NULL DEFAULT '',  -- the model it is a program for; empty: the program holds it, or not known
  UNIQUE (fingerprint, target)
);
INSERT INTO corpus_with_provenance (id, name, origin, target, fingerprint, speedup, licence, created, summary, tags,
  structure, source, model_source)
  SELECT id, name, origin, target, fingerprint, speedup, iif(origin = 'seed', 'Apache-2.0', ''), created, summary, tags,
    structure, source, '' FROM corpus;
DROP TABLE corpus;
ALTER TABLE corpus_with_provenance RENAME TO corpus;
CREATE INDEX corpus_embedded ON corpus (embedded);
CREATE INDEX corpus_name ON corpus (name);
CREATE INDEX corpus_graph ON corpus (graph);
-- The run that found a program knows its model.
UPDATE corpus SET model_source = coalesce((SELECT model_source FROM run WHERE id = (SELECT run FROM attempt
  WHERE attempt.source = corpus.source LIMIT 1)), '') WHERE origin = 'generated';
CREATE TABLE embedding (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- grows with every row that is added, whatever the entry's id
  entry INTEGER NOT NULL UNIQUE REFERENCES corpus(id) ON DELETE CASCADE,
  needs TEXT NOT NULL,              -- of a target (retrieval/target_fit.h)
  structure BLOB NOT NULL,          -- retrieval/index/sparse_vector.h
  words BLOB NOT NULL,
  twin INTEGER                      -- the first row of the same structure, which alone is indexed; NULL: this is it
);
CREATE INDEX embedding_twin ON embedding (twin) WHERE twin IS NOT NULL;
CREATE INDEX embedding_first ON embedding (structure) WHERE twin IS NULL;
-- Without their first row, the others would be found no more: they get rows anew.
CREATE TRIGGER embedding_first_gone AFTER DELETE ON embedding WHEN old.twin IS NULL BEGIN
  UPDATE corpus SET embedded = 0 WHERE id IN (SELECT entry FROM embedding WHERE twin = old.seq);
  DELETE FROM embedding WHERE twin = old.seq;
END;
CREATE TABLE corpus_identity (uid TEXT NOT NULL);  -- one row, by which an index file knows its database
INSERT INTO corpus_identity VALUES (lower(hex(randomblob(16))));
CREATE TABLE fix (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,         -- digest of what it says
  kind TEXT NOT NULL,               -- of the diagnostic, or the outcome where there was none
  message TEXT NOT NULL,
  line TEXT NOT NULL,               -- of the program that failed; empty: not known
  change TEXT NOT NULL,             -- lines taken out (-) and put in (+)
  target TEXT NOT NULL,
  graph TEXT NOT NULL,
  run TEXT NOT NULL,                -- uid
  attempt INTEGER NOT NULL,         -- of the run: the one that was verified
  seen INTEGER NOT NULL DEFAULT 1,  -- how often it was met
  created TEXT NOT NULL
);
CREATE INDEX fix_kind ON fix (kind);
CREATE TABLE lesson (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,         -- digest of what it says
  summary TEXT NOT NULL,
  change TEXT NOT NULL,
  patterns TEXT NOT NULL,           -- JSON list (retrieval/patterns.h) of the model
  target TEXT NOT NULL,
  graph TEXT NOT NULL,
  before_us REAL NOT NULL,
  after_us REAL NOT NULL,
  gain_low REAL NOT NULL,           -- that the interval of the measurement leaves
  run TEXT NOT NULL,                -- uid
  attempt INTEGER NOT NULL,
  created TEXT NOT NULL
);
)sql",
    R"sql(
ALTER TABLE attempt ADD COLUMN changes INTEGER;   -- number of the attempt that it is a change of; NULL: written anew
ALTER TABLE attempt ADD COLUMN exchange INTEGER;  -- number of the exchange whose reply it is from; NULL: not known
ALTER TABLE attempt ADD COLUMN variant INTEGER NOT NULL DEFAULT 0;  -- 1: a change in numbers alone (agent/generate/tuning.h)
)sql",
    R"sql(
ALTER TABLE attempt ADD COLUMN pairings TEXT;  -- JSON array: measured beside earlier attempts; NULL: it was not
)sql",
};

Error unusable(const std::filesystem::path& file, std::string_view problem, std::string hint = {}) {
  return make_error(DiagnosticKind::store_unusable, {}, fmt::format("`{}` {}", file.string(), problem),
                    std::move(hint));
}

int pragma(SQLite::Database& database, const char* name) {
  return database.execAndGet(fmt::format("PRAGMA {}", name)).getInt();
}

// What a file says it is. Read at one moment: another process may be making the database meanwhile.
struct Identity {
  explicit Identity(SQLite::Database& database) {
    SQLite::Transaction reading(database);
    version = pragma(database, "user_version");
    const bool is_empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
    is_ours = is_empty || pragma(database, "application_id") == kApplicationId;
  }

  int version = 0;
  bool is_ours = true;
};

// Than this program, and ours.
bool is_older(SQLite::Database& database) {
  const Identity identity(database);
  return identity.is_ours && identity.version < schema_version();
}

Status migrate(SQLite::Database& database, const std::filesystem::path& file) {
  const Identity identity(database);
  int version = identity.version;
  if (!identity.is_ours)
    return unusable(file, "is a database of another program", "choose another file with `--store`");
  if (version > schema_version())
    return unusable(
        file, fmt::format("was written by a newer TilePilot (schema {}, this one knows {})", version, schema_version()),
        "update TilePilot, or choose another file with `--store`");
  if (version == schema_version()) return {};
  for (; version < schema_version(); ++version) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    // Another process may have migrated while this one waited for the lock.
    if (pragma(database, "user_version") > version) continue;
    database.exec(kMigrations[static_cast<size_t>(version)]);
    database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
    database.exec(fmt::format("PRAGMA user_version = {}", version + 1));
    transaction.commit();
  }
  return {};
}

}  // namespace

int schema_version() { return static_cast<int>(kMigrations.size()); }

Error database_error(const std::filesystem::path& file, const std::exception& exception) {
  auto* sqlite = dynamic_cast<const SQLite::Exception*>(&exception);
  switch (sqlite ? sqlite->getErrorCode() & 0xff : SQLITE_ERROR) {  // extended codes say the same with detail
    case SQLITE_NOTADB:
      return unusable(file, "is not a database", "choose another file with `--store`");
    case SQLITE_READONLY:
      return unusable(file, "is read-only", "make it writable, or choose another file with `--store`");
    case SQLITE_FULL:
      return unusable(file, "could not grow: the disk is full", "make room, or choose another file with `--store`");
    case SQLITE_CORRUPT:
      return unusable(
          file, "is damaged",
          "move it away, or choose another file with `--store`; `sqlite3 FILE .recover` may save what is in it");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return unusable(file, "is locked by another program",
                      "wait until that ends, or choose another file with `--store`");
    case SQLITE_CANTOPEN:
      return unusable(file, "cannot be opened", "does its folder exist, and may you write there?");
    default:
      return unusable(file, fmt::format("reports: {}", exception.what()));
  }
}

Result<std::shared_ptr<SQLite::Database>> open_copy(const std::filesystem::path& file) {
  try {
    SQLite::Database source(file.string(), SQLite::OPEN_READWRITE, kBusyTimeout);
    auto copy = std::make_shared<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    SQLite::Backup backup(*copy, source);
    if (const int status = backup.executeStep(); status != SQLITE_DONE)
      throw SQLite::Exception("the copy did not end", status);
    copy->exec("PRAGMA foreign_keys = ON");
    TRY(migrate(*copy, file));
    return copy;
  } catch (const std::exception& exception) { return database_error(file, exception); }
}

Result<std::shared_ptr<SQLite::Database>> open_database(const std::filesystem::path& file, bool read_only) {
  if (file.empty())  // SQLite would take an empty name for a temporary database
    return make_error(DiagnosticKind::store_unusable, {}, "there is no place for the database: `HOME` is not set",
                      "give `--store FILE`, or set `TILEPILOT_STORE`");
  try {
    if (!read_only && file.has_parent_path()) {
      std::error_code ignored;  // opening below reports what matters
      std::filesystem::create_directories(file.parent_path(), ignored);
    }
    int flags = read_only ? SQLite::OPEN_READONLY : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE;
    auto database = std::make_shared<SQLite::Database>(file.string(), flags, kBusyTimeout);
    database->exec("PRAGMA foreign_keys = ON");
    if (read_only && is_older(*database)) return open_copy(file);
    TRY(migrate(*database, file));
    return database;
  } catch (const std::exception& exception) { return database_error(file, exception); }
}

}  // namespace tilepilot::retrieval
