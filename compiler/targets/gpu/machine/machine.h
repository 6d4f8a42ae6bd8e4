// What the compiler knows of a GPU that it plans for: what a block can have, and how fast things are.
#pragma once

#include <cstdint>
#include <string>

namespace tilepilot::targets::gpu {

enum class Architecture { sm_80, sm_90a };

// A GPU. Rates are what kernels reach under load, which is less than data sheets say.
struct Machine {
  std::string name;
  std::string target;  // "sm_80"
  int compute_capability = 80;
  bool has_wgmma = false;
  bool has_tma = false;  // and hardware barriers that count its bytes
  bool has_stmatrix = false;
  bool has_clusters = false;
  bool adds_vectors = false;           // to neighbouring floating-point elements of global memory, each atomically
  bool reallocates_registers = false;  // from one warpgroup to another
  int64_t multiprocessors = 0;
  int64_t block_shared_bytes = 0;  // dynamic shared memory that one block can have (the table of kLocalLimit)
  int64_t shared_bytes = 0;        // that the blocks of a multiprocessor have together
  int64_t cache_bytes = 0;         // L2
  double clock = 0;                // cycles of a second
  double memory_rate = 0;          // bytes of a second
  double cache_rate = 0;           // from L2 to one multiprocessor, bytes of a cycle
  double half_rate = 0;            // tensor cores of one multiprocessor: operations of a cycle on 16-bit elements
  double float_rate = 0;           // its threads: operations of a cycle on float32, a multiply-add being two
  double latency = 0;              // cycles until a load from global memory is there
  double barrier_cycles = 0;       // of a step of a pipelined loop, beside its work
};

// An A100 for sm_80, an H200 for sm_90a.
const Machine& machine_of(Architecture architecture);

// Memory that one thread may have for itself, in bytes (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability").
constexpr int64_t kLocalLimit = 512 << 10;

// Registers of a thread for a split-precision wgmma, beside C: the accumulators of one instruction of n columns, and
// both parts of A for the steps along k that have accumulators of their own.
inline constexpr int64_t kStepsOfParts = 4;  // at most
constexpr int64_t registers_of_parts(int64_t n, int64_t steps) { return n / 2 + 8 * steps; }
// Whether they and the addresses fit beside `held` registers.
bool has_room_for_parts(int64_t held, int64_t parts, int64_t threads);

inline constexpr int64_t kRegistersOfBlock = 65536, kMostRegistersOfThread = 255, kMostThreadsOfBlock = 1024;
inline constexpr int64_t kRegisterUnit = 8;  // of a thread, in which they are dealt out
// Of each thread of a block that has so many, at most.
int64_t registers_of_thread(int64_t threads);
// Of a thread, beside what tiles need: addresses, loop variables; and beside the parts of a split-precision `mma`.
inline constexpr int64_t kOverheadRegisters = 40, kOverheadOfWarpParts = 48;
}  // namespace tilepilot::targets::gpu
