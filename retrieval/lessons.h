// What attempts have taught, in the database: changes after which a program that had failed was verified, by the kind
// of the failure, and changes that made a verified program faster, each with its measurement.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace SQLite {
class Database;
}

namespace tilepilot::retrieval {

// Where something was learnt.
struct LearntFrom {
  std::string target;  // "cpu", "cuda:sm_90a", ...
  std::string graph;   // graph_fingerprint of the model
  std::string run;     // uid
  int attempt = 0;     // of the run: the one that was verified
};

struct Fix {
  std::string kind;     // of the diagnostic ("shape_mismatch"), or the outcome where there was none ("wrong_values")
  std::string message;  // of the failure
  std::string line;     // of the program that failed, as its text; empty: not known
  std::string change;   // lines taken out and put in, each with "- " or "+ " before it
  LearntFrom from;
  int seen = 1;  // how often the same was learnt
};

struct Lesson {
  std::string summary;  // one line: what was done
  std::string change;
  std::vector<std::string> patterns;  // of the model (retrieval/patterns.h)
  double before_us = 0, after_us = 0;
  double gain_low = 1;  // the least factor that the intervals of both measurements leave
  LearntFrom from;
  double gain() const { return after_us > 0 ? before_us / after_us : 0; }
};

struct FixQuery {
  std::string kind;
  std::string message, line;  // of the failure at hand: similar ones come first
  std::string target;         // what was learnt there comes first
  std::string exclude_graph;  // nothing that was learnt on it: for benchmarks; empty: all
  int count = 3;
};

struct LessonQuery {
  std::vector<std::string> patterns;  // of the model: lessons that share none are left out
  std::string target;                 // only what was learnt there; empty: all
  std::string exclude_graph;
  int count = 3;
};

// Errors: of kind `store_unusable`.
class Lessons {
 public:
  static Result<std::unique_ptr<Lessons>> open(const std::filesystem::path& file, bool read_only = false);

  // The same change after the same failure is one row that counts how often it was seen, each run once.
  Status remember(const Fix& fix);
  Status remember(const Lesson& lesson);

  // The most useful first: similar messages, the same target, what was seen often.
  Result<std::vector<Fix>> fixes(const FixQuery& query);
  // The largest products of shared patterns and least gain first.
  Result<std::vector<Lesson>> lessons(const LessonQuery& query);

 private:
  Lessons(std::filesystem::path file, std::shared_ptr<SQLite::Database> database)
      : file_(std::move(file)), database_(std::move(database)) {}
  std::filesystem::path file_;
  std::shared_ptr<SQLite::Database> database_;
};

}  // namespace tilepilot::retrieval
