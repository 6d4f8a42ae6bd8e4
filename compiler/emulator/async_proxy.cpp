#include "compiler/emulator/async_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/emulator/matrix_place.h"

namespace tilepilot::emulator {

using emulated::barrier_action;
using emulated::bulk_kind;
using emulated::bulk_request;

void AsyncProxy::start_block() {
  barriers_.clear();
  defects_before_ = reporter_.count();
  groups_.assign(static_cast<size_t>(block_.size() + 127) / 128, {});
  owns_.assign(static_cast<size_t>(block_.size()), {});
}

void AsyncProxy::misuse(const Moment& first, const Moment& second, std::string message) {
  if (reporter_.is_new(DefectKind::barrier_misuse, first, second))
    reporter_.add(DefectKind::barrier_misuse, first, second, std::move(message));
}

void AsyncProxy::init(int64_t at, int64_t count, const Moment& now) {
  PhaseBarrier& barrier = barriers_[at];
  if (barrier.count != 0 && !barrier.copies.empty())
    misuse(barrier.init, now,
           fmt::format("{} makes the barrier at byte {} anew while copies use it", reporter_.thread(now), at));
  barrier = {};
  barrier.count = barrier.pending = count;
  barrier.init = now;
  if (count < 1) misuse(now, now, fmt::format("a barrier for {} arrivals", count));
}

void AsyncProxy::end_block() {
  check_groups();
  const auto pending = [&](const Moment& begun, const std::string& what, const char* lacks) {
    if (reporter_.is_new(DefectKind::pending_copy, begun, begun))
      reporter_.add(DefectKind::pending_copy, begun, begun, fmt::format("the block ends while {}, {}", what, lacks));
  };
  for (const Own& own : owns_) {
    for (const Read& read : own.stores.under_way)
      pending(read.begun,
              fmt::format("TMA still reads {} bytes of its memory for {}", read.bytes, reporter_.thread(read.begun)),
              "which has not waited for its stores");
    for (const Read& read : own.wgmma.under_way)
      pending(read.begun, fmt::format("a wgmma of {} still reads its memory", reporter_.thread(read.begun)),
              "for which no `wgmma_wait` has waited");
  }
  for (const auto& [at, barrier] : barriers_)
    for (const Copy& copy : barrier.copies)
      pending(copy.begun,
              fmt::format("TMA still writes {} bytes of its memory for {}", copy.bytes, reporter_.thread(copy.begun)),
              "and nobody has waited for them at their barrier");
  for (const AsyncProxy* peer : peers_) {
    if (peer == this) continue;
    for (const auto& [at, barrier] : peer->barriers_)
      for (const Copy& copy : barrier.copies)
        if (copy.source == this)
          pending(
              copy.begun,
              fmt::format("TMA still reads {} bytes of its memory for {}", copy.bytes, reporter_.thread(copy.begun)),
              "and the block that gets them has not waited for them");
  }
}

// Who comes to know of the barrier by its use alone, as by a wait for others that know it, knows too late.
AsyncProxy::PhaseBarrier* AsyncProxy::find(const emulated::shared_place& at, const Moment& now) {
  const auto found = barriers_.find(at.at);
  if (found != barriers_.end()) {
    const Moment& init = found->second.init;
    if (!clocks_.is_ordered(init, now.thread) && reporter_.is_new(DefectKind::data_race, init, now))
      reporter_.add(DefectKind::data_race, init, now,
                    fmt::format("{} uses the barrier at byte {}, which {} makes at {}: nothing orders the two",
                                reporter_.thread(now), at.at, reporter_.thread(init), reporter_.place(init.site)));
    if (const auto write = memories_.written_since(at, init))
      misuse(*write, now,
             fmt::format("{} uses the barrier at byte {}, which was written over at {}", reporter_.thread(now), at.at,
                         reporter_.place(write->site)));
    return &found->second;
  }
  misuse(now, now, fmt::format("{} uses a barrier at byte {} that nobody has made", reporter_.thread(now), at.at));
  return nullptr;
}

void AsyncProxy::announce(const Moment& now) {
  for (auto& [at, barrier] : barriers_)
    if (barrier.init.thread == now.thread) barrier.announced = now;
}

void AsyncProxy::check_announced(const PhaseBarrier& barrier, int64_t at, const Moment& now) {
  const bool is_announced = barrier.announced.epoch != 0 && clocks_.is_ordered(barrier.announced, now.thread);
  if (is_announced || fences_.covers(barrier.init, now.thread)) return;
  if (!reporter_.is_new(DefectKind::missing_fence, barrier.init, now)) return;
  reporter_.add(DefectKind::missing_fence, barrier.init, now,
                fmt::format("TMA need not know the barrier at byte {}, which {} makes at {}: no "
                            "`fence_barriers` stands between",
                            at, reporter_.thread(barrier.init), reporter_.place(barrier.init.site)));
}

AsyncProxy* AsyncProxy::peer_of(int64_t block, const char* does, const Moment& now) {
  std::string why;
  if (block < 0 || block >= static_cast<int64_t>(peers_.size())) {
    why = fmt::format("of a cluster of {}", peers_.size());
  } else {
    AsyncProxy* peer = peers_[static_cast<size_t>(block)];
    if (peer->block_.has_begun() && !peer->block_.has_ended()) return peer;
    why = peer->block_.has_begun() ? "of the cluster, which has ended" : "of the cluster, which need not have begun";
  }
  if (reporter_.is_new(DefectKind::out_of_bounds, now, now))
    reporter_.add(DefectKind::out_of_bounds, now, now,
                  fmt::format("{} {} block {} {}", reporter_.thread(now), does, block, why));
  return nullptr;
}

int64_t AsyncProxy::act(barrier_action action, const emulated::shared_place& at, int64_t operand) {
  const Moment now = block_.now();
  if (action == barrier_action::announce) {
    announce(now);
    return 0;
  }
  if (action == barrier_action::arrive_remote) {
    AsyncProxy* peer = peer_of(operand, "arrives in", now);
    PhaseBarrier* barrier = peer && peer->memories_.access_barrier(at, false, now) ? peer->find(at, now) : nullptr;
    if (barrier == nullptr) block_.abandon();
    peer->arrive(*barrier, at.at, now);
    return 0;
  }
  if (!memories_.access_barrier(at, action == barrier_action::init, now)) return 1;
  if (action == barrier_action::init) {
    init(at.at, operand, now);
    return 0;
  }
  PhaseBarrier* barrier = find(at, now);
  if (barrier == nullptr) block_.abandon();
  switch (action) {
    case barrier_action::expect:
      barrier->bytes += operand;
      return 0;
    case barrier_action::arrive_expect:
      barrier->bytes += operand;
      [[fallthrough]];
    case barrier_action::arrive:
      arrive(*barrier, at.at, now);
      return 0;
    case barrier_action::arrive_copied:
      barrier->has_copies = true;
      memories_.land_copies(now, [&](uint32_t site) {
        return clocks_.moment_beside(Clocks::Beside::copies_of_threads, number(at.at), site, barrier->now);
      });
      arrive(*barrier, at.at, now);
      return 0;
    default:
      return wait(*barrier, at, operand, action == barrier_action::test);
  }
}

void AsyncProxy::arrive(PhaseBarrier& barrier, int64_t at, const Moment& now) {
  if (barrier.pending == 0) {
    misuse(barrier.init, now,
           fmt::format("{} arrives at the barrier at byte {}, which has had its {} arrivals of this phase",
                       reporter_.thread(now), at, barrier.count));
    return;
  }
  clocks_.release(now.thread, barrier.now);
  --barrier.pending;
  complete_if_due(barrier, at);
}

void AsyncProxy::complete_if_due(PhaseBarrier& barrier, int64_t at) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.count;
  ++barrier.phase;
  barrier.completed = barrier.now;
  block_.wake(at);
}

