// Tile IR statements and programs. One `Kernel` is one launch (`with T.Kernel(...)`): a grid of blocks, each run by
// `threads` threads, over tile operators and loops. A `Program` (`T.prim_func`) is a parameter list and its launches in
// order.
//
// Meaning of tile operators: each acts on whole tiles, all threads of the block together; the next statement sees its
// effect. Global regions may reach outside their buffer: such elements read as 0 and are dropped when written.
//
// Where a kernel has thread variables or roles (SIMT), each thread runs the statements that are neither tile operators
// nor parallel loops for itself, with a copy of its own of every local buffer. Threads synchronise at tile operators,
// parallel loops, `Sync` and reductions; between two such places they run in any order. Those take part that come
// there: all threads of the block, but for conditions on the thread index alone and roles around the place. Passes
// after `thread_regions` see no such kernel.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"

namespace tilepilot::ir {

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

// A box of a buffer: per axis a start and a constant extent. As many axes as the buffer.
struct Region {
  Buffer buffer;
  std::vector<Expr> start;
  std::vector<int64_t> extent;
  Span span;
};

enum class LoopKind : uint8_t {
  serial,
  parallel,   // iterations independent; all threads share them
  pipelined,  // serial, its copies may run `num_stages` ahead
  unrolled,
  vectorized,
};

// Runs `body` for every point of the box `extents`, last variable fastest; variable k runs over [0, extents[k]).
// Only `parallel` has more than one variable.
struct For {
  LoopKind kind = LoopKind::serial;
  std::vector<Var> vars;
  std::vector<Expr> extents;
  int num_stages = 0;  // pipelined only
  Stmt body;
};
struct While {
  Expr condition;
  Stmt body;
};
struct If {
  Expr condition;
  Stmt then;
  Stmt otherwise;
};  // otherwise may be null
struct Let {
  Var var;
  Expr value;
};  // visible in the following statements of its block
struct Store {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
};  // value has the buffer's type
struct Break {};
struct Continue {};
struct Block {
  std::vector<Stmt> body;
};
// cluster_wait: until all threads of the cluster have come to `arrive_cluster`, of which it is the other half.
enum class SyncScope : uint8_t { block, grid, warp, cluster, cluster_wait };
// Threads wait for each other; all of them must reach it: those of the block, of the grid, of the warp, of the cluster,
// or any `threads` threads of the block that use the hardware barrier `barrier`.
struct Sync {
  SyncScope scope = SyncScope::block;
  int64_t barrier = 0, threads = 0;  // 0 threads: all
};

struct CopyOptions {
  bool disable_tma = false;
  int coalesced_width = 0;  // 0: the compiler chooses
  friend bool operator==(const CopyOptions&, const CopyOptions&) = default;
};
enum class CopyMode : uint8_t {
  complete,    // done when the statement is
  group,       // done when the group that is committed next is waited for (cp.async)
  bulk_load,   // its bytes belong to the phase of `barrier`, which waits for them
  bulk_store,  // done when the group of stores that is committed next is waited for
};
// destination[box] = cast(source[box]). After dropping axes of extent 1 both boxes have the same extents, in order.
struct Copy {
  Region source, destination;
  CopyOptions options;
  CopyMode mode = CopyMode::complete;
  std::optional<Region> barrier = std::nullopt;  // of a bulk load: one barrier
  // Into the same place of each block of the cluster whose bit is set, as the first of them says, who asks for it;
  // other blocks copy for themselves. 0: all do. Bulk loads count at the barrier of the block that they come to.
  int64_t multicast = 0;
  bool in_line = false;  // of a bulk copy: consecutive bytes on both sides, none of them outside
  // From a tile into the same place of that block of the cluster, by the blocks that come here. A bulk load counts at
  // that block's barrier. Null: within the block.
  Expr peer = nullptr;
};
struct Fill {
  Region destination;
  Expr value;
};  // value has the destination's type
enum class WarpPolicy : uint8_t { square, full_row, full_col };
// What a product of float32 operands may cost in accuracy, where there are tensor cores; others compute as written.
// tf32: operands count with the significand of tfloat32. fp32: no worse than float32's own sums, but that digits of
// operands below 2^-136 may not count, and operands within 2^116 of 2^128 may be infinite.
enum class Precision : uint8_t { ieee, tf32, fp32 };
// c (+)= op(a) · op(b). Matrices are the last two axes; leading extents are 1. a is [M,K] ([K,M] if transposed), b is
// [K,N] ([N,K]), c is [M,N].
struct Gemm {
  Region a, b, c;
  bool transpose_a = false, transpose_b = false, clear_accumulator = false;
  WarpPolicy policy = WarpPolicy::square;
  bool asynchronous = false;  // done when `wait_gemm` says so
  Precision precision = Precision::ieee;
};
enum class ReduceOp : uint8_t { sum, max, min, abs_sum, abs_max, bit_and, bit_or, bit_xor };
// destination (+)= reduce of source over `axis`. Destination: the source's shape without `axis`, or with extent 1
// there. clear = false combines the fresh result with the old content. max, min and abs_max pass over NaN, or with
// `nan_propagate` give NaN if an operand is NaN.
struct Reduce {
  ReduceOp op;
  Region source, destination;
  int axis;
  bool clear;
  bool nan_propagate = false;
};
enum class ScanOp : uint8_t { sum, max };
// destination[.., k, ..] = the elements of source at 0..k along `axis` combined; `reverse`: those at k and after. Both
// have the same extents and may be the same region.
struct Scan {
  ScanOp op;
  Region source, destination;
  int axis;
  bool reverse;
};

enum class AtomicOp : uint8_t { load, store, add, min, max, bit_or };
enum class MemoryOrder : uint8_t { relaxed, acquire, release, acq_rel, seq_cst };
// Reads and changes one element as a whole, whoever else does so at the same time. Each thread, or iteration of a
// parallel loop, that comes here does it once.
struct Atomic {
  AtomicOp op;
  Region element;  // extents 1
  Expr value;      // of the element's type; null for `load`
  MemoryOrder order = MemoryOrder::relaxed;
  Var previous;  // the value before, visible in the following statements of its block; may be null
};

// Gives each thread, in its element `result`, the values combined of all threads that differ from it at most along
// `axes` of the block (0: threadIdx.x), or with `lanes` of its warp. Those for which `condition` is false give
// `identity`. All threads of the block must reach it, or of the warp.
struct AllReduce {
  BinaryOp op;  // add, mul, min, max, bit_and, bit_or, bit_xor
  Expr value, condition, identity;
  Region result;  // extents 1
  std::vector<int> axes;
  int64_t lanes = 0;  // of a warp: consecutive threads, threadIdx.x fastest; else 0
};

enum class ShuffleOp : uint8_t { from, by_xor, up, down };
// Gives each thread the value of another one of its warp. Warps of 32 threads fall into segments of `width` lanes: the
// other one is lane `lane` of the own segment, counted modulo its width, or the own lane changed by the last five bits
// of `lane`. Past the end of the segment (for `up`: before its start), or where no thread is, it is the thread's own
// value. All threads of the warp must reach it.
struct Shuffle {
  ShuffleOp op;
  Expr value, lane;
  int64_t width = 32;
  Var result;  // visible in the following statements of its block
};

// `count` matrices for the 32 threads of a warp, of 8 rows of 16 bytes each (PTX ISA 9.7.15.5.15, "ldmatrix"). The
// thread of lane l names row l % 8 of matrix l / 8; lanes from 8 * count on may name anything. Of matrix j it gets in
// turn the four bytes (l % 4) of row l / 4; `transposed`, of elements of 16 bits: element l / 4 of the rows 2 (l % 4)
// and 2 (l % 4) + 1. All threads of the warp must reach it.
struct LoadMatrix {
  int64_t count = 4;  // 1, 2 or 4
  bool transposed = false;
  Region row;        // 16 bytes of shared memory that start at a multiple of 16 bytes
  Region registers;  // of the thread: four bytes for each matrix
};
// c += a · b of the 32 threads of a warp, with c 16 x 8, a 16 x k and b k x 8 (PTX ISA 9.7.15.5, "mma.sync", "matrix
// fragments"): each thread names its own elements, as many of a as k / 2, k / 4 of b and 4 of c, in PTX's order
// (matrix_operands.h). A row of a has 16 or 32 bytes. All threads of the warp must reach it.
struct Mma {
  Region a, b, c;
};

enum class BarrierOp : uint8_t {
  arrive,
  wait,           // until the phase of parity `operand` has completed
  expect,         // `operand` more bytes belong to the phase
  arrive_expect,  // both
  arrive_copied,  // arrives when the thread's copies of mode `group` so far are done
};
// On one hardware barrier, by each thread that comes here.
struct Barrier {
  BarrierOp op;
  Region barrier;       // extents 1
  Expr operand;         // an integer; null for `arrive` and `arrive_copied`
  int64_t threads = 0;  // this many in one go; 0: who comes here
  Expr peer = nullptr;  // of `arrive`: at the barrier of that block of the cluster; null: of the own
  // Of an arrival at a peer's: who waits there need not see what was written here, only know that all has been read.
  // On an H200 what makes writes seen in a cluster takes as long as half a step of a GEMM of 128 x 128 x 64.
  bool after_reads = false;
};
enum class AsyncOp : uint8_t {
  commit_copies,  // closes a group of copies of mode `group`
  wait_copies,    // until at most `count` groups are under way
  commit_stores,  // likewise for bulk stores
  wait_stores,
  wait_gemms,  // until at most `count` asynchronous gemms are under way
  fence,       // what this thread wrote is seen by asynchronous copies and gemms after it
  // `count` registers for each thread of the warpgroups that come here; more once others have given some up.
  raise_registers,
  lower_registers,
  // All threads of the cluster come to the barrier at which `cluster_wait` waits for them: who has waited sees what
  // they did before it, with `relaxed` nothing of it.
  arrive_cluster,
  arrive_cluster_relaxed,
};
struct Async {
  AsyncOp op;
  int64_t count = 0;
};
// `body` is for the threads of these warpgroups alone: group g has threads 128 g to 128 g + 127 of the block, counted
// with threadIdx.x fastest. Tile operators inside are theirs.
struct Roles {
  std::vector<int> groups;
  Stmt body;
};
// Bodies that run side by side, each for `threads` threads of the block together; they synchronise at barriers alone.
// What `thread_regions` makes of a kernel in which threads wait for each other; nothing else stands in its body.
struct Concurrent {
  struct Role {
    int64_t threads;
    Stmt body;
  };
  std::vector<Role> roles;
};
// Where `condition` is false the launch fails with the message; what follows in the block may not run.
struct Check {
  Expr condition;
  std::string message;
  // The program's word that it holds: targets need not look, and may build upon it (passes/algebra/assumptions.h).
  bool assumed = false;
};
// A line of text for the user: `message`, and a value that may be an element of a buffer.
struct Print {
  std::string message;
  std::string buffer;        // empty: none
  Expr index;                // of the element, all axes in one; null if there is no buffer
  Expr value;                // null: the message alone
  std::vector<Expr> thread;  // who prints; of an axis that is missing: 0
};
// A function of foreign device source. Regions are passed as the address of their first element.
struct ExternCall {
  std::string function;
  std::vector<std::variant<Expr, Region>> arguments;
  Var result;  // visible as a let's; null if it gives nothing
};

struct StmtNode {
  using Node =
      std::variant<For, While, If, Let, Store, Break, Continue, Block, Sync, Copy, Fill, Gemm, Reduce, Scan, Atomic,
                   AllReduce, Shuffle, LoadMatrix, Mma, Barrier, Async, Roles, Concurrent, Check, Print, ExternCall>;
  Node node;
  Span span;
};

template <class T>
Stmt make_stmt(T node, Span span) {
  return std::make_shared<StmtNode>(StmtNode{std::move(node), span});
}

// The order of blocks that a program asks for: panels of `panel` rows (axis 1 of the grid), each walked along axis 0;
// of columns, the other way round. Targets on which it changes nothing say so.
struct BlockOrder {
  int64_t panel = 0;  // 0: nothing is asked for
  bool of_columns = false;
  Span span = {};
  friend bool operator==(const BlockOrder& a, const BlockOrder& b) {
    return a.panel == b.panel && a.of_columns == b.of_columns;
  }
};

// Where a program wants the elements of one of its tiles: of a shared tile, in memory; of a fragment, in the threads.
// Targets that place them otherwise say so. Requests for buffers that are no allocations any more mean nothing.
struct RequestedLayout {
  Buffer buffer;
  // One an axis of the tile, the last of the buffer: such tiles lie one after the other. Then, if `replicas` threads
  // hold each element of a fragment, which of them.
  std::vector<Var> vars;
  int64_t replicas = 1;
  Expr thread = nullptr;    // of a fragment: who holds the element; else null
  Expr position = nullptr;  // of a shared tile: in elements from its start; of a fragment: the register, null: any
  Span span = {};

