#include "compiler/emulator/order/clocks.h"

#include <algorithm>

namespace tilepilot::emulator {
namespace {

void raise_to(uint32_t* clocks, const uint32_t* others, size_t count) {
  for (size_t k = 0; k < count; ++k) clocks[k] = std::max(clocks[k], others[k]);
}

}  // namespace

bool Frontier::covers(const Moment& moment) const {
  if (moment.epoch != epoch) return moment.epoch < epoch;
  const auto found = std::lower_bound(clocks.begin(), clocks.end(), moment.thread,
                                      [](const auto& one, uint16_t thread) { return one.first < thread; });
  return found != clocks.end() && found->first == moment.thread && found->second >= moment.clock;
}

void Frontier::join(const Frontier& other) {
  if (other.epoch < epoch) return;
  if (other.epoch > epoch) {
    *this = other;
    return;
  }
  std::vector<std::pair<uint16_t, uint32_t>> all;
  all.reserve(clocks.size() + other.clocks.size());
  auto a = clocks.cbegin(), b = other.clocks.cbegin();
  while (a != clocks.cend() || b != other.clocks.end()) {
    if (b == other.clocks.end() || (a != clocks.cend() && a->first < b->first)) {
      all.push_back(*a++);
    } else if (a == clocks.cend() || b->first < a->first) {
      all.push_back(*b++);
    } else {
      all.emplace_back(a->first, std::max(a->second, b->second));
      ++a, ++b;
    }
  }
  clocks = std::move(all);
}

uint32_t Epochs::start(uint32_t owner) {
  ++last_;
  if (runs_.empty() || runs_.back().owner != owner) runs_.push_back({last_, owner});
  return last_;
}

uint32_t Epochs::owner(uint32_t epoch) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), epoch,
                                      [](uint32_t wanted, const Run& run) { return wanted < run.first; });
  return std::prev(after)->owner;
}

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
}

Frontier Clocks::frontier(int thread) const {
  const auto own = static_cast<size_t>(thread);
  Frontier known{epoch_};
  const uint32_t* row = row_epochs_[own] == epoch_ ? rows_.data() + own * threads_ : nullptr;
  for (size_t other = 0; row != nullptr && other < own; ++other)
    if (row[other] != 0) known.clocks.emplace_back(static_cast<uint16_t>(other), row[other]);
  known.clocks.emplace_back(static_cast<uint16_t>(own), clock(thread));
  for (size_t other = own + 1; row != nullptr && other < threads_; ++other)
    if (row[other] != 0) known.clocks.emplace_back(static_cast<uint16_t>(other), row[other]);
  return known;
}

void Clocks::learn(int thread, const Frontier& from) {
  if (from.epoch == epoch_)
    for (const auto& [other, clock] : from.clocks) {
      uint32_t& known = row(thread)[other];
      known = std::max(known, clock);
    }
  tick(thread);
}

Moment Clocks::moment_beside(Beside what, int64_t number, uint32_t site, Knowledge& to) {
  start(to);
  const size_t channel = static_cast<size_t>(what) * kChannels + static_cast<size_t>(number) % kChannels;
  const size_t thread = own_threads_ + channel;
  tick(static_cast<int>(thread));
  const Moment moment{epoch_, clocks_[thread], site, static_cast<uint16_t>(thread)};
  to.clocks[thread] = moment.clock;
  return moment;
}

}  // namespace tilepilot::emulator
