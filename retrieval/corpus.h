// The corpus: verified tile programs with what is known about them, in SQLite, searched through FAISS.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::retrieval {

// What a program computes, as far as search is concerned: its operators and how they follow one another.
struct Structure {
  std::vector<std::string> ops;  // ATen names without overload, in graph order: "aten::linear"
  std::vector<std::pair<std::string, std::string>> edges;  // producer op, consumer op
  std::string dtype = "float32";
  int64_t largest_elements = 0;
  // The same edges by the operators' places in `ops`, so that equal names are told apart; empty: not known.
  std::vector<std::pair<int, int>> links;
};

// The identity of an op graph: operators and links, whatever the sizes. Empty where there is no operator.
std::string graph_fingerprint(const Structure& structure);

struct TensorShape {
  std::string dtype;
  std::vector<int64_t> extents;
};

// JSON objects are kept as texts: the corpus stores them and never reads what is inside.
struct Entry {
  int64_t id = 0;
  std::string name;
  std::string origin;  // "seed" or "generated"
  std::string summary;
  std::vector<std::string> tags;
  Structure structure;
  std::string source;                        // the program, TileLang text
  std::string fingerprint;                   // of the normalised program; unique for a target
  double speedup = 0;                        // measured against eager where it was verified; 0: not measured
  std::string target;                        // that it was verified for: "cpu", "cuda:sm_90a", ...
  std::string created;                       // ISO 8601, UTC
  std::string uid;                           // the entry's name in all databases; given by the first one
  std::string graph;                         // graph_fingerprint of the model; empty: not known
  double compile_speedup = 0;                // against torch.compile; 0: not measured
  double roofline = 0;                       // the least possible time by its time, 0 to 1; 0: not measured
  std::vector<TensorShape> inputs, outputs;  // of the model
  std::string licence;                       // SPDX identifier; empty: not stated
  std::string model_source;      // the model that it is a program for; empty: the program holds it, or not known
  std::string task = "{}";       // JSON object: how the model was exported and judged (agent/store/corpus_entry.h)
  std::string lineage = "{}";    // JSON object: run, attempt, author, entries that were shown
  std::string toolchain = "{}";  // JSON object: compiler, driver and TilePilot it was proven with
  std::string certificate;       // JSON object; empty: none
  std::string verified;          // when it was proven last, ISO 8601, UTC; empty: not known
  std::string quarantined;       // why it is not retrieved; empty: it is
};

struct Query {
  Structure structure;
  std::string text;
  int count = 5;
  // Entries that cannot run there are left out (retrieval/target_fit.h); empty: none is.
  std::string target;
  // Entries whose structure is nearer than that (1 less the cosine) are left out, so that a benchmark does not read its
  // own answers; 0: none is.
  double exclude_near = 0;
  // `choose_covering` leaves out entries whose program has more bytes: what repeats itself teaches little; 0: none.
  size_t longest_source = 0;
};

struct Hit {
  Entry entry;
  double score = 0;    // 0 to 1
  std::string reason;  // why it was chosen, one sentence
};

// What a proof of an entry has come to.
struct Proof {
  bool holds = false;
  std::string why;               // it does not hold
  std::string toolchain = "{}";  // as in Entry
};

// What answers searches (retrieval/index/stored_index.h).
struct IndexState {
  std::string kind;              // "flat" or "ivf"; "none": another process makes it, and searches read the whole table
  int64_t entries = 0;           // that it finds
  int64_t structures = 0;        // vectors in it: entries of equal structure share one
  int64_t tail = 0;              // of them: newer than the index file, searched one by one
  int64_t bytes = 0;             // of the index file; 0: none, the vectors are in the database
  int clusters = 0, probes = 0;  // ivf
};

struct IndexOptions {
  int64_t flat_most = 50'000;  // more structures than that have an IVF index in a file beside the database
  int probes = 0;              // clusters that a search looks at; 0: as many as the recall needs
};

// Errors are diagnostics without a span. A file that is not a database, is read-only or was written by a newer version
// is said so. Several processes may add and search at once.
class Corpus {
 public:
  virtual ~Corpus() = default;
  // True if added, false if a program with the same fingerprint and target is there already.
  virtual Result<bool> add(const Entry& entry) = 0;
  // In one transaction: all, or none if one of them is wrong. How many were added.
  virtual Result<int64_t> add_all(const std::vector<Entry>& entries) = 0;
  // Also those in quarantine.
  virtual Result<std::vector<Entry>> list() = 0;
  virtual Result<std::optional<Entry>> find(const std::string& id_or_name) = 0;
  // Entries in quarantine are left out. A program that several targets have verified is one hit: the entry that came
  // first.
  virtual Result<std::vector<Hit>> search(const Query& query) = 0;
  Result<std::vector<Hit>> search(const Structure& structure, const std::string& text, int count) {
    Query query{structure, text};
    query.count = count;
    return search(query);
  }
  // Puts an entry whose program fails into quarantine, and takes one out whose program holds.
  virtual Status record_proof(int64_t id, const Proof& proof) = 0;
  // Makes the index as the next search needs it; `anew`: also where there is a usable one.
  virtual Result<IndexState> update_index(bool anew) = 0;
};

Result<std::unique_ptr<Corpus>> open_corpus(const std::filesystem::path& file, bool read_only = false,
                                            const IndexOptions& options = {});

// The fingerprint of a program's text: formatting, comments, docstrings and local names do not matter.
Result<std::string> fingerprint(const std::string& source);

}  // namespace tilepilot::retrieval
