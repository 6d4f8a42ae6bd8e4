#include "compiler/emulator/report/access_log.h"

#include <algorithm>

#include "compiler/layout/bank_conflicts.h"

namespace tilepilot::emulator {
namespace {

constexpr int64_t kSector = 32;

int64_t sectors_of(const std::array<int64_t, 32>& addresses, int64_t bytes) {
  std::array<int64_t, 64> sectors;
  size_t count = 0;
  for (const int64_t address : addresses) {
    if (address < 0) continue;
    for (int64_t sector = address / kSector; sector <= (address + bytes - 1) / kSector; ++sector) {
      const int64_t* end = sectors.data() + count;
      // Neighbours in the order of lanes mostly share one.
      if (count > 0 && end[-1] == sector) continue;
      if (std::find(static_cast<const int64_t*>(sectors.data()), end, sector) == end && count < sectors.size())
        sectors[count++] = sector;
    }
  }
  return static_cast<int64_t>(count);
}

}  // namespace

Traffic traffic_of(const WarpAccess& access) {
  Traffic traffic;
  const int64_t bytes = access.kind.bytes;
  traffic.instructions = 1;
  traffic.bytes = bytes * access.lanes;
  if (access.kind.shared) {
    const layout::BankCost cost = layout::bank_cost(access.addresses, bytes);
    traffic.shared_wavefronts = cost.wavefronts;
    traffic.bank_conflicts = cost.wavefronts - cost.least;
  } else {
    traffic.global_sectors = sectors_of(access.addresses, bytes);
    traffic.least_sectors = (traffic.bytes + kSector - 1) / kSector;
  }
  return traffic;
}

}  // namespace tilepilot::emulator
