// What a `generate` run leaves behind, in the database: the run, each attempt with its verdict, each exchange with a
// language model. Everything is written before the next step is taken, so a run that is killed keeps what it had, and a
// finished one replays.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/generate/author.h"
#include "retrieval/neighbour.h"

namespace SQLite {
class Database;
}

namespace tilepilot::agent {

struct RunHeader {
  std::string model;  // path as given
  std::string model_source;
  std::string author;
  std::string options;  // JSON object
  int64_t batch = 0;    // that the run belongs to (kernelbench/batch_store.h); 0: none
  // What of the corpus was nearest to the model when the run began; nullopt: nothing was.
  std::optional<retrieval::Neighbour> neighbour = {};
};

// One request to a language model and its reply.
struct Exchange {
  std::string request;  // JSON body, without the key
  int status = 0;       // HTTP status; 0: none (yet)
  std::string reply;    // one JSON object, also of a stream; what else came, as it came
  std::string failure;  // why there is no usable reply; empty: there is one, or it is waited for
  // What was counted, or, of a try without a count, what it can have cost at most.
  int64_t input_tokens = 0, output_tokens = 0;
  int64_t cached_tokens = 0;  // of the input
  bool estimated = false;     // by us
  double dollars = 0;
  double seconds = 0;
  int attempt = 0;           // which the author was about to write, from 0
  std::string started = {};  // ISO 8601, UTC; of a stored one
};

// What runs with one language model took, in the mean.
struct RecordedUse {
  int runs = 0;  // with an answer; 0: the rest says nothing
  double attempts = 0;
  double requests_an_attempt = 0;
  double output_tokens = 0;  // of an answer
};

// A run as a list shows it.
struct RunSummary {
  int64_t id = 0;
  std::string model, author;
  std::string started, finished;  // ISO 8601, UTC; `finished` is empty while it runs, or if it was killed
  std::string ending;
  int attempts = 0;
};

struct StoredRun {
  RunSummary summary;
  std::string model_source;
  std::string options;  // JSON object
  std::optional<retrieval::Neighbour> neighbour;
  bool neighbour_known = false;   // runs of earlier versions do not say it
  std::vector<Attempt> attempts;  // an attempt without a verdict was being judged when the run ended
  std::optional<size_t> best;     // as the run said, or, if it was killed, as its verdicts say
};

class RunStore {
 public:
  // Errors: of kind `store_unusable`. Read-only, the file must be there.
  static Result<std::unique_ptr<RunStore>> open(const std::filesystem::path& file, bool read_only = false);

  // Newest first.
  Result<std::vector<RunSummary>> list(int most);
  Result<std::optional<StoredRun>> find(int64_t run);

  // The run's name in all databases.
  Result<std::string> uid(int64_t run);

  Result<int64_t> begin_run(const RunHeader& header);
  // The newest run of this batch and model text that did not end. `begin_run` after it would do its work again.
  Result<std::optional<int64_t>> find_interrupted(int64_t batch, const std::string& model_source);
  // Numbers count from 0 in a run. The verdict is absent while the candidate is judged.
  Status save_attempt(int64_t run, int number, const Candidate& candidate, const std::optional<eval::Verdict>& verdict);
  // Forgets attempts from this number on.
  Status drop_attempts(int64_t run, int first);
  Status save_pairings(int64_t run, int number, const std::vector<Pairing>& pairings);
  // What a comparison of finalists says of an attempt, beside its own verdict.
  Status save_comparison(int64_t run, int number, const eval::Verdict& verdict);
  Status finish_run(int64_t run, std::string_view ending, std::optional<int> best_attempt);

  Status save_exchange(int64_t run, int number, const Exchange& exchange);
  // The number that follows those of a run's exchanges, answered or not.
  Result<int> next_exchange(int64_t run);
  // Of the runs whose options name this model. Replays are none of them.
  Result<RecordedUse> recorded_use(const std::string& model);
  // All exchanges of a run, in order; one that was waited for when the run was killed has no status and no failure. An
  // unknown run is an error.
  Result<std::vector<Exchange>> exchanges(int64_t run);

 private:
  RunStore(std::filesystem::path file, std::shared_ptr<SQLite::Database> database)
      : file_(std::move(file)), database_(std::move(database)) {}
  std::filesystem::path file_;
  std::shared_ptr<SQLite::Database> database_;
};

}  // namespace tilepilot::agent
