// The corpus as a file that moves between databases: JSON Lines, a header and then an entry a line.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

// An entry with all that is known of it, but for its number, which is a database's own.
nlohmann::json to_json(const Entry& entry);
// May throw what nlohmann::json throws on another shape.
Entry entry_from_json(const nlohmann::json& object);

// Writes all entries, those in quarantine too, and gives how many. The file is there whole or not at all. Errors:
// `output_unwritable`, and those of the corpus.
Result<int64_t> export_corpus(Corpus& corpus, const std::filesystem::path& file);

struct Imported {
  int64_t added = 0;
  int64_t known = 0;  // the program was there for the same target: what the corpus says of it stays
};
// All entries or none: of a file that is wrong anywhere nothing is taken. What an entry says of itself is taken as it
// is; `corpus verify` proves it here. Errors: `file_not_found`, `bad_usage` (no such file of ours, a newer version, a
// wrong line, which is named), and those of the corpus.
Result<Imported> import_corpus(Corpus& corpus, const std::filesystem::path& file);

}  // namespace tilepilot::retrieval
