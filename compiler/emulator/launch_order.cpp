#include "compiler/emulator/launch_order.h"

#include <algorithm>

namespace tilepilot::emulator {
namespace {

// Of one thread at one element, between two barriers of the block. Older ones are taken for one.
constexpr size_t kMostSights = 8;
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

size_t Reach::added(const AtomicElement& element) const {
  const auto found = added_.find(&element);
  const size_t own = found == added_.end() ? 0 : found->second;
  return known_ == nullptr ? own : std::max(own, known_->added(element));
}

void Reach::add(const AtomicElement& element, size_t count) {
  const size_t first = added(element);
  if (count <= first) return;
  added_[&element] = count;
  left_.push_back({&element, first, count});
}

bool Reach::knows(const Moment& moment, uint32_t owner) {
  for (;;) {
    const auto found = found_.find(owner);
    if (found != found_.end() && found->second.covers(moment)) return true;
    if (!step()) return false;
  }
}

const Frontier* Reach::of(uint32_t owner) {
  while (step()) {}
  const auto found = found_.find(owner);
  return found == found_.end() ? nullptr : &found->second;
}

// The last release first: it is the one that the access has seen.
bool Reach::step() {
  if (left_.empty()) return false;
  Range& range = left_.front();
  const AtomicElement::Release& release = range.element->releases[--range.end];
  if (range.first == range.end) left_.pop_front();
  found_[release.owner].join(*release.known);
  follow(release.owner, *release.known);
  return true;
}

// What the owner had acquired by then.
void Reach::follow(uint32_t owner, const Frontier& known) {
  const std::vector<Acquisition>& all = launch_.acquisitions(owner);
  size_t& next = followed_[owner];
  for (; next < all.size() && all[next].at.epoch < known.epoch; ++next) add(*all[next].element, all[next].count);
  for (size_t k = next; k < all.size() && all[k].at.epoch == known.epoch; ++k)
    if (known.covers(all[k].at)) add(*all[k].element, all[k].count);
}

TeamOrder::TeamOrder(LaunchOrder& launch, Clocks& clocks, size_t threads, bool together)
    : launch_(launch), clocks_(clocks), together_(together), fences_(clocks, threads), sights_(threads) {
  clear();
}

void TeamOrder::clear() {
  fences_.clear();
  seen_.clear();
  acquired_.clear();
  reach_ = std::make_unique<Reach>(launch_);
  for (const uint16_t thread : seeing_) sights_[thread] = {};
  seeing_.clear();
  acquisitions_.clear();
  acquisitions_of_.clear();
  reaches_.clear();
  shared_elements_.clear();
  shared_gone_.clear();
  epoch_ = clocks_.epoch();
}

void TeamOrder::start(std::array<int64_t, 3> block) {
  clocks_.start(launch_.add_owner(block));
  clear();
}

void TeamOrder::start_phase() {
  clocks_.start_epoch();
  clear();
}

// After a barrier of all threads each knows what any of them did.
void TeamOrder::catch_up() {
  if (epoch_ == clocks_.epoch()) return;
  epoch_ = clocks_.epoch();
  for (const Acquisition& one : acquisitions_) {
    raise(acquired_, one.element, one.count);
    if (!one.element->is_shared) reach_->add(*one.element, one.count);
  }
  acquisitions_.clear();
  acquisitions_of_.clear();
  reaches_.clear();
  for (const uint16_t thread : seeing_) {
    for (const Acquisition& one : sights_[thread].all) raise(seen_, one.element, one.count);
    sights_[thread] = {};
  }
  seeing_.clear();
  std::erase_if(seen_, [&](const auto& one) { return holds(acquired_, *one.first, one.second); });
}

void TeamOrder::note_seen(int thread, const AtomicElement& element) {
  const size_t count = element.releases.size();
  if (holds(acquired_, element, count) || holds(seen_, element, count)) return;
  Sights& own = sights_[static_cast<size_t>(thread)];
  if (own.all.empty()) seeing_.push_back(static_cast<uint16_t>(thread));
  const Moment now = clocks_.now(thread, 0);
  size_t earlier = 0;
  for (size_t k = own.all.size(); k-- > 0;) {
    Acquisition& one = own.all[k];
    if (one.element != &element) continue;
    if (one.count == count) return;
    if (one.at.clock != now.clock && ++earlier < kMostSights) continue;
    one.count = count;
    own.taken = std::min(own.taken, k);
    return;
  }
  own.all.push_back({now, &element, count});
}

void TeamOrder::access(int thread, const char* place, bool is_shared, bool changes) {
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

void TeamOrder::overwrite(const char* first, int64_t bytes, bool is_shared) {
  if (is_shared)
    LaunchOrder::overwrite(shared_elements_, first, bytes, shared_gone_);
  else
    LaunchOrder::overwrite(launch_.elements, first, bytes, launch_.gone);
}

// So many at least.
size_t TeamOrder::acquired_by(int thread, const AtomicElement& element) const {
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

Reach& TeamOrder::reach(const AtomicElement& element, size_t count) {
  const auto [found, is_new] = reaches_.try_emplace({&element, count}, launch_, reach_.get());
  if (is_new) found->second.add(element, count);
  return found->second;
}

// `own`: what the thread learns of its own team.
void TeamOrder::acquire(int thread, const AtomicElement& element, size_t count, Frontier& own) {
  const size_t before = acquired_by(thread, element);
  if (before >= count) return;
  acquisitions_of_[&element].push_back(acquisitions_.size());
  acquisitions_.push_back({clocks_.now(thread, 0), &element, count});
  if (together_ && !element.is_shared) {
    const Frontier* known = reach(element, count).of(owner());
    if (known != nullptr) own.join(*known);
    return;
  }
  // Those of blocks before are over: they know nothing of this one, and come first.
  for (size_t k = count; k-- > before && element.releases[k].owner == owner();) own.join(*element.releases[k].known);
}

// Those of other threads, too, which barriers of some threads have told it of.
void TeamOrder::acquire_sights(int thread, Frontier& own) {
  for (const uint16_t other : seeing_) {
    Sights& sights = sights_[other];
    const bool is_own = other == thread;
    for (size_t k = is_own ? sights.taken : 0; k < sights.all.size(); ++k) {
      const Acquisition& one = sights.all[k];
      if (!clocks_.is_ordered(one.at, thread)) break;
      acquire(thread, *one.element, one.count, own);
    }
    if (is_own) sights.taken = sights.all.size();
  }
}

void TeamOrder::fence(int thread) {
  catch_up();
  Frontier own;
  const size_t before = acquisitions_.size();
  for (const auto& [element, count] : seen_) acquire(thread, *element, count, own);
  acquire_sights(thread, own);
  if (acquisitions_.size() > before) clocks_.learn(thread, own);
  const Moment now = clocks_.now(thread, 0);
  for (size_t k = before; k < acquisitions_.size(); ++k) {
    acquisitions_[k].at = now;
    if (!acquisitions_[k].element->is_shared) launch_.acquisitions(owner()).push_back(acquisitions_[k]);
  }
  fences_.add(thread);
}

bool TeamOrder::is_ordered(const Moment& moment, int thread) {
  if (launch_.is_of_earlier_phase(moment)) return true;
  const uint32_t other = launch_.epochs.owner(moment.epoch);
  if (other == owner()) return clocks_.is_ordered(moment, thread);
  catch_up();
  if (reach_->knows(moment, other)) return true;
  return std::any_of(acquisitions_.rbegin(), acquisitions_.rend(), [&](const Acquisition& one) {
    return !one.element->is_shared && clocks_.is_ordered(one.at, thread) &&
           reach(*one.element, one.count).knows(moment, other);
  });
}

bool Viewpoint::is_fenced(const Moment& write, int thread) const {
  if (is_foreign(write)) return !fences->is_empty();
  return clocks->is_bulk_copy(write) || fences->covers(write, thread);
}

}  // namespace tilepilot::emulator
