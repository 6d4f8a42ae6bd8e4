#include "compiler/emulator/report/reporter.h"

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

std::optional<size_t> Reporter::find_of(const Moment& moment, size_t from, bool waits) const {
  const int64_t thread = moment.thread % threads_of_block_;
  for (size_t k = from; k < report_.defects.size(); ++k) {
    const Defect& defect = report_.defects[k];
    const bool is_own = defect.block == block_ && (defect.first_thread == thread || defect.second_thread == thread);
    switch (defect.kind) {
      case DefectKind::deadlock:
        if (waits) return k;
        break;
      case DefectKind::data_race:
      case DefectKind::pending_copy:
      case DefectKind::uninitialised_read:
        if (is_own) return k;
        break;
      default:
        break;
    }
  }
  return std::nullopt;
}

void Reporter::add_cause(size_t effect, DefectKind kind, const Moment& moment, std::string message) {
  if (!is_new(kind, moment, moment)) return;
  add(kind, moment, moment, std::move(message));
  auto& defects = report_.defects;
  std::rotate(defects.begin() + static_cast<std::ptrdiff_t>(effect), defects.end() - 1, defects.end());
  for (auto& [key, place] : known_)
    if (place >= effect) place = place + 1 == defects.size() ? effect : place + 1;
}

}  // namespace tilepilot::emulator
