// A problem's run as a process: `tilepilot generate`, and what its answer means for a batch.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernelbench/batch.h"

namespace tilepilot::kernelbench {

struct GenerateProcessOptions {
  std::filesystem::path program;       // tilepilot
  std::vector<std::string> arguments;  // of every problem's `generate`: author, target, store, ...
  std::filesystem::path output;        // a folder for verified programs and their certificates; empty: they stay in the
                                       // database
  std::filesystem::path work;          // a folder for temporary files, which is there
  bool costs_money = false;            // the author does: `--dollars` means something
  std::vector<std::string> environment;  // "NAME=value", beside this process's: a key
  // As CUDA_VISIBLE_DEVICES takes them: each process gets the one on which the fewest are; empty: whatever is visible.
  std::vector<std::string> gpus;
};

// Processes end with this one, however that ends.
std::unique_ptr<ProblemRunner> generate_processes(GenerateProcessOptions options);

// What a process of `generate --json` that ended with this code says of its problem. `text`: its standard output;
// `how`: how it ended, for one that said nothing.
Outcome outcome_of(const std::string& text, int exit_code, const std::string& how);

}  // namespace tilepilot::kernelbench
