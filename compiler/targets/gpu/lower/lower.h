// Lowering: from tile operators and parallel loops to what each thread of the block does. The result is IR without tile
// operators whose fragments are local buffers (registers of the thread) and whose shared tiles are flat; what IR cannot
// say (vectors of bytes, matrix instructions, asynchronous copies) is calls of the device prelude.
#pragma once

#include <functional>
#include <set>

#include "compiler/diagnostics/result.h"
#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/machine/tma_rules.h"
#include "compiler/targets/gpu/machine/wgmma_shape.h"
#include "compiler/targets/gpu/schedule/pipeline.h"
#include "compiler/targets/gpu/shared/outstanding_wgmma.h"

namespace tilepilot::targets::gpu {

// `thread`: the number of the thread in its block, the variable that the result's statements mention.
// `offsets`: of shared buffers that are no views, in bytes.
struct LoweredKernel {
  ir::Kernel kernel;
  ir::Var thread;
  std::unordered_map<const ir::BufferData*, int64_t> offsets;
  int64_t shared_bytes = 0;
  std::vector<Wgmma> wgmmas = {};                         // whose functions it calls
  std::vector<TensorBoxes> maps = {};                     // what its parameters beyond the program's describe
  std::vector<std::pair<ir::Var, int64_t>> extents = {};  // variables whose values are in [0, extent)
  bool persistent = false;                                // see Launch
  bool alone = false;                                     // one block on a multiprocessor, with all of its registers
  bool multiplies = false;                                // matrices, whose parts fill the registers of a thread
  std::vector<Diagnostic> warnings = {};
  std::vector<Decision> decisions = {};  // of planning and lowering
  bool shares_in_cluster = false;        // memory of other blocks, which must be there as long as this one
  // Tiles of the program, by name and place, that may be read before they are written.
  std::set<std::pair<std::string, uint32_t>> unwritten = {};
};

// What the parts of the lowering share.
struct Lowering {
  const ir::Kernel& kernel;
  const Inference& inference;
  ir::Var thread;
  int64_t threads;
  c::IntegerFacts facts;
  std::unordered_map<const ir::BufferData*, ir::Buffer>
      places;                                            // of fragments: registers; of shared tiles: flat memory
  ir::Sync sync;                                         // of the threads
  std::vector<ir::Buffer> allocations, scratch_buffers;  // of the result
  Error error;                                           // the first thing that cannot be lowered
  std::vector<Wgmma> wgmmas = {};                        // instructions that the result calls
  std::vector<TensorBoxes> maps = {};
  bool persistent = false;  // see PlannedKernel
  std::vector<Decision> decisions = {};
  bool async_proxy = false;  // see PlannedKernel
  OutstandingWgmma outstanding = {};

  using Stmts = std::vector<ir::Stmt>;
  void fail(Span span, std::string message, std::string hint = {});
  ir::Expr thread_number() const { return ir::var_ref(thread); }
  ir::Buffer local(const std::string& name, ir::DType type, int64_t elements);
  // Shared-memory scratch: barriers stand before its first use and after its last, so that all scratch is one piece of
  // memory.
  ir::Buffer scratch(const std::string& name, ir::DType type, int64_t elements);
  // A new variable of this value, which is in [0, extent); constants stay as they are.
  ir::Expr let(const std::string& name, const ir::Expr& value, int64_t extent, Span span, Stmts& out);
  // A variable of a loop, in [0, extent).
  ir::Var variable(const std::string& name, int64_t extent);
  // A variable for each mode of a layout of registers, and the digits that these are.
  Indices register_digits(const layout::Layout& registers, std::vector<ir::Var>& vars);
  // The digits of the thread's number as variables.
  Indices thread_digits(const layout::Layout& threads, Span span, Stmts& out);
  ir::Stmt by_first_thread(Stmts body, Span span) const;
  // The same, joined with what that thread does just before.
  void add_by_first_thread(Stmts body, Span span, Stmts& out) const;
  const layout::Fragment& fragment(const ir::Buffer& buffer) const;
  // The TMA descriptor of a tensor.
  ir::Var map_of(const ir::Buffer& tensor, const std::vector<int64_t>& box, layout::SwizzleSpan span);
  // An element, or the start of a region, of a shared tile as its address.
  ir::Region address(const ir::Buffer& tile, const std::vector<ir::Expr>& indices, Span span) const;
};

// Loads and stores of fragments and shared tiles as those of their places. Fragments: `registers` says which register,
// or null.
using RegisterOf = std::function<ir::Expr(const ir::Buffer& fragment, const std::vector<ir::Expr>& indices)>;
ir::Stmt in_places(const Lowering& lowering, const ir::Stmt& stmt, const RegisterOf& registers);
ir::Expr in_places(const Lowering& lowering, const ir::Expr& expr, const RegisterOf& registers);

// Keeps the compiler from moving what computes these registers, or uses them, across this place.
ir::Stmt pin_registers(const ir::Buffer& registers, Span span);

// Zeros in all accumulators of a GEMM.
ir::Stmt cleared(Lowering& lowering, const ir::Buffer& sums, Span span);

void lower_parallel(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
// A parallel loop whose extents are known at launch alone: iterations are dealt out one by one.
void lower_strided(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
// A loop of lanes of one thread; false if it is none that it knows.
bool lower_vectorized(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
void lower_async_copy(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
// From one fragment to another, by shuffles; see layout_conversions.h.
void lower_conversion(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
// Into a tile of another block of the cluster, by stores.
void lower_remote_copy(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
// The registers of a wgmma: accumulators, and A if that is in registers.
OutstandingWgmma::Registers registers_of_gemm(const Lowering& lowering, const ir::Gemm& gemm);
void lower_reduce(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);

// What a target lowers to instructions of its own.
struct TargetLowering {
  using Lower = void(Lowering& lowering, const ir::Stmt& stmt, Lowering::Stmts& out);
  Lower* gemm = nullptr;
  Lower *bulk_load = nullptr, *bulk_store = nullptr;
  Lower* async = nullptr;   // fences, and waits for copies and wgmma
  Lower* matrix = nullptr;  // loads of matrices and products by warps, in their places
};
// @pre no conflicts; barriers are placed
Result<LoweredKernel> lower(const PlannedKernel& planned, const TargetLowering& target);

}  // namespace tilepilot::targets::gpu
