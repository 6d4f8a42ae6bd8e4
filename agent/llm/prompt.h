// The words exchanged with a language model: what it is told at first, what it hears about an attempt, and how its
// answer is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/author.h"
#include "retrieval/corpus.h"

namespace tilepilot::agent {

// The system message: the language card.
std::string system_prompt();

// The task: the model's text, what its graph says of shapes and operators, retrieved kernels, and which of PyTorch's
// operators `forward` may call under the policy `aten` (eval::JudgeOptions).
std::string task_prompt(const eval::Reference& reference, const std::string& target, const std::string& aten,
                        const std::vector<retrieval::Hit>& kernels);

// What became of an attempt: diagnostics with carets, where values are wrong, or how fast it is; and what to do next.
std::string feedback_prompt(const Attempt& attempt, const std::vector<Attempt>& history);

// Whether an answer has the line DONE, alone: it has nothing left to gain.
bool says_done(std::string_view answer);

// The program in an answer: the last fenced block that defines ModelNew; empty if there is none.
std::string program_in(std::string_view answer);

}  // namespace tilepilot::agent