// The running thread has seen that a phase is over: so are the copies that belong to it.
void AsyncProxy::learn(PhaseBarrier& barrier, int64_t at) {
  std::vector<Copy> rest;
  for (const Copy& copy : barrier.copies) {
    if (copy.phase >= barrier.phase) {
      rest.push_back(copy);
      continue;
    }
    const Moment end =
        clocks_.moment_beside(Clocks::Beside::bulk_copies, number(at), copy.begun.site, barrier.completed);
    memories_.end_write(copy.at, copy.bytes, copy.begun, end);
    if (copy.source != nullptr) copy.source->memories_.end_read(copy.from, copy.bytes, copy.begun, end);
  }
  barrier.copies = std::move(rest);
  clocks_.acquire(block_.now().thread, barrier.completed);
}

// A row of a box, along its innermost axis.
struct AsyncProxy::Box {
  std::array<int64_t, 5> coordinates;
  int64_t at;    // in shared memory, before the swizzle
  char* shared;  // the arena
  int64_t row_bytes;
};

bool AsyncProxy::is_possible(const bulk_request& request, int64_t bytes, const Moment& now) {
  std::string why;
  const auto not_multiple = [&](int64_t value, int64_t of, const char* what) {
    if (why.empty() && value % of != 0) why = fmt::format("{} is {}, no multiple of {}", what, value, of);
  };
  if (request.map == nullptr) {
    not_multiple(bytes, 16, "the number of bytes");
    not_multiple(request.shared.at, 16, "the place in shared memory");
    if (request.kind == bulk_kind::to_block)
      not_multiple(request.from.at, 16, "the place that is read");
    else
      not_multiple(reinterpret_cast<int64_t>(request.global.at), 16, "the address in global memory");
  } else {
    const auto& map = *request.map;
    const int64_t inner = map.box[0] * map.element_bytes;
    not_multiple(request.shared.at, 128, "the place in shared memory");
    not_multiple(inner, 16, "the box's inner extent in bytes");
    not_multiple(map.first_byte, 16, "the tensor's place");
    for (int axis = 1; axis < map.rank; ++axis) not_multiple(map.strides[axis], 16, "a stride");
    if (why.empty() && map.swizzle != 0 && inner > map.swizzle)
      why = fmt::format("rows of {} bytes are longer than the swizzle's {}", inner, map.swizzle);
    for (int axis = 0; axis < map.rank; ++axis)
      if (why.empty() && (map.box[axis] < 1 || map.box[axis] > 256))
        why = fmt::format("the box has {} elements along an axis", map.box[axis]);
  }
  if (why.empty()) return true;
  if (reporter_.is_new(DefectKind::misaligned, now, now))
    reporter_.add(DefectKind::misaligned, now, now, fmt::format("a bulk copy is not possible: {}", why));
  return false;
}

