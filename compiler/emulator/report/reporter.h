// Collects defects: of each kind and pair of lines the first, with a count.
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "compiler/emulator/order/clocks.h"
#include "compiler/emulator/report/report.h"

namespace tilepilot::emulator {

class Reporter {
 public:
  Reporter(Report& report, const std::vector<SourceLine>& sites, int64_t most, int64_t threads_of_block)
      : report_(report), sites_(sites), most_(most), threads_of_block_(threads_of_block) {}

  void start_block(std::array<int64_t, 3> block, int64_t rank) {
    block_ = block;
    rank_ = rank;
  }
  // "thread 5", or "thread 5 of the cluster's block 1" if that is not the one that runs.
  std::string thread(const Moment& moment) const;
  SourceLine line(uint32_t site) const { return sites_[site]; }
  std::string place(uint32_t site) const { return spelled(line(site)); }
  // True if the message is wanted: then `add` follows.
  bool is_new(DefectKind kind, const Moment& first, const Moment& second);
  void add(DefectKind kind, const Moment& first, const Moment& second, std::string message);
  Defect& last() { return report_.defects.back(); }
  size_t count() const { return report_.defects.size(); }
  // Where the first defect from `from` on is told that can come of what the moment's thread has waited for: of accesses
  // that it has a part in, or, if it `waits` still, a deadlock.
  std::optional<size_t> find_of(const Moment& moment, size_t from, bool waits) const;
  // Tells what the defect at a place comes of, before it.
  void add_cause(size_t effect, DefectKind kind, const Moment& moment, std::string message);

 private:
  using Key = std::tuple<DefectKind, uint32_t, uint32_t>;
  static Key key(DefectKind kind, const Moment& first, const Moment& second);

  Report& report_;
  const std::vector<SourceLine>& sites_;
  int64_t most_, threads_of_block_, rank_ = 0;
  std::array<int64_t, 3> block_{};
  std::map<Key, size_t> known_;  // place in the report
};

}  // namespace tilepilot::emulator
