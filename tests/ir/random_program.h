// Random valid programs that cover every kind of node that computes something, and every type: food for round trips,
// passes and backends. (Calls of foreign functions, prints, and what only passes make are left to other tests.) A
// program has one meaning: every allocation is written before use, indices of tiles stay inside, divisors are not 0,
// loops end, and neither the order of blocks nor that of threads and iterations shows. To that end a kernel of several
// blocks writes only to each block's part of global buffers; between two barriers a buffer of the block is either read
// by threads anywhere or written by each at its own element; many-handed updates are atomics that commute, on values
// whose sums are exact.
#pragma once

#include <map>
#include <random>
#include <unordered_set>
#include <utility>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir::testing {

struct RandomOptions {
  int statements = 5;    // at most, in a block
  int depth = 3;         // of statements and of expressions
  bool threads = false;  // some kernels have thread variables
  // Functions that machines only come close to, each in its own way (exp, pow), stand in what kernels write last alone,
  // to parameters called `kOutcome`, which nobody reads: all others can be compared to the last bit.
  bool approximate_last = false;
  // Iterations of parallel loops keep variables, and update elements that other iterations update.
  bool iterations = false;
  // Threads hold fragments that tile operators set (see `with_held_as_own`), views have several axes, and regions begin
  // before their buffers or where memory says.
  bool held = false;
};
inline constexpr const char* kOutcome = "outcome";

