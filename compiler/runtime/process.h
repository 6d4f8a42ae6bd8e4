// Running another program to its end: the system compiler, the user's Python.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime {

struct ProcessOptions {
  double time_limit_s = 0;        // 0: none; waiting for a processor does not count, up to ten times the limit
  std::string working_directory;  // empty: this process's
};

struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal or by the time limit
  int signal = 0;
  bool timed_out = false;
  std::string out, err;  // what it wrote; standard input is empty
};

// Runs argv[0], found on PATH, and waits. An error only if it could not be started (kind `load_failed`).
Result<ProcessResult> run_process(const std::vector<std::string>& argv, const ProcessOptions& options = {});

// How long the first thread of a running process has waited for a processor, in seconds; 0 if the system does not say.
double queued_seconds(pid_t process);

}  // namespace tilepilot::runtime
