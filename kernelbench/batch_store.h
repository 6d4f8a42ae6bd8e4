// What a batch leaves in the database: which problems it has, how far each has come, and what came of it. Each state is
// written before the next step, so that a batch that is killed goes on where it was.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernelbench/problem_set.h"

namespace SQLite {
class Database;
}

namespace tilepilot::kernelbench {

enum class State { waiting, running, done };

// How a problem ended.
enum class Ending {
  verified,
  given_inputs_only,  // verified for the inputs of `get_inputs` alone: counts as no success
  failed,             // there were candidates, and none was verified
  abstained,          // the author had no candidate
  not_loaded,         // the model could not be exported: its file, or what it needs, is at fault
  does_not_fit,       // in this machine's memory
  not_judged,         // our side, or the endpoint: it is tried again when the batch goes on
};
std::string_view to_string(Ending ending);
std::optional<Ending> parse_ending(std::string_view name);

struct Outcome {
  Ending ending = Ending::not_judged;
  std::string reason;        // one sentence; empty: verified
  int64_t run = 0;           // of `generate`, in the same database; 0: none began
  double seconds = 0;        // by the wall clock
  double dollars = 0;        // for the language model
  bool lacks_money = false;  // its dollars did not suffice for a request, or for the next
  nlohmann::json record;     // what `generate --json` printed
};

struct BatchProblem {
  Problem problem;
  State state = State::waiting;
  int tries = 0;    // how often it was begun
  Outcome outcome;  // of the last try, if it is done
};

struct BatchHeader {
  std::string problems;     // the set's root
  std::string digest;       // of the set
  std::string options;      // JSON object: all that results depend on
  std::string environment;  // JSON object: versions and machine
};

struct Batch {
  int64_t id = 0;
  BatchHeader header;
  std::string started, finished;       // ISO 8601, UTC; `finished` is empty while problems are left
  std::vector<BatchProblem> problems;  // by level and id
};

struct BatchSummary {
  int64_t id = 0;
  std::string problems, options, started, finished;
  int total = 0, done = 0, verified = 0;
};

// Errors of all: kind `store_unusable`. One thread at a time.
class BatchStore {
 public:
  static Result<std::unique_ptr<BatchStore>> open(const std::filesystem::path& file, bool read_only = false);

  // The newest batch of these problems' root and these options, whatever its digest; nullopt: there is none.
  Result<std::optional<int64_t>> find(const std::string& root, const std::string& options);
  Result<int64_t> begin(const BatchHeader& header, const std::vector<Problem>& problems);
  // nullopt: there is no such batch. 0: the newest.
  Result<std::optional<Batch>> load(int64_t batch);
  Result<std::vector<BatchSummary>> list();

  // What was running when the batch was killed waits again.
  Status recover(int64_t batch);
  Status set_running(int64_t batch, const Problem& problem);
  Status set_done(int64_t batch, const Problem& problem, const Outcome& outcome);
  Status set_waiting(int64_t batch, const Problem& problem);
  // Marks the batch finished if nothing is left, and unfinished otherwise.
  Status finish(int64_t batch);

 private:
  BatchStore(std::filesystem::path file, std::shared_ptr<SQLite::Database> database)
      : file_(std::move(file)), database_(std::move(database)) {}
  template <class Body>
  auto guarded(Body body) -> decltype(body());

  std::filesystem::path file_;
  std::shared_ptr<SQLite::Database> database_;
};

}  // namespace tilepilot::kernelbench
