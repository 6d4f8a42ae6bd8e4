#include "compiler/emulator/order/shadow.h"

#include <algorithm>
#include <bit>

namespace tilepilot::emulator {
namespace {

constexpr uint32_t kLanes = 32;
constexpr int64_t kWord = 4;

// A place of `all`, where the first is unused, with nothing in it.
template <class T>
uint32_t new_place(std::vector<T>& all, std::vector<uint32_t>& free) {
  if (free.empty()) {
    all.emplace_back();
    return static_cast<uint32_t>(all.size() - 1);
  }
  const uint32_t place = free.back();
  free.pop_back();
  return place;
}

}  // namespace

Shadow::Shadow(const Viewpoint& view, int64_t bytes, bool written)
    : view_(view),
      written_(written),
      pages_(static_cast<size_t>((bytes + kWord * kPageWords - 1) / (kWord * kPageWords))),
      bytes_(1),
      sets_(1),
      others_(1),
      atomics_(1),
      looks_(1) {}

void Shadow::clear() {
  for (Page& page : pages_) page.clear();
  bytes_.resize(1);
  free_bytes_.clear();
  sets_.resize(1);
  free_sets_.clear();
  others_.resize(1);
  free_others_.clear();
  atomics_.resize(1);
  free_atomics_.clear();
  looks_.resize(1);
  free_looks_.clear();
  reads_under_way_ = 0;
}

Shadow::Accesses Shadow::copied(const Accesses& accesses) {
  Accesses copy = accesses;
  const auto copied_set = [&](uint32_t set) {
    if (set == 0) return set;
    const uint32_t place = new_place(sets_, free_sets_);
    sets_[place] = sets_[set];
    return place;
  };
  copy.set = copied_set(accesses.set);
  if (accesses.others == 0) return copy;
  copy.others = new_place(others_, free_others_);
  others_[copy.others] = others_[accesses.others];
  for (Other& other : others_[copy.others]) other.set = copied_set(other.set);
  return copy;
}

uint32_t Shadow::copied_atomics(uint32_t atomics) {
  if (atomics == 0) return 0;
  const uint32_t place = new_place(atomics_, free_atomics_);
  const uint32_t looks = atomics_[atomics].looks;
  atomics_[place] = {atomics_[atomics].update};
  if (looks == 0) return place;
  const uint32_t copy = atomics_[place].looks = new_place(looks_, free_looks_);
  looks_[copy] = std::make_unique<Looks>(Looks{copied(looks_[looks]->all), looks_[looks]->first});
  return place;
}

void Shadow::forget(Accesses& accesses) {
  forget_set(accesses.set);
  if (accesses.others != 0) {
    for (const Other& other : others_[accesses.others]) forget_set(other.set);
    others_[accesses.others].clear();
    free_others_.push_back(accesses.others);
  }
  accesses = {};
}

void Shadow::forget_set(uint32_t set) {
  if (set == 0) return;
  sets_[set].clear();
  free_sets_.push_back(set);
}

void Shadow::forget_atomics(Record& record) {
  if (record.atomics == 0) return;
  const uint32_t looks = atomics_[record.atomics].looks;
  if (looks != 0) {
    forget(looks_[looks]->all);
    looks_[looks].reset();
    free_looks_.push_back(looks);
  }
  atomics_[record.atomics] = {};
  free_atomics_.push_back(record.atomics);
  record.atomics = 0;
}

Shadow::Record& Shadow::word(int64_t number) {
  Page& page = pages_[static_cast<size_t>(number / kPageWords)];
  if (page.empty()) {
    page.resize(kPageWords);
    for (Record& record : page) record.written = written_;
  }
  return page[static_cast<size_t>(number % kPageWords)];
}

std::array<Shadow::Record, 4>& Shadow::split(Record& word) {
  if (word.split) return bytes_[word.reads.set];
  uint32_t place = 0;
  if (free_bytes_.empty()) {
    place = static_cast<uint32_t>(bytes_.size());
    bytes_.emplace_back();
  } else {
    place = free_bytes_.back();
    free_bytes_.pop_back();
  }
  for (Record& byte : bytes_[place]) {
    byte = word;
    byte.reads = copied(word.reads);
    byte.atomics = copied_atomics(word.atomics);
  }
  forget(word.reads);
  forget_atomics(word);
  word.split = true;
  word.reads.set = place;
  return bytes_[place];
}

// After a write of the whole word, when its bytes have nothing else to tell.
void Shadow::unite(Record& word) {
  const uint32_t place = word.reads.set;
  for (Record& byte : bytes_[place]) {
    forget(byte.reads);
    forget_atomics(byte);
  }
  word = bytes_[place][0];
  word.split = false;
  free_bytes_.push_back(place);
}

// visit(record, at) for the records of the bytes. `whole`: the visit makes the bytes of a word the same.
template <class Visit>
void Shadow::for_each(int64_t at, int64_t bytes, bool whole, const Visit& visit) {
  const int64_t end = at + bytes;
  while (at < end) {
    Record& record = word(at / kWord);
    const bool covers = at % kWord == 0 && end - at >= kWord;
    if (covers && !record.split) {
      visit(record, at);
      at += kWord;
      continue;
    }
    const int64_t last = std::min(end, at / kWord * kWord + kWord);
    std::array<Record, 4>& parts = split(record);
    for (; at < last; ++at) visit(parts[static_cast<size_t>(at % kWord)], at);
    if (covers && whole) unite(record);
  }
}

Findings Shadow::access(int64_t at, int64_t bytes, AccessKind kind, const Moment& now) {
  Findings found;
  const Step step{kind, false, false, now};
  const bool writes = kind == AccessKind::write;
  for_each(at, bytes, writes, [&](Record& record, int64_t place) { apply(record, place, step, found); });
  return found;
}

Findings Shadow::begin_copy(int64_t at, int64_t bytes, bool by_async_proxy, const Moment& begun) {
  Findings found;
  const Step step{AccessKind::write, true, by_async_proxy, begun};
  for_each(at, bytes, true, [&](Record& record, int64_t place) { apply(record, place, step, found); });
  return found;
}

void Shadow::end_copy(int64_t at, int64_t bytes, const Moment& begun, const Moment& end) {
  for_each(at, bytes, false, [&](Record& record, int64_t) {
    if (!record.pending || record.write.thread != begun.thread || record.write.site != begun.site) return;
    record.pending = false;
    record.write = end;
  });
}

Findings Shadow::begin_update(int64_t at, int64_t bytes, Moment& begun) {
  begun.clock = kUnderWay + begun_++ % kUnderWay;
  return access(at, bytes, AccessKind::atomic_update, begun);
}

// Who comes next sees the last update only.
void Shadow::end_update(int64_t at, int64_t bytes, const Moment& begun, const Moment& end) {
  for_each(at, bytes, false, [&](Record& record, int64_t) {
    if (record.atomics == 0) return;
    Moment& update = atomics_[record.atomics].update;
    if (update.clock == begun.clock) update = end;
  });
}

Findings Shadow::begin_read(int64_t at, int64_t bytes, Moment& begun) {
  Findings found;
  begun.clock = kUnderWay + begun_++ % kUnderWay;
  ++reads_under_way_;
  const Step step{AccessKind::read, false, true, begun};
  for_each(at, bytes, false, [&](Record& record, int64_t place) { apply(record, place, step, found); });
  return found;
}

Findings Shadow::async_read(int64_t at, int64_t bytes, const Moment& now) {
  Findings found;
  const Step step{AccessKind::read, false, true, now};
  for_each(at, bytes, false, [&](Record& record, int64_t place) { apply(record, place, step, found); });
  return found;
}

void Shadow::end_read(int64_t at, int64_t bytes, const Moment& begun, const Moment& end) {
  const uint32_t warp = begun.thread / kLanes, lane = 1u << (begun.thread % kLanes);
  for_each(at, bytes, false, [&](Record& record, int64_t) {
    Accesses& reads = record.reads;
    if (reads.last.epoch != 0 && reads.last.epoch != end.epoch) leave_epoch(reads, end);
    if (reads.last.clock == begun.clock) reads.last = end;
    if (reads.set == 0) return;
    std::vector<Readers>& set = sets_[reads.set];
    for (size_t k = 0; k < set.size(); ++k) {
      const bool same = set[k].warp == warp && set[k].clock == begun.clock;
      if (!same || (set[k].lanes & lane) == 0) continue;
      set.erase(set.begin() + static_cast<std::ptrdiff_t>(k));
      add_reader(set, end);
      reads.last = end;
      return;
    }
  });
  if (reads_under_way_ > 0) --reads_under_way_;
}

// As the thread, or somebody whom it knows of, has seen it in an atomic access (PTX ISA, "Causality Order").
bool Shadow::has_seen_update(const Atomics& atomics, int thread) const {
  if (atomics.looks == 0) return false;
  const auto& first = looks_[atomics.looks]->first;
  return std::any_of(first.begin(), first.end(), [&](const auto& one) { return is_over(one.second, thread); });
}

std::optional<Moment> Shadow::unordered_write(const Record& record, bool is_atomic, int thread) const {
  if (!view_.is_ordered(record.write, thread)) return record.write;
  if (is_atomic || record.atomics == 0) return std::nullopt;
  const Atomics& atomics = atomics_[record.atomics];
  if (atomics.update.epoch == 0 || is_over(atomics.update, thread)) return std::nullopt;
  if (!is_under_way(atomics.update) && has_seen_update(atomics, thread)) return std::nullopt;
  return atomics.update;
}

const Moment& Shadow::last_write(int64_t at) {
  const Record& record = word(at / kWord);
  return record.split ? bytes_[record.reads.set][static_cast<size_t>(at % kWord)].write : record.write;
}

// What forbids the access, if the earlier one is the last write or a read since.
std::optional<Conflict> Shadow::conflict_of(const Record& record, const Step& step) const {
  const int thread = step.now.thread;
  const bool is_write = step.kind == AccessKind::write || step.kind == AccessKind::atomic_update;
  const bool is_atomic = step.kind == AccessKind::atomic_read || step.kind == AccessKind::atomic_update;
  if (record.pending) return conflict(ConflictKind::pending, record.write);
  if (const auto write = unordered_write(record, is_atomic, thread))
    return conflict(is_under_way(*write) ? ConflictKind::pending
                    : is_write           ? ConflictKind::write_write
                                         : ConflictKind::write_read,
                    *write);
  if (step.by_async_proxy && !(is_write && view_.order != nullptr)) {
    if (!record.by_async_proxy && is_unfenced(record.write, thread))
      return conflict(ConflictKind::unfenced, record.write);
    if (record.atomics != 0 && is_unfenced(atomics_[record.atomics].update, thread))
      return conflict(ConflictKind::unfenced, atomics_[record.atomics].update);
  }
  if (!is_write) return std::nullopt;
  if (const auto reader = unordered(record.reads, thread)) return conflict(ConflictKind::read_write, *reader);
  if (is_atomic || record.atomics == 0 || atomics_[record.atomics].looks == 0) return std::nullopt;
  if (const auto reader = unordered(looks_[atomics_[record.atomics].looks]->all, thread))
    return conflict(ConflictKind::read_write, *reader);
  return std::nullopt;
}

void Shadow::apply(Record& record, int64_t at, const Step& step, Findings& found) {
  if (const std::optional<Conflict> conflict = conflict_of(record, step); conflict && !found.conflict) {
    found.conflict = conflict;
    found.conflict->at = at;
  }
  record.pending = false;  // once is enough
  if (step.kind != AccessKind::write && !record.written) {
    if (!found.unwritten) found.unwritten = at;
    record.written = true;
  }
  switch (step.kind) {
    case AccessKind::read:
      return note(record.reads, step.now);
    case AccessKind::atomic_read:
      return note_look(atomics_of(record), step.now);
    case AccessKind::atomic_update: {
      Atomics& atomics = atomics_of(record);
      atomics.update = step.now;
      if (atomics.looks != 0) looks_[atomics.looks]->first.clear();
      return;
    }
    case AccessKind::write:
      break;
  }
  found.overwrites_atomic |= record.atomics != 0;
  record.write = step.now;
  record.written = true;
  record.pending = step.copy;
  record.by_async_proxy = step.copy && step.by_async_proxy;
  forget(record.reads);
  forget_atomics(record);
}

Shadow::Atomics& Shadow::atomics_of(Record& record) {
  if (record.atomics == 0) record.atomics = new_place(atomics_, free_atomics_);
  return atomics_[record.atomics];
}

void Shadow::note_look(Atomics& atomics, const Moment& now) {
  if (atomics.looks == 0) {
    atomics.looks = new_place(looks_, free_looks_);
    looks_[atomics.looks] = std::make_unique<Looks>();
  }
  Looks& looks = *looks_[atomics.looks];
  note(looks.all, now);
  const uint64_t owner = view_.clocks->owner();
  looks.first.try_emplace(owner << 16 | now.thread, now);
}

// Only what is under way, or another block's, tells more than accesses in this epoch will.
void Shadow::leave_epoch(Accesses& accesses, const Moment& now) {
  const bool is_foreign = view_.is_foreign(accesses.last);
  if (!is_foreign && reads_under_way_ > 0) {
    if (accesses.set != 0)
      std::erase_if(sets_[accesses.set], [](const Readers& readers) { return readers.clock < kUnderWay; });
    if (accesses.set == 0 && is_under_way(accesses.last)) {
      const uint32_t place = new_place(sets_, free_sets_);
      accesses.set = place;
      add_reader(sets_[place], accesses.last);
    }
  } else if (!is_foreign && accesses.set != 0) {
    sets_[accesses.set].clear();
  }
  if (is_foreign && unordered(accesses.last, accesses.set, now.thread)) {
    if (accesses.others == 0) accesses.others = new_place(others_, free_others_);
    std::vector<Other>& others = others_[accesses.others];
    // Who comes after this one comes after what is ordered before it.
    std::erase_if(others, [&](const Other& other) {
      if (unordered(other.last, other.set, now.thread)) return false;
      forget_set(other.set);
      return true;
    });
    if (others.size() == kMostOthers) {  // two alone show that nothing orders the blocks
      forget_set(others.back().set);
      others.pop_back();
    }
    others.push_back({accesses.last, accesses.set});
    accesses.set = 0;
  } else if (is_foreign && accesses.set != 0) {
    sets_[accesses.set].clear();
  }
  accesses.last = {};
}

void Shadow::note(Accesses& accesses, const Moment& now) {
  if (accesses.last.epoch != 0 && accesses.last.epoch != now.epoch) leave_epoch(accesses, now);
  const bool several = accesses.set != 0 && !sets_[accesses.set].empty();
  if (!several && (accesses.last.epoch == 0 || is_over(accesses.last, now.thread))) {
    accesses.last = now;
    return;
  }
  if (accesses.set == 0) accesses.set = new_place(sets_, free_sets_);
  std::vector<Readers>& set = sets_[accesses.set];
  if (set.empty()) add_reader(set, accesses.last);
  add_reader(set, now);
  accesses.last = now;
}

void Shadow::add_reader(std::vector<Readers>& set, const Moment& moment) {
  const uint32_t warp = moment.thread / kLanes, lane = 1u << (moment.thread % kLanes);
  // Mostly the last one is the warp's: lanes run one after another.
  for (size_t k = is_under_way(moment) ? 0 : set.size(); k-- > 0;) {
    Readers& readers = set[k];
    if (readers.warp != warp || readers.clock >= kUnderWay) continue;
    if (readers.clock == moment.clock && readers.site == moment.site) {
      readers.lanes |= lane;
      return;
    }
    if (readers.lanes == lane || readers.lanes == 0) {  // its earlier read tells nothing more
      readers = {warp, moment.clock, moment.site, lane};
      return;
    }
    readers.lanes &= ~lane;
  }
  set.push_back({warp, moment.clock, moment.site, lane});
}

std::optional<Moment> Shadow::unordered(const Moment& last, uint32_t set, int thread) const {
  if (last.epoch == 0 && set == 0) return std::nullopt;
  if (set == 0 || sets_[set].empty()) {
    if (last.epoch == 0 || is_over(last, thread)) return std::nullopt;
    return last;
  }
  if (reads_under_way_ == 0 && view_.is_past(last)) return std::nullopt;
  for (const Readers& readers : sets_[set]) {
    for (uint32_t rest = readers.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
      const Moment moment{last.epoch, readers.clock, readers.site, static_cast<uint16_t>(readers.warp * kLanes + lane)};
      if (!is_over(moment, thread)) return moment;
    }
  }
  return std::nullopt;
}

std::optional<Moment> Shadow::unordered(const Accesses& accesses, int thread) const {
  if (const auto moment = unordered(accesses.last, accesses.set, thread)) return moment;
  if (accesses.others == 0) return std::nullopt;
  for (const Other& other : others_[accesses.others])
    if (const auto moment = unordered(other.last, other.set, thread)) return moment;
  return std::nullopt;
}

}  // namespace tilepilot::emulator
