// What a language model is told before its first attempt: the rules, the language, the machine, the model and its op
// graph, programs to start from. In parts, so that what matters least is left out where the whole is too long.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/generate/author.h"
#include "eval/graph/preflight.h"
#include "eval/profile/eager_times.h"
#include "retrieval/corpus.h"
#include "retrieval/lessons.h"

namespace tilepilot::agent {

// When a part is left out, last first. Of one rank, the later part goes first.
enum class Keep {
  always,
  graph,      // rows of the op graph beyond the first
  history,    // attempts before the last few
  start,      // the program to start from, once another one is verified
  names,      // names of the language without explanation
  retrieved,  // stored programs
  memory,     // what earlier runs have learnt
  details,    // of a profile: what kernels take of the machine, what the compiler could not do
};

struct PromptPart {
  std::string text;
  Keep keep = Keep::always;
};

// The parts as one text, those left out that must be for `most_bytes` to hold.
std::string join(const std::vector<PromptPart>& parts);
size_t bytes_of(const std::vector<PromptPart>& parts);
// Takes away the part that goes first; false: all that are left stay always.
bool leave_one_out(std::vector<std::vector<PromptPart>*> messages);

// Bytes of a program to learn from: a longer one is mostly repetition.
constexpr size_t kLongestExample = 16'000;

struct TaskFacts {
  const eval::Reference& reference;
  std::string target;  // "cpu", "cuda:sm_90a"
  std::string aten;    // the policy of eval::JudgeOptions
  eval::Preflight preflight;
  int threads = 0;                              // of a processor; 0: all
  std::vector<retrieval::Hit> kernels;          // stored programs, the most useful first
  std::string start;                            // a program of the author `builtin`; empty: it has none
  std::vector<retrieval::Lesson> lessons = {};  // of earlier runs, the most useful first
  std::optional<eval::EagerTimes> eager = {};   // measured; nullopt: not known
};

// The system message. `variants`: that the tuner may judge of a program (agent/generate/tuning.h).
std::vector<PromptPart> system_prompt(const std::string& target, int variants = 8);
// The task.
std::vector<PromptPart> task_prompt(const TaskFacts& facts);

// Versions of the texts, for records: "answers 1, file 2, ...".
std::string prompt_versions();

}  // namespace tilepilot::agent
