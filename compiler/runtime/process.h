// Running another program to its end: the system compiler, the user's Python.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/untrusted/environment.h"
#include "compiler/untrusted/isolation.h"

namespace tilepilot::runtime {

struct ProcessOptions {
  double time_limit_s = 0;        // 0: none; waiting for a processor does not count, up to ten times the limit
  std::string working_directory;  // empty: this process's
  untrusted::EnvironmentOf environment = untrusted::EnvironmentOf::the_user;
  std::vector<std::string> more_environment = {};  // "NAME=value", beside that, or in its place
  size_t output_limit = size_t{64} << 20;          // bytes of each stream that are kept; of more, how much it was
  // The program runs in it, with this process as its guard: neither outlives the other. argv[0] is its path.
  std::optional<untrusted::Confinement> confinement = std::nullopt;
  int abandon = -1;    // a socket: the program is ended when the other side hangs up
  double grace_s = 0;  // a program that is ended gets SIGTERM first, and so long for its last words; 0: none
  std::function<void(std::string_view)> watch_err = {};  // told what comes on its standard error, as it comes
};

struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal or by the time limit
  int signal = 0;
  bool timed_out = false;
  std::string out, err;  // what it wrote; standard input is empty
  bool abandoned = false;
  double seconds = 0;  // by the wall clock
};
// How it ended, of one that failed: "it ended with code 1", "it was killed, as the system does where memory is short".
std::string ending_of(const ProcessResult& result);

// Runs argv[0], found on PATH, and waits. An error only if it could not be started (kind `load_failed`).
Result<ProcessResult> run_process(const std::vector<std::string>& argv, const ProcessOptions& options = {});

// How long the first thread of a running process has waited for a processor, in seconds; 0 if the system does not say.
double queued_seconds(pid_t process);
// The same, of all its threads together.
double queued_seconds_of_threads(pid_t process);

}  // namespace tilepilot::runtime
