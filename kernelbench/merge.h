// Databases of several machines become one: batches, the runs behind them, and the corpus.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kernelbench/batch_hold.h"

namespace tilepilot::kernelbench {

// A problem that two databases judged, with different results. The one that was begun first stays.
struct MergeDifference {
  int64_t batch = 0;  // in the store
  std::string problem;
  std::string kept, left;      // in few words
  std::filesystem::path from;  // the database whose result was met last
};

// What one batch of a database gave.
struct MergedBatch {
  std::filesystem::path from;
  int64_t was = 0, batch = 0;  // its number there, and in the store
  bool begun = false;          // the store had no such batch
  int taken = 0;               // problems whose results came from there
};

struct MergeResult {
  std::vector<MergedBatch> batches;
  std::vector<MergeDifference> differences;
  int runs = 0, entries = 0;  // new in the store, or further than there: runs; of the corpus: entries
};

// Puts what is in `sources` into the database `store`, which is made where there is none. Sources stay as they are.
//
// Batches of the same problems (by their texts, wherever the files lie) and the same options become one; the n-th of
// such a kind in a source joins the n-th in the store. A problem that is judged wins over one that is not; of two that
// are judged, the one that was begun first. Runs are known by a name of their own, programs of the corpus by their
// fingerprint and target, so merging a database twice, or first as far as it has come and then again, adds what is new.
// Runs that were left are kept, without a problem that shows them.
//
// All of it is one transaction. Errors: of kind `bad_usage`, no source, the store among the sources, a batch that is
// being run; of kind `store_unusable`, as in retrieval/database.h.
Result<MergeResult> merge_databases(const std::vector<std::filesystem::path>& sources,
                                    const std::filesystem::path& store,
                                    const std::function<void(const std::string&)>& waits, const HoldTimes& times = {});

}  // namespace tilepilot::kernelbench
