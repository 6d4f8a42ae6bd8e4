#include "compiler/emulator/order/launch_order.h"

#include <algorithm>

namespace tilepilot::emulator {
namespace {

// Of one thread at one element, between two barriers of the block. Older ones are taken for one.
constexpr size_t kMostObserved = 8;
// Looked at before something is acquired once more.
constexpr size_t kMostAcquisitions = 8;

bool holds(const std::unordered_map<const AtomicElement*, size_t>& counts, const AtomicElement& element, size_t count) {
  const auto found = counts.find(&element);
  return found != counts.end() && found->second >= count;
}

void raise(std::unordered_map<const AtomicElement*, size_t>& counts, const AtomicElement* element, size_t count) {
  size_t& kept = counts[element];
  kept = std::max(kept, count);
}

}  // namespace

uint32_t LaunchOrder::add_owner(std::array<int64_t, 3> block) {
  blocks_.push_back(block);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

void LaunchOrder::start_phase() {
  phase_ = epochs.last() + 1;
  elements.clear();
  gone.clear();
  acquisitions_.clear();
}

void LaunchOrder::overwrite(AtomicElements& elements, const char* first, int64_t bytes,
                            std::vector<std::unique_ptr<AtomicElement>>& gone) {
  for (auto at = elements.lower_bound(first); at != elements.end() && at->first < first + bytes;) {
    gone.push_back(std::move(at->second));
    at = elements.erase(at);
  }
}

size_t HappensBeforeClosure::added(const AtomicElement& element) const {
  const auto found = added_.find(&element);
  const size_t own = found == added_.end() ? 0 : found->second;
  return known_ == nullptr ? own : std::max(own, known_->added(element));
}

void HappensBeforeClosure::add(const AtomicElement& element, size_t count) {
  const size_t first = added(element);
  if (count <= first) return;
  added_[&element] = count;
  left_.push_back({&element, first, count});
}

bool HappensBeforeClosure::knows(const Moment& moment, uint32_t owner) {
  for (;;) {
    const auto found = found_.find(owner);
    if (found != found_.end() && found->second.covers(moment)) return true;
    if (!step()) return false;
  }
}

const Frontier* HappensBeforeClosure::of(uint32_t owner) {
  while (step()) {}
  const auto found = found_.find(owner);
  return found == found_.end() ? nullptr : &found->second;
}

// The last release first: it is the one that the access has seen.
bool HappensBeforeClosure::step() {
  if (left_.empty()) return false;
  Range& range = left_.front();
  const AtomicElement::Release& release = range.element->releases[--range.end];
  if (range.first == range.end) left_.pop_front();
  found_[release.owner].join(*release.known);
  follow(release.owner, *release.known);
  return true;
}

// What the owner had acquired by then.
void HappensBeforeClosure::follow(uint32_t owner, const Frontier& known) {
  const std::vector<Acquisition>& all = launch_.acquisitions(owner);
  size_t& next = followed_[owner];
  for (; next < all.size() && all[next].at.epoch < known.epoch; ++next) add(*all[next].element, all[next].count);
  for (size_t k = next; k < all.size() && all[k].at.epoch == known.epoch; ++k)
    if (known.covers(all[k].at)) add(*all[k].element, all[k].count);
}

HappensBefore::HappensBefore(LaunchOrder& launch, Clocks& clocks, size_t threads, bool together)
    : launch_(launch), clocks_(clocks), together_(together), fences_(clocks, threads), observed_(threads) {
  clear();
}

void HappensBefore::clear() {
  fences_.clear();
  seen_.clear();
  acquired_.clear();
  closure_ = std::make_unique<HappensBeforeClosure>(launch_);
  for (const uint16_t thread : seeing_) observed_[thread] = {};
  seeing_.clear();
  acquisitions_.clear();
  acquisitions_of_.clear();
  closures_.clear();
  shared_elements_.clear();
  shared_gone_.clear();
  epoch_ = clocks_.epoch();
}

void HappensBefore::start(std::array<int64_t, 3> block) {
  clocks_.start(launch_.add_owner(block));
  clear();
}

void HappensBefore::start_phase() {
  clocks_.start_epoch();
  clear();
}

// After a barrier of all threads each knows what any of them did.
void HappensBefore::catch_up() {
  if (epoch_ == clocks_.epoch()) return;
  epoch_ = clocks_.epoch();
  for (const Acquisition& one : acquisitions_) {
    raise(acquired_, one.element, one.count);
    if (!one.element->is_shared) closure_->add(*one.element, one.count);
  }
  acquisitions_.clear();
  acquisitions_of_.clear();
  closures_.clear();
  for (const uint16_t thread : seeing_) {
    for (const Acquisition& one : observed_[thread].all) raise(seen_, one.element, one.count);
    observed_[thread] = {};
  }
  seeing_.clear();
  std::erase_if(seen_, [&](const auto& one) { return holds(acquired_, *one.first, one.second); });
}

void HappensBefore::note_seen(int thread, const AtomicElement& element) {
  const size_t count = element.releases.size();
  if (holds(acquired_, element, count) || holds(seen_, element, count)) return;
  ObservedReleases& own = observed_[static_cast<size_t>(thread)];
  if (own.all.empty()) seeing_.push_back(static_cast<uint16_t>(thread));
  const Moment now = clocks_.now(thread, 0);
  size_t earlier = 0;
  for (size_t k = own.all.size(); k-- > 0;) {
    Acquisition& one = own.all[k];
    if (one.element != &element) continue;
    if (one.count == count) return;
    if (one.at.clock != now.clock && ++earlier < kMostObserved) continue;
    one.count = count;
    own.taken = std::min(own.taken, k);
    return;
  }
  own.all.push_back({now, &element, count});
}

void HappensBefore::access(int thread, const char* place, bool is_shared, bool changes) {
  catch_up();
  AtomicElements& elements = is_shared ? shared_elements_ : launch_.elements;
  const auto found = elements.find(place);
  if (found != elements.end()) note_seen(thread, *found->second);
  if (!changes) return;
  std::shared_ptr<const Frontier> known = fences_.known_to(thread);
  if (known->epoch == 0) return;
  std::unique_ptr<AtomicElement>& element = elements[place];
  if (!element) element = std::make_unique<AtomicElement>(AtomicElement{{}, is_shared});
  auto& releases = element->releases;
  if (!releases.empty() && releases.back().owner == owner() && releases.back().known == known) return;
  releases.push_back({owner(), std::move(known)});
}

void HappensBefore::overwrite(const char* first, int64_t bytes, bool is_shared) {
  if (is_shared)
    LaunchOrder::overwrite(shared_elements_, first, bytes, shared_gone_);
  else
    LaunchOrder::overwrite(launch_.elements, first, bytes, launch_.gone);
}

// So many at least.
size_t HappensBefore::acquired_by(int thread, const AtomicElement& element) const {
  const auto base = acquired_.find(&element);
  size_t count = base == acquired_.end() ? 0 : base->second;
  const auto found = acquisitions_of_.find(&element);
  if (found == acquisitions_of_.end()) return count;
  const std::vector<size_t>& places = found->second;
  const size_t first = places.size() - std::min(places.size(), kMostAcquisitions);
  for (size_t k = first; k < places.size(); ++k) {
    const Acquisition& one = acquisitions_[places[k]];
    if (one.count > count && clocks_.is_ordered(one.at, thread)) count = one.count;
  }
  return count;
}

HappensBeforeClosure& HappensBefore::closure(const AtomicElement& element, size_t count) {
  const auto [found, is_new] = closures_.try_emplace({&element, count}, launch_, closure_.get());
  if (is_new) found->second.add(element, count);
  return found->second;
}

// `own`: what the thread learns of its own clock group.
void HappensBefore::acquire(int thread, const AtomicElement& element, size_t count, Frontier& own) {
  const size_t before = acquired_by(thread, element);
  if (before >= count) return;
  acquisitions_of_[&element].push_back(acquisitions_.size());
  acquisitions_.push_back({clocks_.now(thread, 0), &element, count});
  if (together_ && !element.is_shared) {
    const Frontier* known = closure(element, count).of(owner());
    if (known != nullptr) own.join(*known);
    return;
  }
  // Those of blocks before are over: they know nothing of this one, and come first.
  for (size_t k = count; k-- > before && element.releases[k].owner == owner();) own.join(*element.releases[k].known);
}

// Those of other threads, too, which barriers of some threads have told it of.
void HappensBefore::acquire_observed(int thread, Frontier& own) {
  for (const uint16_t other : seeing_) {
    ObservedReleases& observed = observed_[other];
    const bool is_own = other == thread;
    for (size_t k = is_own ? observed.taken : 0; k < observed.all.size(); ++k) {
      const Acquisition& one = observed.all[k];
      if (!clocks_.is_ordered(one.at, thread)) break;
      acquire(thread, *one.element, one.count, own);
    }
    if (is_own) observed.taken = observed.all.size();
  }
}

void HappensBefore::fence(int thread) {
  catch_up();
  Frontier own;
  const size_t before = acquisitions_.size();
  for (const auto& [element, count] : seen_) acquire(thread, *element, count, own);
  acquire_observed(thread, own);
  if (acquisitions_.size() > before) clocks_.learn(thread, own);
  const Moment now = clocks_.now(thread, 0);
  for (size_t k = before; k < acquisitions_.size(); ++k) {
    acquisitions_[k].at = now;
    if (!acquisitions_[k].element->is_shared) launch_.acquisitions(owner()).push_back(acquisitions_[k]);
  }
  fences_.add(thread);
}

bool HappensBefore::is_ordered(const Moment& moment, int thread) {
  if (launch_.is_of_earlier_phase(moment)) return true;
  const uint32_t other = launch_.epochs.owner(moment.epoch);
  if (other == owner()) return clocks_.is_ordered(moment, thread);
  catch_up();
  if (closure_->knows(moment, other)) return true;
  return std::any_of(acquisitions_.rbegin(), acquisitions_.rend(), [&](const Acquisition& one) {
    return !one.element->is_shared && clocks_.is_ordered(one.at, thread) &&
           closure(*one.element, one.count).knows(moment, other);
  });
}

bool Viewpoint::is_fenced(const Moment& write, int thread) const {
  if (is_foreign(write)) return !fences->is_empty();
  return clocks->is_bulk_copy(write) || fences->covers(write, thread);
}

}  // namespace tilepilot::emulator
