// Entries as rows of the table `corpus`.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

// What `entry_in` reads, for SELECT.
extern const char* const kEntryColumns;
Entry entry_in(SQLite::Statement& row);

// Inserts the entry with its embedding, in the transaction of the caller. False: its program is there already.
// `entry.fingerprint` is to be that of its source.
bool insert_entry(SQLite::Database& database, const Entry& entry);

// Whether a program is there for a target.
bool is_there(SQLite::Database& database, const std::string& fingerprint, const std::string& target);

// Rows without an embedding of this version: of older databases, and of merged ones.
bool has_unembedded(SQLite::Database& database);
// Embeds them, in transactions of some thousands.
void embed_rows(SQLite::Database& database);

// [{"dtype", "shape"}, ...]; the second throws JSON's exceptions for what is no such list.
nlohmann::json to_json(const std::vector<TensorShape>& shapes);
std::vector<TensorShape> shapes_from(const nlohmann::json& list);

// The words of an entry that a search by text reads.
std::string words_of(const Entry& entry);

}  // namespace tilepilot::retrieval
