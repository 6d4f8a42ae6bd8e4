// Random valid programs that cover every kind of node: food for round trips, passes and backends. Every allocation is
// filled before use, indices of tiles stay inside, divisors are not 0, loops end, iterations of parallel loops are
// independent: a program has one meaning.
#pragma once

#include <random>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir::testing {

struct RandomOptions {
  int statements = 5;    // at most, in a block
  int depth = 3;         // of statements and of expressions
  bool threads = false;  // kernels have thread variables, and threads reduce their values
};

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed, RandomOptions options = {}) : random_(seed), options_(options) {}

  Program program();

 private:
  std::mt19937 random_;
  RandomOptions options_;
  std::vector<Var> ints_;                    // integer variables in scope
  std::vector<Var> scalars_;                 // other variables in scope
  std::vector<Buffer> globals_;              // all parameters
  std::vector<Buffer> tiles_;                // of the kernel at hand
  std::vector<Buffer> counters_, operands_;  // its other allocations: of while loops, of gemms and reductions
  std::vector<Var> parameters_;              // scalar ones that are no integers
  bool in_loop_ = false;                     // break and continue are allowed
  // Inside a parallel loop: its variables, and the buffers it writes (at exactly these indices).
  std::vector<Expr> element_;
  std::vector<Buffer> written_;

  int pick(int count) { return int(random_() % unsigned(count)); }
  bool one_in(int count) { return pick(count) == 0; }
  template <class T>
  const T& any(const std::vector<T>& items) {
    return items[size_t(pick(int(items.size())))];
  }

  DType dtype();
  Span span();
  Buffer buffer(std::string name, DType type, Scope scope, std::vector<Expr> shape);
  Buffer tile(std::string name, std::vector<int64_t> shape);
  const Buffer& any_buffer() { return one_in(3) ? any(globals_) : any(tiles_); }

  Expr expr(DType type, int depth);
  Expr int_expr(DType type, int depth);
  Expr float_expr(DType type, int depth);
  Expr bool_expr(int depth);
  Expr leaf(DType type);
  Expr converted(Expr value, DType type);
  Expr load_of(const Buffer& buffer, int depth);
  Expr index(int64_t limit, int depth);  // in [0, limit)
  std::vector<Expr> indices(const Buffer& buffer, int depth);
  bool is_written(const Buffer& buffer) const;

  Kernel kernel();
  Stmt block(int depth);
  Stmt statement(int depth);
  Stmt loop(int depth);
  Stmt parallel(int depth);
  Stmt counted_while(int depth);
  Stmt branch(int depth);
  Stmt store(int depth);
  Stmt let(int depth);
  Stmt copy();
  Stmt gemm();
  Stmt reduce();
  Stmt scan();
  Stmt atomic(const Buffer& target);
  Stmt all_reduce();
  Stmt chain();  // element-wise statements over one box, as fusion likes them
  Stmt chain_loop(const std::vector<Buffer>& tiles, const std::vector<int64_t>& extent);
  Region region(const Buffer& buffer, const std::vector<int64_t>& extent);
  std::optional<Region> region_with(const Buffer& buffer, const std::vector<int64_t>& wanted);
};

}  // namespace tilepilot::ir::testing
