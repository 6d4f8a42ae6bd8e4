// Judging a given program against a model: the command `check`.
#pragma once

#include <functional>

#include "agent/certificate.h"

namespace tilepilot::agent {

struct CheckOptions {
  std::filesystem::path candidate;
  std::filesystem::path model;
  std::filesystem::path work;  // folder for the exported reference
  ExporterOptions exporter;
  eval::JudgeOptions judge;
  bool time = true;
  bool profile = false;  // of a verified program that was timed
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// KernelBench has a timing for GPUs only. Errors: of kind `bad_usage`. `target`: `auto` is not decided yet.
Status check_protocol(const eval::JudgeOptions& options, std::string_view target);

// The verdict, and all that a certificate wants besides. Errors: a file is missing, the model cannot be exported, the
// worker cannot be started.
Result<Certified> check(SourceMap& sources, const CheckOptions& options);

}  // namespace tilepilot::agent
