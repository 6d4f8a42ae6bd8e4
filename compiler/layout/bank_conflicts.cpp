#include "compiler/layout/bank_conflicts.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace tilepilot::layout {
namespace {

constexpr int64_t kBanks = 32, kWordBytes = 4, kWarp = 32;

// The wavefronts of lanes that are served together, which touch at most 32 words; 0 if none takes part.
int64_t wavefronts_at_once(std::span<const int64_t> addresses, int64_t bytes) {
  std::array<std::array<int64_t, kWarp>, kBanks> words;  // different ones of each bank
  std::array<size_t, kBanks> in_bank{};
  size_t most = 0;
  for (int64_t address : addresses) {
    if (address == kNoAccess) continue;
    assert(address % bytes == 0);
    for (int64_t byte = address; byte < address + bytes; byte += kWordBytes) {
      const int64_t word = byte / kWordBytes;
      const auto bank = size_t(word % kBanks);
      const auto end = words[bank].begin() + std::ptrdiff_t(in_bank[bank]);
      if (std::find(words[bank].begin(), end, word) != end) continue;
      *end = word;
      most = std::max(most, ++in_bank[bank]);
    }
  }
  return int64_t(most);
}

}  // namespace

BankCost bank_cost(std::span<const int64_t> addresses, int64_t bytes) {
  assert(addresses.size() <= size_t(kWarp));
  const size_t lanes = size_t(std::min(kWarp, kWarp * kWordBytes / bytes));
  BankCost cost;
  for (size_t first = 0; first < addresses.size(); first += lanes) {
    const int64_t taken =
        wavefronts_at_once(addresses.subspan(first, std::min(lanes, addresses.size() - first)), bytes);
    cost.wavefronts += taken;
    cost.least += taken > 0;
  }
  return cost;
}

int64_t wavefronts(std::span<const int64_t> addresses, int64_t bytes) { return bank_cost(addresses, bytes).wavefronts; }

int64_t bank_conflicts(std::span<const int64_t> addresses, int64_t bytes) {
  const BankCost found = bank_cost(addresses, bytes);
  return found.wavefronts - found.least;
}

}  // namespace tilepilot::layout
