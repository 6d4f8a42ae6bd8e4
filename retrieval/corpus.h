// The corpus: verified tile programs with what is known about them, in SQLite, searched through FAISS.
#pragma once

#include <filesystem>
#include <memory>
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
};

struct Entry {
  int64_t id = 0;
  std::string name;
  std::string origin;  // "seed" or "generated"
  std::string summary;
  std::vector<std::string> tags;
  Structure structure;
  std::string source;       // the program, TileLang text
  std::string fingerprint;  // of the normalised program; unique for a target
  double speedup = 0;       // measured against eager where it was verified; 0: not measured
  std::string target;       // that it was verified for: "cpu", "cuda:sm_90a", ...
  std::string created;      // ISO 8601, UTC
};

struct Hit {
  Entry entry;
  double score = 0;    // 0 to 1
  std::string reason;  // why it was chosen, one sentence
};

// Errors are diagnostics without a span. A file that is not a database, is read-only or was written by a newer version
// is said so.
class Corpus {
 public:
  virtual ~Corpus() = default;
  // True if added, false if a program with the same fingerprint and target is there already.
  virtual Result<bool> add(const Entry& entry) = 0;
  virtual Result<std::vector<Entry>> list() = 0;
  virtual Result<std::optional<Entry>> find(const std::string& id_or_name) = 0;
  // A program that several targets have verified is one hit: the entry that came first.
  virtual Result<std::vector<Hit>> search(const Structure& structure, const std::string& text, int count) = 0;
};

Result<std::unique_ptr<Corpus>> open_corpus(const std::filesystem::path& file, bool read_only = false);

// The fingerprint of a program's text: formatting, comments, docstrings and local names do not matter.
Result<std::string> fingerprint(const std::string& source);

}  // namespace tilepilot::retrieval
