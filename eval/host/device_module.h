// The module `_tilepilot_device`: the GPU behind `torch.cuda`, or the processor that stands in for one. Its Python side
// is modules/torch_cuda.py.
#pragma once

#include "compiler/stage/python/interpreter.h"
#include "eval/host/host_state.h"

namespace tilepilot::eval {

// `is_gpu`, `name`, `major`, `minor`, `multiprocessors`; of a GPU also `synchronize()`, `stream()`, the handle of the
// current one, `event()`, `record(event)`, `wait(event)`, `is_done(event)`, `elapsed(first, second)` in milliseconds.
void add_device_module(HostState& state, stage::Interpreter& interpreter);

}  // namespace tilepilot::eval