// The same program with what each thread holds in fragments as arrays of its own, and what tile operators do there as
// work of each thread.
Program with_held_as_own(const Program& program);

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed, RandomOptions options = {}) : random_(seed), options_(options) {}

  Program program();

 private:
  // Who evaluates an expression or runs a statement.
  enum class Who {
    block,      // the one thread of a kernel without thread variables, or an iteration of a parallel loop
    thread,     // each thread for itself
    agreement,  // threads that have to agree: of their own they may use nothing
  };
  // How threads have used a buffer of the block since they last met.
  enum class Use { none, read, own_element };

  std::mt19937 random_;
  RandomOptions options_;
  Who who_ = Who::block;

  // Variables in scope. What differs between threads is in `apart_` too.
  std::vector<Var> ints_, scalars_;
  std::unordered_set<const VarData*> apart_;
  std::vector<Var> parameters_;  // scalar ones that are no integers
  bool in_loop_ = false;         // break and continue are allowed

  // Global buffers: any, those with a part for each block of a grid, those that only atomics touch.
  std::vector<Buffer> globals_, parts_, totals_;
  std::vector<Buffer> outcomes_;  // with `approximate_last`
  Buffer seen_;                   // what threads hold in the end
  std::vector<Buffer> readable_;  // globals that the kernel at hand does not write
  std::vector<Buffer> writable_;  // those that its blocks may write, and read where they do

  // Of the kernel at hand.
  std::vector<int64_t> threads_;
  std::vector<Var> block_vars_, thread_vars_;
  std::vector<Buffer> tiles_;     // of the block
  std::vector<Buffer> lanes_;     // of those the ones with an element for each thread
  std::vector<Buffer> own_;       // of each thread
  std::vector<Buffer> bins_;      // shared, touched by atomics only
  std::vector<Buffer> operands_;  // of gemms, reductions, whiles
  std::vector<Buffer> views_;
  std::vector<Buffer> held_;                       // with `held`: of each thread, set by tile operators
  std::map<const BufferData*, Use> uses_;          // views count as what they view
  std::map<const BufferData*, AtomicOp> updates_;  // how the kernel updates a total or a bin
  // Inside a parallel loop: its variables, and the buffers it writes (at exactly these indices).
  std::vector<Expr> element_;
  std::vector<Buffer> written_;
  std::vector<Buffer> variables_;  // of the iteration, all of whose elements have values
  // What iterations of parallel loops update together, each buffer in one way, and nothing else touches.
  std::vector<Buffer> joint_;
  std::map<const BufferData*, BinaryOp> joint_ops_;
  Buffer joint_part_;  // global, a part for each block
  Buffer where_;       // with `held`: global, indices that no kernel writes

  int pick(int count) { return int(random_() % unsigned(count)); }
  bool one_in(int count) { return pick(count) == 0; }
  template <class T>
  const T& any(const std::vector<T>& items) {
    return items[size_t(pick(int(items.size())))];
  }
  // Runs `make` as someone else.
  template <class F>
  auto as_who(Who who, F make) {
    const Who outer = std::exchange(who_, who);
    auto result = make();
    who_ = outer;
    return result;
  }
  bool has_threads() const { return !thread_vars_.empty(); }

  DType dtype();
  DType number_type();
  Span span();
  Buffer buffer(std::string name, DType type, Scope scope, std::vector<Expr> shape);
  Buffer tile(std::string name, std::vector<int64_t> shape);
  Scope tile_scope() { return Scope(1 + pick(has_threads() ? 2 : 3)); }

  // Expressions: random_expressions.cpp
  Expr expr(DType type, int depth);
  Expr int_expr(DType type, int depth);
  Expr float_expr(DType type, int depth);
  Expr approximate_expr(DType type, int depth);
  Expr bool_expr(int depth);
  Expr reinterpreted(DType type, int depth);
  Expr small_number(DType type);  // sums of these are exact
  Expr ordered_number(DType type);
  Expr leaf(DType type);
  Expr converted(Expr value, DType type);
  Expr load_of(const Buffer& buffer, int depth);
  Expr index(int64_t limit, int depth);  // in [0, limit)
  std::vector<Expr> indices(const Buffer& buffer, int depth);
  std::vector<Expr> part_start(const Buffer& buffer);
  std::vector<Expr> own_element(const Buffer& buffer);
  std::optional<Buffer> loadable();
  bool may_load(const Buffer& buffer);
  bool is_written(const Buffer& buffer) const;
  bool is_part(const Buffer& buffer) const;

  // Statements of blocks: random_statements.cpp
  Stmt block(int depth);
  Stmt statement(int depth);
  Stmt loop(int depth);
  Stmt parallel(int depth);
  Stmt variables(int depth);
  Stmt store_variable(int depth);
  Stmt joint_update();
  Stmt joint_store(const Buffer& target, const std::vector<Expr>& at);
  Stmt counted_while(int depth);
  Stmt branch(int depth);
  Stmt store(int depth);
  Stmt let(int depth);
  Stmt copy();
  Stmt fill();
  Stmt atomic(const Buffer& target, std::vector<Expr> at);
  Stmt update();  // of a total or bin, from anywhere
  Stmt chain();   // element-wise statements over one box, as fusion likes them
  Stmt overlapped_loop(const std::vector<Buffer>& tiles, const std::vector<int64_t>& extent);
  Region region(const Buffer& buffer, const std::vector<int64_t>& extent);
  std::optional<Region> region_with(const Buffer& buffer, const std::vector<int64_t>& wanted);

  // Tile operators with operands of their own: random_operators.cpp
  Stmt tile_operator();
  Stmt gemm();
  Stmt reduce();
  Stmt scan();
  Buffer operand(const char* name, DType type, Scope scope, const std::vector<int64_t>& shape);
  Region whole(const Buffer& buffer);
  template <class F>
  Stmt filled(const Buffer& buffer, F value);

  // Statements of threads: random_threads.cpp
  Stmt thread_statement(int depth);
  Stmt own_statement(int depth);
  Stmt own_block(int depth);
  Stmt own_store(int depth);
  Stmt own_loop(int depth);
  Stmt own_while(int depth);
  Stmt own_branch(int depth);
  Stmt own_copy();
  Stmt own_atomic();
  Stmt all_reduce();  // of the block, or of warps
  Stmt collective(int depth);
  Stmt collective_loop(int depth);
  Stmt collective_while(int depth);
  Stmt collective_branch(int depth);
  Stmt collective_block(int depth);
  Stmt sync();

  // Fragments of threads' own, views of several axes, starts of regions: random_held.cpp
  void add_held();
  Stmt held_operator();
  Stmt held_loop(const Buffer& to);
  Expr start(int64_t size);
  std::vector<Expr> shape_of(int64_t count);

  // What is handed over without the block's barrier: random_exchanges.cpp
  Stmt exchange();
  Stmt shuffle();
  Stmt asynchronous_copy();
  Stmt check();
  Stmt ring();

  // Kernels and programs: random_program.cpp
  Kernel kernel();
  Kernel first_kernel(const Program& program);
  void choose_grid(Kernel& kernel);
  void choose_buffers(const Kernel& kernel);
  void add_views();
  Buffer view_of(const Buffer& base);
  std::vector<Buffer> allocations() const;
  Stmt initial(const Buffer& buffer);
  Stmt outcome(const Buffer& buffer);
  void show_own(std::vector<Stmt>& body) const;
  void make_globals(Program& program);
};

// Whether every value of one type becomes one of the other.
inline bool converts(DType from, DType to) { return !from.is_float() || !to.is_int(); }

// The buffer whose storage a view names.
inline const BufferData* root(const Buffer& buffer) { return buffer->base ? buffer->base.get() : buffer.get(); }

}  // namespace tilepilot::ir::testing