void AsyncProxy::move_row(const bulk_request& request, const Box& row, const Moment& now, Counters& counters) {
  const auto& map = *request.map;
  const bool loads = request.kind == bulk_kind::load;
  bool inside = true;
  int64_t offset = map.first_byte;
  for (int axis = 1; axis < map.rank; ++axis) {
    const int64_t x = row.coordinates[static_cast<size_t>(axis)];
    inside &= x >= 0 && x < map.extents[axis];
    offset += x * map.strides[axis];
  }
  const int64_t x0 = row.coordinates[0];
  const int64_t first = std::max<int64_t>(0, -x0), last = std::min<int64_t>(map.box[0], map.extents[0] - x0);
  inside &= first < last;
  const int64_t first_byte = first * map.element_bytes, bytes = (last - first) * map.element_bytes;
  char* global = nullptr;
  if (inside) {
    const emulated::global_place place{
        static_cast<char*>(memories_.buffer(map.buffer).data) + offset + (x0 + first) * map.element_bytes, map.buffer};
    const AccessKind kind = loads                            ? AccessKind::read
                            : request.kind == bulk_kind::add ? AccessKind::atomic_update
                                                             : AccessKind::write;
    Moment begun = now;
    global = memories_.global_bytes(place, bytes, kind, begun);
    if (!loads && global != nullptr)
      own().writes.push_back({place, bytes, own().stores.groups, begun, request.kind == bulk_kind::add});
    const int64_t start = offset + (x0 + first) * map.element_bytes;
    const int64_t sectors = (start + bytes - 1) / 32 - start / 32 + 1;
    (loads ? counters.global_reads : counters.global_writes) += {0, bytes, 0, 0, sectors, (bytes + 31) / 32};
  }
  for (int64_t byte = 0; byte < row.row_bytes; byte += map.element_bytes) {
    char* shared = row.shared + swizzled(row.at + byte, map.swizzle);
    const bool here = global != nullptr && byte >= first_byte && byte < first_byte + bytes;
    if (loads && !here)
      std::memset(shared, 0, static_cast<size_t>(map.element_bytes));
    else if (loads)
      std::memcpy(shared, global + byte - first_byte, static_cast<size_t>(map.element_bytes));
    else if (here && request.kind == bulk_kind::add)
      add_element(static_cast<emulated::operand>(map.type), global + byte - first_byte, shared);
    else if (here)
      std::memcpy(global + byte - first_byte, shared, static_cast<size_t>(map.element_bytes));
  }
}

