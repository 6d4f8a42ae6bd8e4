// What a call makes run: LibTorch's operators, generated kernels with the size of their arguments, and how much memory
// it asks for. Two calls on the same inputs do the same work, unless the program remembers answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "eval/worker/watched_backend.h"

namespace tilepilot::eval {

// "aten::mm", "kernel softmax on 4096 elements" -> how often; "allocated bytes" -> how many.
using Work = std::map<std::string, int64_t>;

// While it lives, counts what this thread does, and fills fresh memory with NaN. Slows it down: not for timed calls.
class WorkCensus {
 public:
  explicit WorkCensus(LaunchLog& log);
  ~WorkCensus();
  WorkCensus(const WorkCensus&) = delete;

  // The work so far.
  Work take();

 private:
  LaunchLog& log_;
  Work operators_;
  int64_t bytes_before_;
  uint64_t handle_ = 0;
};

// Something that `whole` has and `part` lacks; empty: nothing.
std::string missing_work(const Work& whole, const Work& part);

}  // namespace tilepilot::eval
