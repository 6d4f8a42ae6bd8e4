// The options of every command that judges candidates: how many trials, within which limits, against which baselines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "eval/judge.h"

namespace tilepilot::cli {

struct JudgeFlags {
  int trials = 5;
  double time_limit_s = 120;
  double memory_gib = 0;
  std::string baselines = "eager";
  std::string aten = "hybrid";
  std::string protocol = "tilepilot";

  void add_to(CLI::App& command);
  void apply_to(eval::JudgeOptions& options) const;
};

}  // namespace tilepilot::cli
