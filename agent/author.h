// An author writes candidate programs for a reference and answers to verdicts with better ones. `builtin` plans from
// the op graph; `llm` asks a chat endpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/judge.h"
#include "eval/reference.h"

namespace tilepilot::agent {

struct Candidate {
  std::string source;   // a complete Python file with class ModelNew
  std::string summary;  // one line: what this attempt does differently
};

struct Attempt {
  Candidate candidate;
  eval::Verdict verdict;                  // of this attempt alone
  std::optional<eval::Verdict> compared;  // measured side by side with other finalists (agent/finalists.h)

  // What is told of the attempt: a comparison's verdict counts more than its own.
  const eval::Verdict& told() const { return compared ? *compared : verdict; }
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
  // What it has cost so far.
  virtual double dollars_spent() const { return 0; }
};

}  // namespace tilepilot::agent
