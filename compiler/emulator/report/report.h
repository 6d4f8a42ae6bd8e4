// What an emulated launch reports: defects, each with the lines of the tile program, and what the launch cost.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/targets/c/operations.h"

namespace tilepilot::emulator {

enum class DefectKind : uint8_t {
  data_race,
  pending_copy,   // an asynchronous copy is used or overwritten before its thread has waited for it
  missing_fence,  // an asynchronous access of what a thread wrote, without a fence for it
  uninitialised_read,
  out_of_bounds,
  misaligned,
  deadlock,
  divergence,      // lanes of a warp at different places, where all of them have to be at one
  barrier_misuse,  // threads that have ended or disagree at a barrier
  failed_check,    // of the program itself
  unsupported,
};
std::string_view name_of(DefectKind kind);

// A place in the tile program; line 0: none is known.
struct SourceLine {
  std::string file;
  int64_t line = 0;
  auto operator<=>(const SourceLine&) const = default;
};
// "matmul.py:12"
std::string spelled(const SourceLine& line);

struct Defect {
  DefectKind kind;
  std::string message;
  SourceLine first, second;                     // of the earlier and the later part; the same line if there is only one
  int64_t first_thread = 0, second_thread = 0;  // in their block, threadIdx.x fastest
  std::array<int64_t, 3> block{};
  int64_t count = 1;   // of the same kind at the same lines
  int64_t number = 0;  // of a failed check
};

// Accesses of warps, and what memory has to do for them.
struct Traffic {
  int64_t instructions = 0, bytes = 0;
  int64_t shared_wavefronts = 0, bank_conflicts = 0;  // the latter are part of the former
  int64_t global_sectors = 0, least_sectors = 0;      // of 32 bytes; the latter if each byte were moved once, together
  Traffic& operator+=(const Traffic& other);
};

// What a thread computes whenever it executes a call `emulated::count_operations`, for which lines.
using OperationCounter = std::vector<std::pair<SourceLine, targets::c::Operations>>;

struct Counters {
  Traffic shared_reads, shared_writes, global_reads, global_writes;  // asynchronous copies and ldmatrix are in there
  int64_t mma = 0, ldmatrix = 0, stmatrix = 0, async_copies = 0, atomics = 0, shuffles = 0, votes = 0;  // of warps
  int64_t wgmma = 0, bulk_copies = 0;                        // of warps, of boxes
  int64_t warp_syncs = 0, block_syncs = 0;                   // of warps, of blocks; named barriers are among the latter
  std::map<SourceLine, Traffic> shared_lines, global_lines;  // by line: the same as above, reads and writes together
  // Arithmetic of launches with operation counters (see targets/c/operation_count.h for what counts), of blocks that
  // have ended. A warp's are the most that one of its lanes does of each statement: what the warp issues if lanes that
  // go the same way go together, and never more than that.
  targets::c::Operations thread_operations, warp_operations;
  std::map<SourceLine, targets::c::Operations> operation_lines;  // of threads
  Counters& operator+=(const Counters& other);
};

struct Report {
  std::vector<Defect> defects;  // in the order in which they were found; of each kind and pair of lines the first
  Counters counters;
  std::string printed;
  int64_t left_out = 0;  // defects beyond the limit
};

// What launches of a program cost, added up.
struct Cost {
  std::string program;
  int64_t number = 1;  // among different programs of this name, in the order of first launches
  int64_t launches = 0;
  Counters counters;
};

class CostBook {
 public:
  // `identity`: the same for launches of the same program alone; its name may be others', too.
  void add(const std::string& program, const std::string& identity, const Counters& counters);
  const std::vector<Cost>& costs() const { return costs_; }  // in the order of first launches

 private:
  std::vector<Cost> costs_;
  std::map<std::pair<std::string, std::string>, size_t> places_;
};

// Instructions and operations by class, what moved, and the lines where shared memory takes turns, sectors are wasted
// or most is computed, dearest first.
std::string to_text(const Cost& cost);

}  // namespace tilepilot::emulator
