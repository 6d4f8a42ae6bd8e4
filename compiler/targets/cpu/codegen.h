// Tile IR to readable C++ for the host's compiler. One block of a launch runs on one thread of the host; tile operators
// become vectorised loops or calls of the prelude (prelude.h.in: element types, vector maths, gemm micro-kernels).
//
// The generated unit exports, for launch k of the program, an extern "C" function
//   void tp_launch_k(void* const* buffers, const int64_t* scalars, int64_t first_block, int64_t last_block, void*
//   scratch, LaunchEvents* events)
// `buffers` has the data pointers of the global buffers in parameter order, then of the workspaces, `scalars` the
// values of scalar parameters, then of symbols; blocks of `grids[k]` are numbered with the first axis fastest;
// `scratch` has `scratch_bytes[k]` bytes, 64-byte aligned, one per running thread. It ends at the first block in which
// a check fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"
#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

// What a launch tells its caller; `launch_events` of the prelude.
struct LaunchEvents {
  int64_t failed = 0, block = 0;  // the number of a check, from 1 on, and the block that it failed in
  void* host = nullptr;
  void (*print)(void* host, int64_t block, const char* text) = nullptr;
};

struct GeneratedCode {
  std::string source;                                // the kernel alone; `prelude()` goes in front when it is compiled
  std::vector<std::vector<ir::Expr>> grids;          // of each launch; one block may be several of the program's
  std::vector<int64_t> scratch_bytes;                // a launch
  std::vector<int64_t> operations;                   // of one of its blocks, at most; INT64_MAX if that is not known
  std::vector<std::vector<c::RuntimeCheck>> checks;  // of each launch
  std::vector<std::vector<c::ScalarCode>> scalar_code;  // of each launch, in the order of the program's text
  std::vector<Span> kernels;                            // of the tile program, a launch
};

Result<GeneratedCode> generate(const ir::Program& program);
// The text every unit includes.
const std::string& prelude();

}  // namespace tilepilot::targets::cpu
