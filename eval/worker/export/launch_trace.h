// What a program launches, without running it: kernels whose launches are written down, with the memory that they were
// given. What they would write are zeros.
#pragma once

#include <memory>
#include <vector>

#include "compiler/runtime/kernel.h"
#include "compiler/stage/tile/tile.h"

namespace tilepilot::eval {

struct TracedLaunch {
  std::shared_ptr<const ir::Program> program;
  std::vector<runtime::Argument> arguments;
  std::vector<int64_t> symbols;  // in the program's order
  Span call;
};

// What is written down while `is_on`. The tensors of launches live as long as the trace, so that no two of them have
// the same memory.
struct LaunchTrace {
  bool is_on = false;
  std::vector<TracedLaunch> launches;
  std::vector<stage::Value> kept;
};

// Both refer to the trace, which must outlive them.
std::unique_ptr<runtime::KernelBackend> tracing_backend(LaunchTrace& trace);
std::unique_ptr<stage::TensorHost> keeping_host(stage::TensorHost& host, LaunchTrace& trace);

}  // namespace tilepilot::eval
