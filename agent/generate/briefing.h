// What a language model gets to know about a model before its first attempt: the op graph's costs on the target, a
// program of the author `builtin`, stored programs.
#pragma once

#include "agent/llm/llm_author.h"
#include "eval/graph/preflight.h"
#include "eval/judge.h"
#include "eval/profile/eager_times.h"

namespace tilepilot::agent {

// What the graph alone tells of costs on a target that is not `auto`.
eval::Preflight preflight_for(const eval::Reference& reference, const std::string& target,
                              const eval::JudgeOptions& judge);

// What earlier runs have left. Both outlive the author.
struct Memory {
  retrieval::Corpus& corpus;
  retrieval::Lessons& lessons;
};

struct BriefingOptions {
  std::string target;  // not `auto`
  eval::JudgeOptions judge;
  int retrieved = 3;  // stored programs, and at most as many lessons
  // Stored programs at a smaller distance are not shown, nor, if it is not 0, what was learnt on this graph.
  double exclude_near = 0;
  int64_t context_tokens = 0;  // of the language model; 0: unknown
  int64_t answer_tokens = 16'000;
  int variants = 8;  // of each verified program (agent/generate/tuning.h)
  int parallel = 1;  // answers that are asked for at once
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  // Of eval::Judge; empty: eager's operators are not measured.
  std::function<Result<eval::EagerTimes>()> measure_eager = {};
};

struct Briefing {
  LlmAuthorOptions author;
  std::vector<std::string> shown;  // uids of the stored programs
};

// Errors: the store cannot be read.
Result<Briefing> brief(const eval::Reference& reference, const eval::Preflight& preflight, const Memory& memory,
                       const BriefingOptions& options);

}  // namespace tilepilot::agent
