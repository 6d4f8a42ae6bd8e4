#include "compiler/emulator/clocks.h"

#include <algorithm>

namespace tilepilot::emulator {
namespace {

void raise_to(uint32_t* clocks, const uint32_t* others, size_t count) {
  for (size_t k = 0; k < count; ++k) clocks[k] = std::max(clocks[k], others[k]);
}

}  // namespace

uint32_t* Clocks::row(int thread) {
  if (rows_.empty()) rows_.resize(threads_ * threads_);
  const auto number = static_cast<size_t>(thread);
  uint32_t* row = rows_.data() + number * threads_;
  if (row_epochs_[number] != epoch_) std::fill(row, row + threads_, 0);
  row_epochs_[number] = epoch_;
  return row;
}

void Clocks::tick(int thread) {
  const auto number = static_cast<size_t>(thread);
  clocks_[number] = clock(thread) + 1;
  own_epochs_[number] = epoch_;
}

void Clocks::start(Knowledge& knowledge) const {
  if (knowledge.epoch == epoch_) return;
  knowledge.epoch = epoch_;
  knowledge.clocks.assign(threads_, 0);
}

void Clocks::join(std::span<const uint16_t> members) {
  joined_.assign(threads_, 0);
  for (const uint16_t member : members) raise_to(joined_.data(), row(member), threads_);
  for (const uint16_t member : members) joined_[member] = clock(member);
  for (const uint16_t member : members) {
    std::copy(joined_.begin(), joined_.end(), row(member));
    tick(member);
    acquired_[member] = {epoch_, clock(member)};
  }
}

void Clocks::release(int thread, Knowledge& to) {
  start(to);
  raise_to(to.clocks.data(), row(thread), threads_);
  to.clocks[static_cast<size_t>(thread)] = clock(thread);
  tick(thread);
}

void Clocks::acquire(int thread, const Knowledge& from) {
  if (from.epoch == epoch_) raise_to(row(thread), from.clocks.data(), threads_);
  tick(thread);
  acquired_[static_cast<size_t>(thread)] = {epoch_, clock(thread)};
}

void Clocks::merge(Knowledge& to, const Knowledge& from) const {
  if (from.epoch != epoch_) return;
  start(to);
  raise_to(to.clocks.data(), from.clocks.data(), threads_);
}

Moment Clocks::engine_moment(uint32_t site, Knowledge& to) {
  start(to);
  tick(engine());
  const Moment moment{epoch_, clock(engine()), site, engine()};
  to.clocks[engine()] = moment.clock;
  return moment;
}

void Clocks::fence(int thread) {
  fences_[static_cast<size_t>(thread)] = {epoch_, clock(thread)};
  tick(thread);
  if (fence_epochs_[0] != epoch_) fence_epochs_ = {epoch_, fence_epochs_[0]};
}

bool Clocks::is_fenced(const Moment& write, int thread) const {
  if (write.thread == engine()) return true;
  const auto covers = [](const Fence& fence, uint32_t epoch, uint32_t clock) {
    return fence.epoch > epoch || (fence.epoch == epoch && fence.clock >= clock);
  };
  if (covers(fences_[write.thread], write.epoch, write.clock)) return true;
  // That of the one who goes on, after it came to know of the write.
  const Fence& own = fences_[static_cast<size_t>(thread)];
  const Fence& learnt = acquired_[static_cast<size_t>(thread)];
  if (own.epoch > write.epoch) return true;
  if (own.epoch == write.epoch && covers(own, learnt.epoch, learnt.clock)) return true;
  // That of anybody, between two barriers of the block.
  return (fence_epochs_[0] < epoch_ ? fence_epochs_[0] : fence_epochs_[1]) > write.epoch;
}

}  // namespace tilepilot::emulator
