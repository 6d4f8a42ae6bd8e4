// What the objects of the tile language share: the interpreter, the options of the host, and the program that is being
// traced, if any. One for each interpreter; every tile value refers to it.
#pragma once

#include <unordered_map>

#include "compiler/stage/tile/tile.h"

namespace tilepilot::stage {

class ProgramBuilder;
struct EagerTrace;

struct TileContext {
  TileContext(Interpreter& interpreter_, TileOptions options_)
      : interpreter(interpreter_), options(std::move(options_)) {}

  Interpreter& interpreter;
  TileOptions options;
  ProgramBuilder* builder = nullptr;  // null: no program is being traced
  EagerTrace* eager = nullptr;        // null: that program is not an eager function's
  // How deep in calls the traced function or macro runs; deeper ones are plain Python, whose `range` counts.
  size_t traced_depth = 0;
  // The nodes of the `with T.attr(node, ...)` around, innermost last.
  std::vector<Value> combiners;
  // The operation of each buffer made by `T.alloc_reducer`.
  std::unordered_map<ir::Buffer, ir::AtomicOp> reducers;

  // Makes a program the one being traced for the guard's lifetime.
  class TraceGuard {
   public:
    TraceGuard(TileContext& context, ProgramBuilder* builder, EagerTrace* eager)
        : context_(context), builder_(context.builder), eager_(context.eager), depth_(context.traced_depth) {
      context_.traced_depth = context_.interpreter.frames().size() + 1;
      context_.builder = builder;
      context_.eager = eager;
    }
    ~TraceGuard() {
      context_.builder = builder_;
      context_.eager = eager_;
      context_.traced_depth = depth_;
    }
    TraceGuard(const TraceGuard&) = delete;

   private:
    TileContext& context_;
    ProgramBuilder* builder_;
    EagerTrace* eager_;
    size_t depth_;
  };
};
using ContextRef = std::shared_ptr<TileContext>;

}  // namespace tilepilot::stage
