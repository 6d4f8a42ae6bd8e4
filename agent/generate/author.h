// An author writes candidate programs for a reference and answers to verdicts with better ones. `builtin` plans from
// the op graph; `llm` asks a chat endpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/graph/reference.h"
#include "eval/judge.h"

namespace tilepilot::agent {

struct Candidate {
  std::string source;                  // a complete Python file with class ModelNew
  std::string summary;                 // one line: what this attempt does differently
  std::optional<size_t> changes = {};  // the attempt that it is a change of; nullopt: it is written anew
  std::optional<int> exchange = {};    // of the run (agent/store/run_store.h): the one whose reply it is from
  bool is_variant = false;  // that change is in numbers alone, which were left open (agent/generate/tuning.h)
};

// An attempt beside an earlier one, which is `other`: both measured in one session of the judge
// (agent/generate/pairing.h).
using Pairing = eval::PairedRatio;

struct Attempt {
  Candidate candidate;
  eval::Verdict verdict;                  // of this attempt alone
  std::optional<eval::Verdict> compared;  // measured side by side with other finalists (agent/generate/finalists.h)
  std::vector<Pairing> pairings = {};     // with the best then, and with the attempt that a variant varies

  // What is reported for the attempt: a comparison's verdict counts more than its own.
  const eval::Verdict& told() const { return compared ? *compared : verdict; }
};

// What an author has spent, and whether a limit keeps it from going on.
struct Spending {
  enum class Over { nothing, dollars, tokens };
  double dollars = 0;
  int64_t tokens = 0;  // read and written, reasoning included
  int requests = 0;    // tries that failed included
  Over over = Over::nothing;
};

// Why an author has no further candidate.
enum class Rest {
  nothing_left,  // nothing to try
  dollars,       // the next step could exceed a limit of spending
  tokens,
  no_progress,   // several attempts in a row were no better
  at_roofline,   // the best is near what the machine can do
  not_worth_it,  // what could be gained does not pay for trying
};

class Author {
 public:
  virtual ~Author() = default;
  // The next call of `next` has this long. Only authors that wait for others need to know.
  virtual void allow(double /*seconds*/) {}
  // The next candidate, given all attempts so far; nullopt: nothing more to try. Errors: the author itself failed (no
  // network, wrong key, a model it cannot follow: spans refer to file 0, the model), which ends the run with what it
  // has.
  virtual Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) = 0;
  // Whether what it writes next depends on which attempt is the best: then each is measured beside the best so far.
  virtual bool needs_ranking() const { return false; }
  // After nullopt.
  virtual Rest rest() const { return Rest::nothing_left; }
  // What it has cost so far.
  virtual Spending spending() const { return {}; }
};

}  // namespace tilepilot::agent
