// Operation counters: how often the threads of a block execute each of their kernel, and what that is in operations.
#pragma once

#include <vector>

#include "compiler/emulator/report/report.h"

namespace tilepilot::emulator {

class OperationCounters {
 public:
  OperationCounters(const std::vector<OperationCounter>& table, size_t threads)
      : table_(table), counts_(table.size() * threads) {}

  void start_block() { counts_.assign(counts_.size(), 0); }
  uint64_t* of(int thread) { return counts_.data() + static_cast<size_t>(thread) * table_.size(); }
  const std::vector<OperationCounter>& table() const { return table_; }
  const uint64_t* of(int thread) const { return counts_.data() + static_cast<size_t>(thread) * table_.size(); }
  // Of the block, which has ended.
  void add_to(Counters& counters) const;

 private:
  const std::vector<OperationCounter>& table_;
  std::vector<uint64_t> counts_;  // by thread, then by counter
};

}  // namespace tilepilot::emulator
