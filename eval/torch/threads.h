// The threads that kernels run on inside a process of LibTorch's: those of its operators, so that the process has one
// pool and a kernel finds the threads awake that the operator before it woke.
#pragma once

#include "compiler/runtime/kernel.h"

namespace tilepilot::eval {

// As many threads as at::get_num_threads() says at each call; they take pieces of the work until none is left. Built
// without OpenMP, it is a pool of our own beside LibTorch's.
runtime::ParallelFor libtorch_threads();

}  // namespace tilepilot::eval
