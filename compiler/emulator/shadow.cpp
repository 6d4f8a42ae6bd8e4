#include "compiler/emulator/shadow.h"

#include <algorithm>
#include <bit>

namespace tilepilot::emulator {
namespace {

constexpr uint32_t kLanes = 32;
constexpr int64_t kWord = 4;

}  // namespace

Shadow::Shadow(const Clocks& clocks, int64_t bytes, bool written)
    : clocks_(clocks),
      written_(written),
      pages_(static_cast<size_t>((bytes + kWord * kPageWords - 1) / (kWord * kPageWords))),
      bytes_(1),
      sets_(1) {}

void Shadow::clear() {
  for (Page& page : pages_) page.clear();
  bytes_.resize(1);
  free_bytes_.clear();
  sets_.resize(1);
  free_sets_.clear();
}

uint32_t Shadow::new_set() {
  if (free_sets_.empty()) {
    sets_.emplace_back();
    return static_cast<uint32_t>(sets_.size() - 1);
  }
  const uint32_t place = free_sets_.back();
  free_sets_.pop_back();
  sets_[place].clear();
  return place;
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
  if (word.split) return bytes_[word.readers];
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
    byte.readers = 0;
    if (word.readers == 0) continue;
    byte.readers = new_set();
    sets_[byte.readers] = sets_[word.readers];
  }
  if (word.readers != 0) free_sets_.push_back(word.readers);
  word.split = true;
  word.readers = place;
  return bytes_[place];
}

// After a write of the whole word, when its bytes have nothing else to tell.
void Shadow::unite(Record& word) {
  const uint32_t place = word.readers;
  for (Record& byte : bytes_[place]) {
    if (byte.readers != 0) free_sets_.push_back(byte.readers);
    byte.readers = 0;
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

Findings Shadow::begin_copy(int64_t at, int64_t bytes, bool by_engine, const Moment& begun) {
  Findings found;
  const Step step{AccessKind::write, true, by_engine, begun};
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

Findings Shadow::begin_read(int64_t at, int64_t bytes, const Moment& begun) {
  Findings found;
  Step step{AccessKind::read, false, true, begun};
  step.now.clock = kUnderWay;
  for_each(at, bytes, false, [&](Record& record, int64_t place) { apply(record, place, step, found); });
  return found;
}

void Shadow::end_read(int64_t at, int64_t bytes, const Moment& begun, const Moment& end) {
  const uint32_t warp = begun.thread / kLanes, lane = 1u << (begun.thread % kLanes);
  for_each(at, bytes, false, [&](Record& record, int64_t) {
    const bool last = record.read.thread == begun.thread && record.read.site == begun.site;
    if (last && record.read.clock == kUnderWay) record.read = end;
    if (record.readers == 0) return;
    std::vector<Readers>& set = sets_[record.readers];
    for (size_t k = 0; k < set.size(); ++k) {
      const bool same = set[k].warp == warp && set[k].clock == kUnderWay && set[k].site == begun.site;
      if (!same || (set[k].lanes & lane) == 0) continue;
      set[k].lanes &= ~lane;
      add_reader(set, end);
      return;
    }
  });
}

// What forbids the access, if the earlier one is the last write or a read since.
std::optional<Conflict> Shadow::conflict_of(const Record& record, const Step& step) const {
  const Moment& now = step.now;
  const bool is_write = step.kind == AccessKind::write || step.kind == AccessKind::atomic_update;
  const bool is_atomic = step.kind == AccessKind::atomic_read || step.kind == AccessKind::atomic_update;
  if (record.pending) return Conflict{ConflictKind::pending, false, record.write, 0};
  const ConflictKind after_write = is_write ? ConflictKind::write_write : ConflictKind::write_read;
  if (!(record.atomic && is_atomic)) {
    if (is_of_other_block(record.write)) return Conflict{after_write, true, record.write, 0};
    if (!clocks_.is_ordered(record.write, now.thread)) return Conflict{after_write, false, record.write, 0};
  }
  if (step.by_engine && record.write.epoch != 0 && !clocks_.is_fenced(record.write, now.thread))
    return Conflict{ConflictKind::unfenced, false, record.write, 0};
  if (!is_write) return std::nullopt;
  if (is_of_other_block(record.read)) return Conflict{ConflictKind::read_write, true, record.read, 0};
  if (record.read.epoch != now.epoch) {
    // Barriers order what is over.
    if (record.read.clock != kUnderWay) return std::nullopt;
    return Conflict{ConflictKind::read_write, false, record.read, 0};
  }
  const std::optional<Moment> reader = unordered_reader(record, now);
  if (reader) return Conflict{ConflictKind::read_write, false, *reader, 0};
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
  if (step.kind == AccessKind::read) note_read(record, step.now);
  if (step.kind == AccessKind::read || step.kind == AccessKind::atomic_read) return;
  record.write = step.now;
  record.written = true;
  record.atomic = step.kind == AccessKind::atomic_update;
  record.pending = step.copy;
  record.read = {};
}

void Shadow::note_read(Record& record, const Moment& now) {
  const bool fresh = record.read.epoch != now.epoch;
  const bool several = !fresh && record.readers != 0 && !sets_[record.readers].empty();
  if (fresh && record.readers != 0) sets_[record.readers].clear();
  if (!several && (fresh || is_over(record.read, now.thread))) {
    record.read = now;
    return;
  }
  if (record.readers == 0) {
    record.readers = static_cast<uint32_t>(sets_.size());
    sets_.emplace_back();
  }
  std::vector<Readers>& set = sets_[record.readers];
  if (set.empty()) add_reader(set, record.read);
  add_reader(set, now);
  record.read = now;
}

void Shadow::add_reader(std::vector<Readers>& set, const Moment& moment) {
  const uint32_t warp = moment.thread / kLanes, lane = 1u << (moment.thread % kLanes);
  // Mostly the last one is the warp's: lanes run one after another.
  for (size_t k = set.size(); k-- > 0;) {
    Readers& readers = set[k];
    if (readers.warp != warp) continue;
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

std::optional<Moment> Shadow::unordered_reader(const Record& record, const Moment& now) const {
  if (record.readers == 0 || sets_[record.readers].empty()) {
    if (is_over(record.read, now.thread)) return std::nullopt;
    return record.read;
  }
  for (const Readers& readers : sets_[record.readers]) {
    for (uint32_t rest = readers.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
      const Moment moment{now.epoch, readers.clock, readers.site, static_cast<uint16_t>(readers.warp * kLanes + lane)};
      if (!is_over(moment, now.thread)) return moment;
    }
  }
  return std::nullopt;
}

}  // namespace tilepilot::emulator
