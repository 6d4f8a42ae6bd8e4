#include "compiler/emulator/reporter.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilepilot::emulator {

// Two lines that race are the same pair whoever comes first.
Reporter::Key Reporter::key(DefectKind kind, const Moment& first, const Moment& second) {
  return {kind, std::min(first.site, second.site), std::max(first.site, second.site)};
}

bool Reporter::is_new(DefectKind kind, const Moment& first, const Moment& second) {
  const auto found = known_.find(key(kind, first, second));
  if (found != known_.end()) {
    ++report_.defects[found->second].count;
    return false;
  }
  if (static_cast<int64_t>(report_.defects.size()) < most_) return true;
  ++report_.left_out;
  return false;
}

std::string Reporter::thread(const Moment& moment) const {
  const int64_t rank = moment.thread / threads_of_block_;
  std::string text = fmt::format("thread {}", moment.thread % threads_of_block_);
  if (rank != rank_) text += fmt::format(" of the cluster's block {}", rank);
  return text;
}

void Reporter::add(DefectKind kind, const Moment& first, const Moment& second, std::string message) {
  known_[key(kind, first, second)] = report_.defects.size();
  report_.defects.push_back({kind, std::move(message), line(first.site), line(second.site),
                             first.thread % threads_of_block_, second.thread % threads_of_block_, block_});
}

}  // namespace tilepilot::emulator