void AsyncProxy::move_box(const bulk_request& request, char* shared, const Moment& now, Counters& counters) {
  const auto& map = *request.map;
  Box row{{}, request.shared.at, shared - request.shared.at, map.box[0] * int64_t{map.element_bytes}};
  int64_t rows = 1;
  for (int axis = 1; axis < map.rank; ++axis) rows *= map.box[axis];
  for (int64_t number = 0; number < rows; ++number, row.at += row.row_bytes) {
    row.coordinates[0] = request.coordinates[0];
    int64_t rest = number;
    for (int axis = 1; axis < map.rank; rest /= map.box[axis], ++axis)
      row.coordinates[static_cast<size_t>(axis)] = request.coordinates[axis] + rest % map.box[axis];
    move_row(request, row, now, counters);
  }
}

// To this block's memory, for a thread of this or another block of the cluster.
void AsyncProxy::load_into(const bulk_request& request, int64_t bytes, const Moment& now, Counters& counters) {
  char* shared = memories_.begin_write(request.shared, bytes, now);
  PhaseBarrier* barrier = shared == nullptr ? nullptr : find(request.barrier, now);
  if (barrier == nullptr) return;
  check_announced(*barrier, request.barrier.at, now);
  counters.shared_writes.bytes += bytes;
  Moment begun = now;
  if (request.map != nullptr) {
    move_box(request, shared, now, counters);
  } else if (const char* global = memories_.global_bytes(request.global, bytes, AccessKind::read, begun)) {
    std::memcpy(shared, global, static_cast<size_t>(bytes));
    counters.global_reads += {0, bytes, 0, 0, bytes / 32, bytes / 32};
  }
  barrier->has_copies = true;
  barrier->copies.push_back({request.shared.at, bytes, barrier->phase, now});
  barrier->bytes -= bytes;
  complete_if_due(*barrier, request.barrier.at);
}

// The source may be written again by who knows that the phase of that block's barrier is over.
void AsyncProxy::copy_to_block(const bulk_request& request, Counters& counters) {
  const Moment now = block_.now();
  AsyncProxy* peer = peer_of(request.blocks, "copies to", now);
  if (peer == nullptr) block_.abandon();
  Moment begun = now;
  const char* from = memories_.begin_read(request.from, request.bytes, begun);
  char* to = from == nullptr ? nullptr : peer->memories_.begin_write(request.shared, request.bytes, now);
  PhaseBarrier* barrier = to == nullptr ? nullptr : peer->find(request.barrier, now);
  if (barrier == nullptr) block_.abandon();
  peer->check_announced(*barrier, request.barrier.at, now);
  std::memmove(to, from, static_cast<size_t>(request.bytes));
  counters.shared_reads.bytes += request.bytes;
  counters.shared_writes.bytes += request.bytes;
  barrier->has_copies = true;
  barrier->copies.push_back({request.shared.at, request.bytes, barrier->phase, begun, this, request.from.at});
  barrier->bytes -= request.bytes;
  peer->complete_if_due(*barrier, request.barrier.at);
}

