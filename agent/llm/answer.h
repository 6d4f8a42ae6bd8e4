// How an answer of a language model is read: a whole file, changes to the current one, questions, or the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::agent {

// One search-and-replace block.
struct PatchBlock {
  std::string search, replace;
  bool has_end = true;
};

struct LlmAnswer {
  std::string program;                 // the last fenced block that defines ModelNew; empty: none
  std::vector<PatchBlock> patch;       // in order
  std::vector<std::string> questions;  // without "ask:"
  bool done = false;                   // the line DONE, alone
  std::string summary;                 // the first line of text, for progress lines and reports
};
LlmAnswer read_answer(std::string_view text);

struct Patched {
  std::string program;
  std::string problem;  // why a block could not be applied, for the model; empty: all were
};
// Each block's text must be in the program exactly once.
Patched apply_patch(std::string program, const std::vector<PatchBlock>& patch);

// Whether an answer has the line DONE, alone: it has nothing left to gain.
bool says_done(std::string_view answer);

// The program in an answer: the last fenced block that defines ModelNew; empty if there is none.
std::string program_in(std::string_view answer);

}  // namespace tilepilot::agent
