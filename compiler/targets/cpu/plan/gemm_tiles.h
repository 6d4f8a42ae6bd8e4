// GEMMs of threads as tile operators: what threads multiply is copied to tiles, or lies in one already, and `gemm`
// computes the sums, so that operands are packed and registers used as for GEMMs that the program writes as such.
// Threads are independent between two barriers; what stands before and after a GEMM becomes a loop of its own.
#pragma once

#include <optional>

#include "compiler/targets/cpu/plan/thread_gemms.h"

namespace tilepilot::targets::cpu {

struct TiledGemms {
  ir::Kernel kernel;
  std::vector<ThreadGemm> gemms;
};
struct SmallestGemm {
  int64_t rows, columns, elements;
};

// Nullopt if there is no GEMM of that size. `kernel` is in the form that code is generated from, without lets of
// index arithmetic.
std::optional<TiledGemms> tile_gemms(const ir::Kernel& kernel, const SmallestGemm& least);

}  // namespace tilepilot::targets::cpu