void AsyncProxy::copy(const bulk_request& request, Counters& counters) {
  const Moment now = block_.now();
  int64_t bytes = request.bytes;
  if (const auto* map = request.map) {
    bytes = map->element_bytes;
    for (int axis = 0; axis < map->rank; ++axis) bytes *= map->box[axis];
  }
  if (!is_possible(request, bytes, now)) block_.abandon();
  ++counters.bulk_copies;
  if (request.kind == bulk_kind::to_block) return copy_to_block(request, counters);
  if (request.kind == bulk_kind::load || request.kind == bulk_kind::load_bytes) {
    if (request.blocks == 0) return load_into(request, bytes, now, counters);
    for (int64_t rank = 0; rank < 32; ++rank) {
      if ((request.blocks >> rank & 1u) == 0) continue;
      AsyncProxy* peer = peer_of(rank, "loads into", now);
      if (peer == nullptr) block_.abandon();
      peer->load_into(request, bytes, now, counters);
    }
    return;
  }
  Moment begun = now;
  char* shared = const_cast<char*>(memories_.begin_read(request.shared, bytes, begun));
  if (shared == nullptr) block_.abandon();
  counters.shared_reads.bytes += bytes;
  if (request.map != nullptr) {
    move_box(request, shared, now, counters);
  } else if (Moment written = now;
             char* global = memories_.global_bytes(request.global, bytes, AccessKind::write, written)) {
    std::memcpy(global, shared, static_cast<size_t>(bytes));
    own().writes.push_back({request.global, bytes, own().stores.groups, written});
    counters.global_writes += {0, bytes, 0, 0, bytes / 32, bytes / 32};
  }
  own().stores.under_way.push_back({request.shared.at, bytes, own().stores.groups, begun});
}

void AsyncProxy::end_reads(Reads& reads, int64_t under_way, const Moment& end) {
  while (!reads.under_way.empty() && reads.under_way.front().group < reads.groups - under_way) {
    const Read& read = reads.under_way.front();
    Moment over = end;
    over.site = read.begun.site;
    memories_.end_read(read.at, read.bytes, read.begun, over);
    reads.under_way.pop_front();
  }
}

void AsyncProxy::wait_stores(int64_t under_way, bool written) {
  const Moment now = block_.now();
  end_reads(own().stores, under_way, now);
  std::deque<Write>& writes = own().writes;
  while (written && !writes.empty() && writes.front().group < own().stores.groups - under_way) {
    const Write& write = writes.front();
    Moment end = now;
    end.site = write.begun.site;
    memories_.end_global_write(write.place, write.bytes, write.begun, end, write.adds);
    writes.pop_front();
  }
}

std::optional<int64_t> AsyncProxy::phase_of(int64_t at) const {
  const auto found = barriers_.find(at);
  return found == barriers_.end() ? std::nullopt : std::optional(found->second.phase);
}

std::string AsyncProxy::describe(int64_t at) const {
  const auto found = barriers_.find(at);
  if (found == barriers_.end()) return "";
  const PhaseBarrier& barrier = found->second;
  std::string lacks;
  if (barrier.pending != 0) lacks = fmt::format("{} of {} arrivals", barrier.pending, barrier.count);
  if (barrier.bytes != 0) lacks += fmt::format("{}{} bytes", lacks.empty() ? "" : " and ", barrier.bytes);
  return fmt::format(", whose phase {} lacks {}", barrier.phase, lacks);
}

}  // namespace tilepilot::emulator
