// The program being traced: its parameters, the open kernel, and the stack of open blocks that statements go to. Every
// statement is checked on its way in: it may use only variables and buffers that are alive where it stands.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/stmt.h"
#include "compiler/stage/tile/kernel/context.h"
#include "compiler/stage/tile/kernel/thread_return.h"
#include "compiler/stage/tile/operators/safe_values.h"

namespace tilepilot::stage {

class TileArguments;

enum class BlockKind {
  kernel,
  branch,
  serial_loop,    // break and continue may leave it
  ordered_loop,   // pipelined, unrolled
  parallel_loop,  // parallel, vectorized: no tile operators inside
};

class ProgramBuilder {
 public:
  ProgramBuilder(std::string name, Span span);

  // Parameters, in call order. Symbols that an extent or stride determines become symbols of the program.
  void add_parameter(ir::Buffer buffer);
  void add_parameter(ir::Var scalar);
  // Every symbol in the parameters' shapes must be bound by one of them.
  Status check_parameters() const;

  // A tensor by its address that the kernel opened next has from its beginning; its local integer keeps the address.
  struct AddressedTensor {
    ir::Buffer tensor, slot;
    ir::Expr address;
  };
  Status add_addressed(AddressedTensor tensor);

  bool in_kernel() const { return in_kernel_; }
  Status begin_kernel(ir::Kernel kernel);
  void end_kernel(Span span);

  template <class Node>
  Status emit(Node node, Span span) {
    return emit(ir::make_stmt(std::move(node), span));
  }
  Status emit(ir::Stmt stmt);
  // Runs `body` with a new innermost block in which `vars` are alive; gives the block. `cover` is its span.
  Result<ir::Stmt> nested(BlockKind kind, const std::vector<ir::Var>& vars, const std::function<Status()>& body,
                          Span cover);
  // The same in two halves, for `with` statements.
  void open(BlockKind kind, const std::vector<ir::Var>& vars);
  ir::Stmt close(Span cover);
  // Emits `let name = value` and gives the variable; with an empty name, the first assignment names it.
  Result<ir::Expr> let(std::string name, ir::Expr value, Span span);
  std::shared_ptr<ir::BufferData> allocate(ir::BufferData buffer);
  // Global memory of the program's own, for all its kernels.
  std::shared_ptr<ir::BufferData> add_workspace(ir::BufferData buffer);
  // In a parallel or vectorized loop: what stands here runs once an iteration, not once a thread.
  bool in_parallel_loop() const;
  // The index of a thread in its block along an axis: a variable of the open kernel, or 0 past its thread extents.
  ir::Expr thread_index(size_t axis, Span span);
  const ir::Kernel& kernel() const { return kernel_; }
  // The order of blocks that the kernel asks for.
  void set_order(const ir::BlockOrder& order) { kernel_.order = order; }
  // `T.thread_return()`: the thread that comes here does nothing more.
  Status return_thread(Span span);
  // See ir::Kernel.
  void allow_fast_math() { kernel_.fast_math = true; }
  // Where the kernel wants a tile's elements; the last request counts.
  void request_layout(ir::RequestedLayout request);
  // The operation of each buffer of the program made by `T.alloc_reducer`.
  std::unordered_map<const ir::BufferData*, ir::AtomicOp>& reducers() { return reducers_; }

  // What reads outside tensors give in the open kernel, where it is not 0.
  SafeValues& safe_values() { return safe_values_; }

  // Within operands that Python would only evaluate if it needs them: nothing may be emitted there.
  int lazy_operands = 0;

  // A variable whose name is chosen when the program first binds it.
  ir::Var make_var(std::string provisional_name, ir::DType type = ir::kInt32);
  void name_var(const ir::Var& var, std::string name);

  // What a let variable stands for, or null.
  ir::Expr definition(const ir::Var& var) const;

  // Remembers that an index was written as a negative number, which counts from the end of the axis.
  void note_negative(const ir::Expr& index, int64_t written);
  // What was written, if that was a negative number.
  std::optional<int64_t> negative_index(const ir::Expr& index) const;

  // Blocks by identity, for judging rebound names.
  int innermost_block() const { return blocks_.empty() ? 0 : blocks_.back().id; }
  bool is_open(int block) const;
  bool loop_inside(int block) const;     // a loop is open within that open block
  bool control_inside(int block) const;  // a loop or branch is
  // The innermost block ended with break or continue.
  bool unreachable() const { return !blocks_.empty() && blocks_.back().ended; }

  // `use` is where the expression is used.
  Status check(const ir::Expr& expr, Span use) const;
  ir::Program& program() { return program_; }

 private:
  struct Block {
    int id;
    BlockKind kind;
    std::vector<ir::Stmt> body;
    std::vector<const ir::VarData*> vars;
    bool ended = false;
  };
  Status check_buffer(const ir::Buffer& buffer, Span span) const;
  Status check_place(const ir::StmtNode& stmt) const;
  Status check_stmt(const ir::Stmt& stmt) const;
  void revive(const ir::Var& var) {
    alive_.insert(var.get());
    known_.insert(var.get());
  }

  ir::Program program_;
  std::unordered_map<const ir::BufferData*, ir::AtomicOp> reducers_;
  SafeValues safe_values_;
  ThreadReturn thread_return_;
  std::vector<AddressedTensor> addressed_;
  bool in_kernel_ = false;
  ir::Kernel kernel_;
  std::vector<Block> blocks_;
  int next_block_ = 1;
  std::unordered_set<const ir::VarData*> alive_, known_;  // known: were alive once
  std::unordered_set<const ir::BufferData*> buffers_;
  std::unordered_map<const ir::VarData*, std::pair<ir::Var, ir::Expr>> lets_;  // the var keeps its address unique
  std::unordered_map<const ir::VarData*, std::shared_ptr<ir::VarData>> unnamed_;
  std::unordered_map<ir::Expr, int64_t> negative_indices_;
};

// The builder if a kernel is open; `outside_kernel` naming `what` otherwise.
Result<ProgramBuilder*> require_kernel(TileContext& context, std::string_view what, Span span);
// The same for the function that was called with these arguments.
Result<ProgramBuilder*> require_kernel(const TileArguments& arguments);

}  // namespace tilepilot::stage
