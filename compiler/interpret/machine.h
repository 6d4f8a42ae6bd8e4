// The reference interpreter of the tile IR: slow, obvious, exact about threads, scopes and types. What passes and
// targets do is right if it agrees with this.
#pragma once

#include <variant>

#include "compiler/interpret/memory.h"
#include "compiler/interpret/session.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::interpret {

// A tensor of the caller; strides in elements.
struct View {
  void* data = nullptr;
  ir::DType type;
  Indices shape, strides;
};
using Argument = std::variant<View, int64_t, double>;

// Runs a valid program, at any point of the pipeline, on arguments in the order of its parameters. After a fault what
// the tensors hold means nothing.
std::optional<Fault> run(const ir::Program& program, const std::vector<Argument>& arguments,
                         const Options& options = {});

// The same, and once more in a random order of blocks, threads and iterations: a `race` if that gives other results.
std::optional<Fault> run_twice(const ir::Program& program, const std::vector<Argument>& arguments,
                               const Options& options = {});

}  // namespace tilepilot::interpret
