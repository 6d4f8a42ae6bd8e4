// Tile sizes from a small model of the hardware instead of from habit. A `BlockWork` says what one block of a kernel
// does; `estimate` says how long a grid of them takes: tensor cores, shared memory, the way from L2, what loops wait
// for, how many blocks a multiprocessor holds, and waves of blocks with their tail. `recommend` ranks the tiles of four
// kinds of kernels by it. Times are good enough to rank; which of the first few is the fastest only measuring tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

// A GEMM of tiles, [m, k] by [k, n].
struct TileGemm {
  int64_t m = 0, n = 0, k = 0;
  ir::DType type;  // of the operands
  bool a_in_registers = false;
  bool any_major = true;  // false: an operand is not K-major, which wgmma allows for 16-bit elements alone
  int64_t parts = 1;      // MMAs that it becomes where its operands are split
};
// Of float32 at full precision, of tfloat32 (`T.gemm(..., precision="fp32")`).
inline constexpr int64_t kPartsOfFloat32 = 3;

// What one block does: loads, then `steps` steps of a loop, then stores.
struct BlockWork {
  int64_t blocks = 1, threads = 128;
  double steps = 1;    // mean of the blocks
  double longest = 0;  // steps of the block that has most; 0: all have the same
  int64_t stages = 1;
  std::vector<TileGemm> products;  // of a step
  int64_t copied = 0;              // bytes from global memory in a step
  int64_t row_bytes = 128;         // the shortest row among these copies
  double functions = 0;            // exp and the like, in a step
  double operations = 0;           // other operations on elements, in a step
  int64_t loaded = 0, stored = 0;  // bytes before and after the loop
  int64_t shared_bytes = 0;
  int64_t registers = 0;    // of a thread
  double memory_bytes = 0;  // that all blocks together move through memory
};

struct Estimate {
  double seconds = 0;
  double cycles = 0;     // without the bound of memory, to tell equals apart
  int64_t resident = 0;  // blocks that a multiprocessor has at a time
  double waves = 0;      // of blocks over the whole device
  std::string bound;  // what the time goes to: "tensor cores", "shared memory", "L2", "memory", "arithmetic", "latency"
};

// Errors as text: why a block cannot run ("240 KB of shared memory, of 227").
struct Refusal {
  std::string reason;
};
std::variant<Estimate, Refusal> estimate(const BlockWork& work, const Machine& machine);

// Of a thread, for the operands of one instruction; none where it reads them from shared memory.
int64_t operand_registers(const TileGemm& product, int64_t threads, const Machine& machine);

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  ir::DType element = ir::kFloat16, output = ir::kFloat16;
  bool transpose_a = false, transpose_b = true;  // a is [k, m]; b is [n, k]
  bool may_split = false;                        // blocks may share a tile's sum over k
  bool full_precision = false;                   // of float32: by 3xTF32 instead of by the threads
};
struct AttentionProblem {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0, dim = 0;
  ir::DType element = ir::kFloat16;
  bool causal = false;
};
// Rows that each become a number, or a row again (softmax, norms).
struct ReductionProblem {
  int64_t rows = 0, columns = 0;
  ir::DType element = ir::kFloat16;
  bool writes_rows = true;
  int64_t inputs = 1;  // that are held at once
};
struct ElementwiseProblem {
  int64_t rows = 1, columns = 0;
  ir::DType element = ir::kFloat16;
  int64_t inputs = 1;
};

// Tile sizes in the words of the language. Of a reduction, block_m rows with block_n columns at a time.
struct Tiles {
  int64_t block_m = 1, block_n = 1, block_k = 0;  // 0: there is none
  int64_t stages = 1, threads = 128;
  int64_t panel = 0;  // of T.use_swizzle; 0: none
  int64_t split_k = 1;
  BlockWork work;
  Estimate estimate;
};

// The best first, at most `count`; equal problems give equal answers. Empty: nothing fits.
// @post each fits into the shared memory and the registers of `hardware`
std::vector<Tiles> recommend(const GemmProblem& problem, const Machine& machine, size_t count = 10);
std::vector<Tiles> recommend(const AttentionProblem& problem, const Machine& machine, size_t count = 10);
std::vector<Tiles> recommend(const ReductionProblem& problem, const Machine& machine, size_t count = 10);
std::vector<Tiles> recommend(const ElementwiseProblem& problem, const Machine& machine, size_t count = 10);

}  // namespace tilepilot::targets::gpu
