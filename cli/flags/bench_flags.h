// The options of commands that run a batch of problems, here or elsewhere.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags/judge_flags.h"
#include "cli/flags/llm_flags.h"
#include "kernelbench/batch.h"

namespace tilepilot::cli {

struct BenchFlags {
  std::string problems, levels, ids, output, share;
  std::string author = "builtin";
  int attempts = 12, variants = 8;
  int gpus = 0;  // at most; 0: all
  bool begin_new = false;
  double exclude_near = 0;
  kernelbench::BatchOptions batch;
  JudgeFlags judge;
  LlmFlags llm;
  const CLI::Option* jobs = nullptr;
  const CLI::Option* problem_dollars = nullptr;
  const CLI::App* command = nullptr;
};

void add_batch_options(CLI::App& command, Session& session, BenchFlags& flags);

struct Settings {
  std::vector<std::string> arguments;                 // of every `generate`
  nlohmann::json options = nlohmann::json::object();  // the same, with what the command adds
};
Result<Settings> settings_of(const Session& session, const BenchFlags& flags);

// What is asked for of the set. Errors: `bad_usage`.
Result<kernelbench::Selection> selection_of(const BenchFlags& flags);

// What no parser of options sees. Makes the folder of `--output`. Errors: `bad_usage`, `output_unwritable`.
Status check_flags(Session& session, BenchFlags& flags);

// The commands below `bench` that have files of their own.
void add_bench_merge(CLI::App& bench, Session& session);
void add_bench_submit(CLI::App& bench, Session& session);

}  // namespace tilepilot::cli
