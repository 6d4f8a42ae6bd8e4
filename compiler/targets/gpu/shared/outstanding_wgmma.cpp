#include "compiler/targets/gpu/shared/outstanding_wgmma.h"

#include <algorithm>

namespace tilepilot::targets::gpu {
namespace {

bool holds_buffer(const std::vector<ir::Buffer>& all, const ir::Buffer& buffer) {
  return std::find(all.begin(), all.end(), buffer) != all.end();
}

}  // namespace

void OutstandingWgmma::begin(const Registers& product) {
  may_run(product);
  started_.push_back(product);
}

void OutstandingWgmma::may_run(const Registers& product) {
  for (const ir::Buffer& buffer : product)
    if (!holds_buffer(may_run_, buffer)) may_run_.push_back(buffer);
}

OutstandingWgmma::Registers OutstandingWgmma::wait(int64_t count) {
  const auto kept = std::min<size_t>(static_cast<size_t>(count), started_.size());
  started_.erase(started_.begin(), started_.end() - static_cast<ptrdiff_t>(kept));
  Registers running, done;
  for (const Registers& product : started_)
    for (const ir::Buffer& buffer : product)
      if (!holds_buffer(running, buffer)) running.push_back(buffer);
  for (const ir::Buffer& buffer : may_run_)
    if (!holds_buffer(running, buffer)) done.push_back(buffer);
  // Those before the ones that are known may be among the last `count`, too.
  if (static_cast<int64_t>(kept) == count) may_run_ = std::move(running);
  return done;
}

void OutstandingWgmma::join(const OutstandingWgmma& other) {
  may_run(other.may_run_);
  started_.clear();
}

}  // namespace tilepilot::targets::gpu
