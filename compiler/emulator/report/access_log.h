// Puts the accesses of a warp's lanes together again. Lanes run one after another; each keeps a log, and when all of
// them have stopped, entries of the same place in the code that come in the same order are one access of the warp.
#pragma once

#include <array>
#include <vector>

#include "compiler/emulator/report/report.h"

namespace tilepilot::emulator {

struct LoggedAccess {
  const void* code;  // the call in the kernel's library
  int64_t address;   // of a step its number
  uint32_t site;
  uint32_t tile;  // of shared memory: where the tile begins
  uint16_t bytes;
  bool shared, write, asynchronous, atomic;
  bool step = false;  // no access, but a step that is prepared in a step log
};

// One access of a warp.
struct WarpAccess {
  LoggedAccess kind;                  // of one of its lanes
  std::array<int64_t, 32> addresses;  // by lane; -1 where it takes no part
  int64_t lanes = 0;                  // that take part
};

// What one access costs.
Traffic traffic_of(const WarpAccess& access);

class AccessLog {
 public:
  static constexpr size_t kMost = 2048;  // of a lane, then it should stop

  // True if the lane should stop soon.
  bool add(int lane, const LoggedAccess& access) {
    std::vector<LoggedAccess>& log = lanes_[static_cast<size_t>(lane)];
    log.push_back(access);
    return log.size() >= kMost;
  }
  // visit(WarpAccess), then the log is empty.
  template <class Visit>
  void flush(const Visit& visit);

 private:
  std::array<std::vector<LoggedAccess>, 32> lanes_;

  // The lane that has most left to do: where lanes took different ways, the others may have skipped what it did.
  static int busiest(const std::array<size_t, 32>& left) {
    int best = 0;
    for (int lane = 1; lane < 32; ++lane)
      if (left[static_cast<size_t>(lane)] > left[static_cast<size_t>(best)]) best = lane;
    return best;
  }
};

template <class Visit>
void AccessLog::flush(const Visit& visit) {
  std::array<size_t, 32> left{};
  size_t all = 0;
  for (size_t lane = 0; lane < 32; ++lane) all += left[lane] = lanes_[lane].size();
  while (all > 0) {
    const auto lead = static_cast<size_t>(busiest(left));
    const LoggedAccess kind = *(lanes_[lead].end() - static_cast<std::ptrdiff_t>(left[lead]));
    WarpAccess access{kind, {}};
    for (size_t lane = 0; lane < 32; ++lane) {
      access.addresses[lane] = -1;
      if (left[lane] == 0) continue;
      const LoggedAccess& head = *(lanes_[lane].end() - static_cast<std::ptrdiff_t>(left[lane]));
      if (head.code != kind.code || head.site != kind.site || head.bytes != kind.bytes) continue;
      access.addresses[lane] = head.address;
      ++access.lanes;
      --left[lane];
    }
    all -= static_cast<size_t>(access.lanes);
    visit(access);
  }
  for (std::vector<LoggedAccess>& log : lanes_) log.clear();
}

}  // namespace tilepilot::emulator
