// Tile IR to readable CUDA C++ for NVRTC: one `__global__` function a launch. Tile operators become what each thread
// does with its registers; instructions that C++ cannot say are calls of the device prelude.
//
// Parameters of a function, 8 bytes each: a pointer for each global buffer parameter, one for each workspace, then each
// scalar parameter and each symbol as int64_t (floating ones as the bits of a double). After them stand tensor maps.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"
#include "compiler/targets/c/context.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::cuda {

// A TMA descriptor of a tensor, a kernel parameter that the host encodes. Innermost axes first.
struct TensorMap {
  size_t buffer = 0;  // the number of its pointer among the parameters
  ir::DType type;
  std::vector<ir::Expr> extents;  // over symbols, in elements
  std::vector<ir::Expr> strides;  // over symbols, in bytes, of all axes but the innermost
  std::vector<int64_t> box;       // in elements
  int64_t swizzle = 0;            // 32, 64 or 128 bytes, or none
};

// A tile of the program in the dynamic shared memory of a block.
struct SharedTile {
  std::string name;
  Span span;  // of its allocation
  int64_t offset = 0, bytes = 0;
};

struct Launch {
  std::string function;          // its extern "C" name
  std::vector<ir::Expr> grid;    // 1 to 3 extents over scalar parameters and symbols
  std::vector<int64_t> threads;  // 1 to 3 extents
  int64_t shared_bytes = 0;      // dynamic shared memory
  bool cooperative = false;
  bool persistent = false;                   // its grid is a bound: more blocks than run at once gain nothing
  std::vector<c::RuntimeCheck> checks = {};  // `fail_check(number)` tells of the one with that number, from 1 on
  std::vector<TensorMap> maps = {};          // parameters after all others
  int64_t local_bytes = 0;                   // of each thread's own arrays, some of which become registers
  std::vector<int64_t> cluster = {};         // extents in blocks, of which the grid is a multiple; none: no clusters
  std::vector<c::OperationCounter> operation_counters = {};  // by number, if they were asked for
  Span kernel = {};                                          // of the tile program
  std::vector<SharedTile> tiles = {};                        // some may share memory
};

struct GeneratedCode {
  std::string source;            // `prelude()` goes in front when it is compiled
  std::vector<Launch> launches;  // in order
  std::vector<Diagnostic> warnings = {};
};

struct GenerateOptions {
  // The texts that spans point into, if `#line` is to name their lines before each statement.
  const SourceMap* sources = nullptr;
  // For the emulator, whose prelude alone has `emulated::count_operations`: calls of it count the arithmetic of each
  // thread.
  bool operation_counters = false;
};

Result<GeneratedCode> generate(const ir::Program& program, gpu::Architecture architecture,
                               const GenerateOptions& options = {});

}  // namespace tilepilot::targets::cuda
