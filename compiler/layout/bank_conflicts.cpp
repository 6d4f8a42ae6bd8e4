#include "compiler/layout/bank_conflicts.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

namespace tilepilot::layout {
namespace {

constexpr int64_t kBanks = 32, kWordBytes = 4, kWarp = 32;

// The wavefronts of lanes that are served together; 0 if none takes part.
int64_t wavefronts_at_once(std::span<const int64_t> addresses, int64_t bytes) {
  std::vector<int64_t> words;
  for (int64_t address : addresses) {
    if (address == kNoAccess) continue;
    assert(address % bytes == 0);
    for (int64_t byte = address; byte < address + bytes; byte += kWordBytes) words.push_back(byte / kWordBytes);
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int64_t, kBanks> in_bank{};
  for (int64_t word : words) ++in_bank[size_t(word % kBanks)];
  return *std::max_element(in_bank.begin(), in_bank.end());
}

struct Cost {
  int64_t wavefronts = 0;
  int64_t least = 0;
};

Cost cost(std::span<const int64_t> addresses, int64_t bytes) {
  assert(addresses.size() <= size_t(kWarp));
  const size_t lanes = size_t(std::min(kWarp, kWarp * kWordBytes / bytes));
  Cost cost;
  for (size_t first = 0; first < addresses.size(); first += lanes) {
    const int64_t taken =
        wavefronts_at_once(addresses.subspan(first, std::min(lanes, addresses.size() - first)), bytes);
    cost.wavefronts += taken;
    cost.least += taken > 0;
  }
  return cost;
}

}  // namespace

int64_t wavefronts(std::span<const int64_t> addresses, int64_t bytes) { return cost(addresses, bytes).wavefronts; }

int64_t bank_conflicts(std::span<const int64_t> addresses, int64_t bytes) {
  const Cost found = cost(addresses, bytes);
  return found.wavefronts - found.least;
}

}  // namespace tilepilot::layout
