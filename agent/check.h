// Judging a given program against a model: the command `check`.
#pragma once

#include "agent/exporter.h"
#include "eval/judge.h"

namespace tilepilot::agent {

struct CheckOptions {
  std::filesystem::path candidate;
  std::filesystem::path model;
  std::filesystem::path work;  // folder for the exported reference
  ExporterOptions exporter;
  eval::JudgeOptions judge;
  bool time = true;
};

// Errors: a file is missing, the model cannot be exported, the worker cannot be started.
Result<eval::Verdict> check(SourceMap& sources, const CheckOptions& options);

}  // namespace tilepilot::agent
