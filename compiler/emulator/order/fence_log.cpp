#include "compiler/emulator/order/fence_log.h"

#include <algorithm>

namespace tilepilot::emulator {

// After a barrier of all threads each knows of every fence.
void FenceLog::catch_up() {
  if (epoch_ == clocks_.epoch()) return;
  epoch_ = clocks_.epoch();
  if (fencing_.empty()) return;
  auto all = std::make_shared<Frontier>(*past_);
  for (const uint16_t thread : fencing_) {
    all->join(*fences_[thread].back().known);
    fences_[thread].clear();
  }
  past_ = std::move(all);
  fencing_.clear();
}

Moment FenceLog::add(int thread) {
  catch_up();
  std::vector<Fence>& own = fences_[static_cast<size_t>(thread)];
  if (own.empty()) fencing_.push_back(static_cast<uint16_t>(thread));
  if (own.size() == kMost) {
    own[0].known = std::move(own[1].known);
    own.erase(own.begin() + 1);
  }
  const Moment now = clocks_.now(thread, 0);
  own.push_back({now, std::make_shared<Frontier>(clocks_.frontier(thread))});
  clocks_.tick(thread);
  return now;
}

const FenceLog::Fence* FenceLog::last_of(uint16_t other, int thread) const {
  const std::vector<Fence>& all = fences_[other];
  for (size_t k = all.size(); k-- > 0;)
    if (clocks_.is_ordered(all[k].at, thread)) return &all[k];
  return nullptr;
}

// Its own one first: that is after most of the others.
std::shared_ptr<const Frontier> FenceLog::known_to(int thread) {
  catch_up();
  const Fence* own = last_of(static_cast<uint16_t>(thread), thread);
  std::shared_ptr<const Frontier> one = own == nullptr ? nullptr : own->known;
  std::shared_ptr<Frontier> all;
  for (const uint16_t other : fencing_) {
    const Fence* fence = other == thread ? nullptr : last_of(other, thread);
    if (fence == nullptr || (one && (all ? *all : *one).covers(fence->at))) continue;
    if (!one) {
      one = fence->known;
      continue;
    }
    if (!all) all = std::make_shared<Frontier>(*one);
    all->join(*fence->known);
  }
  return all ? all : one ? one : past_;
}

bool FenceLog::covers(const Moment& moment, int thread) {
  catch_up();
  if (past_->covers(moment)) return true;
  const auto by = [&](uint16_t other) {
    const Fence* fence = last_of(other, thread);
    return fence != nullptr && fence->known->covers(moment);
  };
  // Mostly it is fenced by who wrote, or who goes on.
  if (moment.thread < fences_.size() && by(moment.thread)) return true;
  return by(static_cast<uint16_t>(thread)) || std::any_of(fencing_.begin(), fencing_.end(), by);
}

}  // namespace tilepilot::emulator
