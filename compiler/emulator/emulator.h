// A GPU that runs on the host: the text that NVRTC would compile is compiled by the system compiler, with a prelude in
// front in which memory, barriers and warps are checked. What it finds wrong, and what the launch would cost, is a
// report with lines of the tile program. Blocks run one after another, and a block's threads take turns.
//
// Values are those of the CPU's prelude. Products of mma are exact; their sum with c, along ascending k, is made in
// double precision and rounded once (double: fused multiply-adds along ascending k; integers wrap).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/emulator/prelude/interface.h.in"
#include "compiler/emulator/report/report.h"
#include "compiler/runtime/library.h"

namespace tilepilot::emulator {

class StepLog;

struct Options {
  bool check_races = true;          // and copies that nobody waited for
  bool check_uninitialised = true;  // shared memory and buffers that are not `written`; registers always are
  bool count = true;                // memory traffic; instructions always are
  int64_t most_defects = 32;        // that are reported; a launch continues where it can
  // Of a launch that is neither cooperative nor in clusters: the only blocks that run; of one in clusters, the
  // clusters.
  int64_t first_block = 0, most_blocks = INT64_MAX;
  StepLog* steps = nullptr;  // gets what the warps do, of launches with few blocks; null: nobody does
};

struct EmulatedBuffer {
  void* data = nullptr;
  int64_t bytes = 0;
  std::string name;     // for messages
  bool written = true;  // false: nothing has a value yet
};

struct EmulatedLaunch {
  std::string function;
  std::array<int64_t, 3> grid{1, 1, 1}, threads{1, 1, 1};
  int64_t shared_bytes = 0;
  bool cooperative = false;                               // blocks wait for each other: all are there at once
  std::array<int64_t, 3> cluster{1, 1, 1};                // blocks; the grid is a multiple. Not with `cooperative`
  int64_t local_bytes = 0;                                // of each thread's own arrays
  std::vector<OperationCounter> operation_counters = {};  // by the numbers in the text; without them it must have none
};

using TensorMap = emulated::tensor_map_data;

// In the order of the kernel's parameters: buffers, then scalars (floating ones as the bits of a double), then maps.
struct EmulatedArguments {
  std::vector<EmulatedBuffer> buffers;
  std::vector<int64_t> scalars;
  std::vector<TensorMap> maps{};
};

// A compiled text. Its launches take turns.
class EmulatedCode;

// `functions`: the kernels in `source`. Errors: those of the toolchain.
Result<std::shared_ptr<EmulatedCode>> compile(const std::string& source, const std::vector<std::string>& functions,
                                              runtime::Toolchain& toolchain, DiagnosticList& warnings);
// What the toolchain needs to compile emulated code.
runtime::ToolchainOptions toolchain_options(runtime::ToolchainOptions options);

// Errors: a function that the code lacks, no memory for stacks. Defects are in the report.
Result<Report> run(EmulatedCode& code, const EmulatedLaunch& launch, const EmulatedArguments& arguments,
                   const Options& options = {});

}  // namespace tilepilot::emulator
