// One block of each launch of a program in the emulator, watched step by step. Tensors are all zero: what is drawn is
// where elements lie and in which order warps work, which values of elements seldom change.
#pragma once

#include <map>

#include "compiler/emulator/report/step_log.h"
#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"
#include "compiler/runtime/library.h"
#include "compiler/targets/cuda/codegen.h"

namespace tilepilot::show {

struct ExecutionOptions {
  runtime::ToolchainOptions toolchain;
  const SourceMap* sources = nullptr;
  targets::gpu::Architecture architecture = targets::gpu::Architecture::sm_90a;
  int64_t block = 0;  // which one; of clusters, which cluster
  int64_t most_steps = 200'000;
  double most_products = 4e9;                   // multiply-adds
  int64_t most_bytes = int64_t{16} << 30;       // of all tensors
  std::map<std::string, int64_t> extents = {};  // of what is known at launch alone
};

// Of scalar parameters and symbols; what `extents` does not name is kAssumedExtent.
inline constexpr int64_t kAssumedExtent = 256;
ir::VarRanges values_of(const ir::Program& program, const std::map<std::string, int64_t>& extents);
// Names of those that `extents` does not have.
std::vector<std::string> assumed_names(const ir::Program& program, const std::map<std::string, int64_t>& extents);

struct Execution {
  std::vector<emulator::Step> steps;
  bool is_cut = false;
  std::vector<std::string> defects;
  std::string failure;  // why there are no steps; empty: there are
};

// Of each launch of the program.
std::vector<Execution> execute(const ir::Program& program, const targets::cuda::GeneratedCode& code,
                               const ExecutionOptions& options);

}  // namespace tilepilot::show
