// Stands between the tile language and a backend, and tells a recorder which kernel runs when, what it is and what it
// takes. Without a recorder at work a launch is as it was.
#pragma once

#include <memory>

#include "compiler/runtime/kernel.h"
#include "compiler/runtime/target.h"
#include "eval/worker/profile/part_recorder.h"

namespace tilepilot::eval {

// Who records now; null: nobody. Set by those who watch calls.
struct Profiled {
  PartRecorder* recorder = nullptr;
  runtime::Target target;              // of the backend, none of `auto`
  const SourceMap* sources = nullptr;  // that programs' spans point into
  int threads = 1;                     // that share a processor's blocks
};

// `profiled` must outlive the result and the kernels it makes.
std::unique_ptr<runtime::KernelBackend> observe(std::unique_ptr<runtime::KernelBackend> backend,
                                                const Profiled& profiled);

}  // namespace tilepilot::eval
