#include "compiler/emulator/report/operation_counters.h"

#include <algorithm>
#include <utility>

namespace tilepilot::emulator {

void OperationCounters::add_to(Counters& counters) const {
  constexpr size_t kWarp = 32;
  for (size_t number = 0; number < table_.size(); ++number) {
    int64_t by_threads = 0, by_warps = 0, of_warp = 0;
    for (size_t at = number, thread = 0; at < counts_.size(); at += table_.size(), ++thread) {
      if (thread % kWarp == 0) by_warps += std::exchange(of_warp, 0);
      const auto count = static_cast<int64_t>(counts_[at]);
      by_threads += count;
      of_warp = std::max(of_warp, count);
    }
    if (by_threads == 0) continue;
    for (const auto& [line, operations] : table_[number]) {
      counters.thread_operations.add(operations, by_threads);
      counters.warp_operations.add(operations, by_warps + of_warp);
      counters.operation_lines[line].add(operations, by_threads);
    }
  }
}

}  // namespace tilepilot::emulator
