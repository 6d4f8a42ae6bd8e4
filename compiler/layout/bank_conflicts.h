// What an access of a warp to shared memory costs on NVIDIA GPUs. Memory is 32 banks of 4 bytes; one wavefront takes
// one word from each bank and gives it to all lanes that want it.
#pragma once

#include <cstdint>
#include <span>

namespace tilepilot::layout {

// The address of a lane that takes no part.
constexpr int64_t kNoAccess = -1;

struct BankCost {
  int64_t wavefronts = 0;
  int64_t least = 0;  // that the same lanes need without conflict: one each time any lane takes part
};

// The wavefronts that a load or store takes. Accesses of up to 4 bytes are served for the whole warp at once, those of
// 8 bytes half a warp at a time, those of 16 bytes a quarter; each time it takes as many wavefronts as the busiest bank
// has different words. A matrix of ldmatrix is a quarter of an access of 16 bytes: its 8 row addresses.
// @pre at most 32 addresses, one a lane, in bytes, each a multiple of `bytes`; bytes is 1, 2, 4, 8 or 16
BankCost bank_cost(std::span<const int64_t> addresses, int64_t bytes);
int64_t wavefronts(std::span<const int64_t> addresses, int64_t bytes);

// The wavefronts beyond the least.
int64_t bank_conflicts(std::span<const int64_t> addresses, int64_t bytes);

}  // namespace tilepilot::layout