  size_t rank() const { return vars.size() - (replicas > 1 ? 1 : 0); }
};

struct Kernel {
  std::vector<Var> block_vars;           // 1 to 3, blockIdx.x first
  std::vector<Expr> grid;                // as many extents; may use scalar and symbolic parameters
  std::vector<int64_t> threads = {128};  // 1 to 3 extents
  std::vector<int64_t> cluster = {};  // of blocks that run together, one extent an axis of the grid; none: each alone
  BlockOrder order = {};
  // Functions and divisions of float32 may be as inexact as the machine's own instructions (CUDA's -use_fast_math).
  bool fast_math = false;
  std::vector<Var> thread_vars;               // threadIdx.x first; as many as `threads`, or none
  std::vector<Buffer> allocations;            // every buffer of the body that is no parameter or workspace
  std::vector<RequestedLayout> layouts = {};  // of allocations, at most one each
  // What holds wherever the variables of a condition are bound, if the program is right. Not part of the text form.
  std::vector<Expr> assumptions = {};
  Stmt body;  // a Block
  Span span;
};

struct Program {
  std::string name;
  std::vector<std::variant<Buffer, Var>> parameters;  // global buffers and scalars, in call order
  std::vector<Var> symbols;          // symbolic extents, bound from the shapes of the buffers that mention them
  std::vector<Buffer> workspaces;    // global, fresh and uninitialised at each call, shared by the launches
  std::vector<std::string> sources;  // foreign device source, in order
  std::vector<Kernel> kernels;       // launched in order
  Span span;
};

}  // namespace tilepilot::ir
