// What a language model hears of its attempts: a table of all of them, the verdict on the last one with what in the
// language it concerns, the best so far, and what to do next.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/llm/prompt.h"

namespace tilepilot::agent {

// What the next program starts from.
struct NextStep {
  enum class Kind {
    repair,   // the last attempt failed: mend it, change nothing else
    restart,  // several attempts failed alike: begin anew, simply
    improve,  // the base is verified: make one change that makes it faster
  } kind = Kind::improve;
  std::optional<size_t> base;  // the attempt that is changed; nullopt: the program to start from
};
// By what became of the attempts: of those that failed the one that came furthest is mended, three times at most; then
// work goes on from the best verified one, or anew. From the best, and after two changes in a row that made it no
// faster, from the second best, if that is another idea (no variant of it, its time within a quarter of the best's).
// Attempts before `first` are another author's: what failed there is not mended. Variants count with what they vary.
NextStep next_step(const std::vector<Attempt>& history, size_t first = 0);

// Attempts since the best so far, from `first` on, without variants.
int attempts_without_progress(const std::vector<Attempt>& history, size_t first = 0);

struct FeedbackFacts {
  eval::LeastTime bound;
  int variants = 8;                             // that the tuner may judge of a program
  std::vector<retrieval::Fix> fixes = {};       // of this attempt's failure, from earlier runs
  std::map<std::string, double> products = {};  // eval::product_times
};
// Its words are those that the prompt defines (agent/llm/prompt_parts/answers.md): this attempt, the best so far, the
// base.
std::vector<PromptPart> feedback_prompt(const std::vector<Attempt>& history, const NextStep& step,
                                        const FeedbackFacts& facts);

}  // namespace tilepilot::agent
