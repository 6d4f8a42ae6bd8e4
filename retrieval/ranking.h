// From candidates of the index to the entries that a search gives: compared exactly, filtered, each program once.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <set>
#include <string>
#include <vector>

#include "retrieval/corpus.h"
#include "retrieval/index/stored_index.h"

namespace tilepilot::retrieval {

// The query's vectors, each of length 1 and weighed.
struct QueryVectors {
  explicit QueryVectors(const Query& query);
  StructureVector structure;
  TextVector text;
  float share;  // of the structure; the words have the rest
  WeighedQuery weighed;
};

struct Ranked {
  int64_t entry = 0;
  double score = 0, structure = 0, text = 0;
};

// The `query.count` best of the entries that these rows of `embedding` are of, and of those with the same structure:
// by score, then the oldest. Throws SQLite's exceptions.
std::vector<Ranked> rank(SQLite::Database& database, const Query& query, const QueryVectors& vectors,
                         const std::vector<int64_t>& rows);

}  // namespace tilepilot::retrieval
