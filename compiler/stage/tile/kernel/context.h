// What the objects of the tile language share: the interpreter, the options of the host, and the program that is being
// traced, if any. One for each interpreter; every tile value refers to it.
#pragma once

#include <set>

#include "compiler/stage/tile/tile.h"

namespace tilepilot::stage {

class ProgramBuilder;
class Declarations;

struct TileContext {
  TileContext(Interpreter& interpreter_, TileOptions options_)
      : interpreter(interpreter_), options(std::move(options_)) {}

  Interpreter& interpreter;
  TileOptions options;
  ProgramBuilder* builder = nullptr;     // null: no program is being traced
  Declarations* declarations = nullptr;  // what that program's body declares: tensors, sizes, outputs
  // How deep in calls the traced function or macro runs; deeper ones are plain Python, whose `range` counts.
  size_t traced_depth = 0;
  // The function of a layout runs: its indices are no variables of the program, so names in it bind nothing there.
  bool maps_indices = false;
  // The nodes of the `with T.attr(node, ...)` around, innermost last.
  std::vector<Value> combiners;
  // Of the programs that are traced now: see ir::Kernel.
  bool fast_math = false;
  // Something that only makes sense in a tile program was called while none was traced: how a `@tilelang.jit` function
  // shows, when it is run as a factory, that it is a program itself.
  bool missed_program = false;

  // A program is traced: warns of accesses that leave their tiles, makes fragments larger that do not hold what is in
  // them, and tells whoever listens.
  ir::Program finished(ir::Program program);
  // Warns, once for each `request`, that it has no effect on this target.
  void announce_ignored(const std::string& request, Span span);

  // Makes a program the one being traced for the guard's lifetime.
  class TraceGuard {
   public:
    TraceGuard(TileContext& context, ProgramBuilder* builder, Declarations* declarations)
        : context_(context),
          builder_(context.builder),
          declarations_(context.declarations),
          depth_(context.traced_depth) {
      context_.traced_depth = context_.interpreter.frames().size() + 1;
      context_.builder = builder;
      context_.declarations = declarations;
    }
    ~TraceGuard() {
      context_.builder = builder_;
      context_.declarations = declarations_;
      context_.traced_depth = depth_;
    }
    TraceGuard(const TraceGuard&) = delete;

   private:
    TileContext& context_;
    ProgramBuilder* builder_;
    Declarations* declarations_;
    size_t depth_;
  };

 private:
  std::set<std::string> announced_;
};
using ContextRef = std::shared_ptr<TileContext>;

}  // namespace tilepilot::stage
