#include "compiler/emulator/memories.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "compiler/emulator/report/step_log.h"

namespace tilepilot::emulator {
namespace {

constexpr int kLanesOfWarp = 32;

std::string_view verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
      return "reads";
    case AccessKind::write:
      return "writes";
    case AccessKind::atomic_read:
      return "reads atomically";
    case AccessKind::atomic_update:
      return "updates atomically";
  }
  return "";
}

std::string bytes_text(int64_t bytes) { return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes); }

}  // namespace

Memories::Memories(const EmulatedLaunch& launch, int64_t first_thread, const Around& around, const Options& options,
                   Reporter& reporter)
    : options_(options),
      first_thread_(static_cast<size_t>(first_thread)),
      global_(around.global),
      launch_(around.launch),
      clocks_(around.clocks),
      order_(around.order),
      reporter_(reporter),
      view_{&around.clocks, &around.fences},
      arena_bytes_(launch.shared_bytes) {
  const auto threads = static_cast<size_t>(launch.threads[0] * launch.threads[1] * launch.threads[2]);
  copies_.resize(threads);
  logs_.resize((threads + kLanesOfWarp - 1) / kLanesOfWarp);
  arena_storage_.resize(static_cast<size_t>(arena_bytes_) / sizeof(std::max_align_t) + 1);
  arena_ = reinterpret_cast<char*>(arena_storage_.data());
  if (options.check_races || options.check_uninitialised)
    arena_shadow_ = std::make_unique<Shadow>(view_, arena_bytes_, !options.check_uninitialised);
}

void Memories::start_block() {
  if (arena_shadow_) arena_shadow_->clear();
  std::memset(arena_, 0xff, static_cast<size_t>(arena_bytes_));  // NaN to who reads it unwritten
  copies_.assign(copies_.size(), {});
}

std::string Memories::where(const Request& request, int64_t at) const {
  if (request.is_shared) {
    const int64_t first = request.shared.first;
    return fmt::format("byte {} of the shared tile at {}", at - first, first);
  }
  if (request.global.buffer < 0) return fmt::format("address {:#x}", static_cast<uint64_t>(at));
  return fmt::format("byte {} of `{}`", at, global_.buffer(request.global.buffer).given.name);
}

bool Memories::check_place(const Request& request, int64_t at, int64_t first, int64_t last, const Moment& who) {
  const int64_t bytes = request.bytes;
  if (at < first || at + bytes > last) {
    if (reporter_.is_new(DefectKind::out_of_bounds, who, who)) {
      reporter_.add(DefectKind::out_of_bounds, who, who,
                    fmt::format("{} {} {} at {}, which has {}", reporter_.thread(who), verb(request.kind),
                                bytes_text(bytes), where(request, at), bytes_text(last - first)));
    }
    return false;
  }
  const int64_t address = request.is_shared ? at : reinterpret_cast<int64_t>(request.global.at);
  const int64_t alignment = request.alignment != 0 ? request.alignment : bytes;
  if ((address & (alignment - 1)) == 0) return true;  // a power of two
  if (reporter_.is_new(DefectKind::misaligned, who, who)) {
    reporter_.add(DefectKind::misaligned, who, who,
                  fmt::format("{} {} {} at {}, which is not aligned to {}", reporter_.thread(who), verb(request.kind),
                              bytes_text(bytes), where(request, at), bytes_text(alignment)));
  }
  return false;
}

bool Memories::is_mapped(const char* at, int64_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(at), last = first + static_cast<uintptr_t>(bytes);
  for (uintptr_t one = first / page * page; one < last; one += page) {
    if (mapped_.contains(one)) continue;
    unsigned char resident = 0;
    if (mincore(reinterpret_cast<void*>(one), page, &resident) != 0) return false;
    mapped_.insert(one);
  }
  return true;
}

Memories::Place Memories::find_by_address(const Request& request, const Moment& who) {
  const auto at = reinterpret_cast<int64_t>(request.global.at);
  if (is_mapped(request.global.at, request.bytes))
    return check_place(request, at, at, at + request.bytes, who) ? Place{request.global.at, nullptr, at} : Place{};
  if (reporter_.is_new(DefectKind::out_of_bounds, who, who)) {
    reporter_.add(DefectKind::out_of_bounds, who, who,
                  fmt::format("{} {} {} at {}, where there is no memory", reporter_.thread(who), verb(request.kind),
                              bytes_text(request.bytes), where(request, at)));
  }
  return {};
}

Memories::Place Memories::find(const Request& request, const Moment& who) {
  if (request.is_shared) {
    const auto& place = request.shared;
    const int64_t last = std::min<int64_t>(place.last, arena_bytes_);
    if (!check_place(request, place.at, place.first, last, who)) return {};
    return {arena_ + place.at, arena_shadow_.get(), place.at};
  }
  if (request.global.buffer < 0) return find_by_address(request, who);
  const GlobalMemory::Buffer& buffer = global_.buffer(request.global.buffer);
  const int64_t at = request.global.at - static_cast<char*>(buffer.given.data);
  if (!check_place(request, at, 0, buffer.given.bytes, who)) return {};
  return {request.global.at, buffer.shadow.get(), at};
}

// Of memory that is known by its address alone, the parameter that it belongs to; what belongs to none is taken as it
// is.
Memories::Request Memories::with_buffer(Request request) const {
  if (request.is_shared || request.global.buffer >= 0) return request;
  for (int64_t number = 0; number < global_.count(); ++number) {
    const EmulatedBuffer& given = global_.buffer(number).given;
    const auto* first = static_cast<const char*>(given.data);
    if (request.global.at >= first && request.global.at < first + given.bytes) request.global.buffer = number;
  }
  return request;
}

char* Memories::access(const Request& given, const Moment& who) {
  const Request request = with_buffer(given);
  const Place place = find(request, who);
  if (place.memory == nullptr) return nullptr;
  if (place.shadow != nullptr) {
    const Findings found = place.shadow->access(place.at, request.bytes, request.kind, who);
    if (found.conflict || found.unwritten) tell(found, request, place, who);
    if (found.overwrites_atomic) order_.overwrite(place.memory, request.bytes, request.is_shared);
  }
  if (options_.count) log(request, place.at, who, request.asynchronous);
  return place.memory;
}

char* Memories::matrix_row(const emulated::shared_place& row, bool writes, const void* value, const Moment& who) {
  return unlogged({row, {}, true, writes ? AccessKind::write : AccessKind::read, 16, nullptr, value}, who);
}

char* Memories::remote_write(const emulated::shared_place& to, uint32_t bytes, const void* value, const Moment& who) {
  return unlogged({to, {}, true, AccessKind::write, bytes, nullptr, value}, who);
}

char* Memories::unlogged(const Request& request, const Moment& who) {
  const Place place = find(request, who);
  if (place.memory == nullptr) return nullptr;
  if (place.shadow != nullptr) {
    const Findings found = place.shadow->access(place.at, request.bytes, request.kind, who);
    if (found.conflict || found.unwritten) tell(found, request, place, who);
  }
  return place.memory;
}

// Buffers count as far apart, and as aligned as an allocation of a device.
void Memories::log(const Request& request, int64_t at, const Moment& who, bool asynchronous) {
  const bool writes = request.kind == AccessKind::write || request.kind == AccessKind::atomic_update;
  const bool atomic = request.kind == AccessKind::atomic_read || request.kind == AccessKind::atomic_update;
  const int64_t address = request.is_shared ? at : request.global.buffer << 44 | at;
  AccessLog& log = logs_[in_block(who) / kLanesOfWarp];
  log_is_full_ = log.add(static_cast<int>(in_block(who) % kLanesOfWarp),
                         {request.code, address, who.site, request.shared.first, static_cast<uint16_t>(request.bytes),
                          request.is_shared, writes, asynchronous, atomic});
}

// Where the call stands tells nothing: compilers write one call at several places of the code.
void Memories::log_step(int64_t number, const Moment& who) {
  static constexpr std::array<char, 256> kKinds{};
  const void* kind = &kKinds[static_cast<size_t>(options_.steps->prepared(number).kind)];
  AccessLog& log = logs_[in_block(who) / kLanesOfWarp];
  log_is_full_ = log.add(static_cast<int>(in_block(who) % kLanesOfWarp),
                         {kind, number, who.site, 0, 0, false, false, false, false, true});
}

void Memories::add_step(int warp, const WarpAccess& access, const Traffic& traffic) {
  const LoggedAccess& kind = access.kind;
  Step step{StepKind::copy};
  if (kind.step) {
    step = options_.steps->prepared(kind.address);
  } else {
    if (kind.asynchronous && !kind.shared) return;  // a copy is logged where it writes, too
    step.kind = kind.asynchronous ? StepKind::copy
                : kind.shared     ? (kind.write ? StepKind::shared_write : StepKind::shared_read)
                                  : (kind.write ? StepKind::global_write : StepKind::global_read);
    step.at = kind.shared ? kind.address : -1;
    step.tile = kind.shared ? static_cast<int64_t>(kind.tile) : -1;
    step.width = kind.bytes;
  }
  step.warp = static_cast<int32_t>(first_thread_ / kLanesOfWarp) + warp;
  step.lanes = static_cast<int32_t>(access.lanes);
  for (size_t lane = 0; lane < access.addresses.size(); ++lane)
    step.mask |= uint32_t{access.addresses[lane] >= 0} << lane;
  step.line = reporter_.line(kind.site);
  if (!kind.step) {
    step.bytes = traffic.bytes;
    step.traffic = traffic;
  }
  options_.steps->add(std::move(step));
}

void Memories::count_warp(int warp, Counters& counters) {
  log_is_full_ = false;
  logs_[static_cast<size_t>(warp)].flush([&](const WarpAccess& access) {
    const LoggedAccess& kind = access.kind;
    if (kind.step) return add_step(warp, access, {});
    const Traffic traffic = traffic_of(access);
    if (options_.steps != nullptr) add_step(warp, access, traffic);
    (kind.shared  ? kind.write ? counters.shared_writes : counters.shared_reads
     : kind.write ? counters.global_writes
                  : counters.global_reads) += traffic;
    (kind.shared ? counters.shared_lines : counters.global_lines)[reporter_.line(kind.site)] += traffic;
    counters.async_copies += kind.asynchronous && kind.shared;
    counters.atomics += kind.atomic;
  });
}

char* Memories::begin_write(const emulated::shared_place& to, int64_t bytes, const Moment& who) {
  const Request request{to, {}, true, AccessKind::write, static_cast<uint32_t>(bytes), nullptr, nullptr, 16};
  const Place place = find(request, who);
  if (place.memory == nullptr || place.shadow == nullptr || !options_.check_races) {
    if (place.shadow != nullptr) place.shadow->access(place.at, bytes, AccessKind::write, who);
    return place.memory;
  }
  const Findings found = place.shadow->begin_copy(place.at, bytes, true, who);
  if (found.conflict) tell_conflict(*found.conflict, request, who);
  return place.memory;
}

const char* Memories::begin_read(const emulated::shared_place& from, int64_t bytes, Moment& who) {
  const Request request{from, {}, true, AccessKind::read, static_cast<uint32_t>(bytes), nullptr, nullptr, 16};
  const Place place = find(request, who);
  if (place.memory == nullptr || place.shadow == nullptr) return place.memory;
  const Findings found = place.shadow->begin_read(place.at, bytes, who);
  if (found.conflict || found.unwritten) tell(found, request, place, who);
  return place.memory;
}

void Memories::end_write(int64_t at, int64_t bytes, const Moment& begun, const Moment& end) {
  if (arena_shadow_) arena_shadow_->end_copy(at, bytes, begun, end);
}

void Memories::end_read(int64_t at, int64_t bytes, const Moment& begun, const Moment& end) {
  if (arena_shadow_) arena_shadow_->end_read(at, bytes, begun, end);
}

char* Memories::global_bytes(const emulated::global_place& place, int64_t bytes, AccessKind kind, Moment& who) {
  const Request request{{}, place, false, kind, static_cast<uint32_t>(bytes), nullptr, nullptr, 1};
  const Place found_place = find(request, who);
  if (found_place.memory == nullptr || found_place.shadow == nullptr) return found_place.memory;
  Shadow& shadow = *found_place.shadow;
  const Findings found = !options_.check_races       ? shadow.access(found_place.at, bytes, kind, who)
                         : kind == AccessKind::read  ? shadow.async_read(found_place.at, bytes, who)
                         : kind == AccessKind::write ? shadow.begin_copy(found_place.at, bytes, true, who)
                                                     : shadow.begin_update(found_place.at, bytes, who);
  if (found.conflict || found.unwritten) tell(found, request, found_place, who);
  if (found.overwrites_atomic) order_.overwrite(found_place.memory, bytes, false);
  return found_place.memory;
}

void Memories::end_global_write(const emulated::global_place& place, int64_t bytes, const Moment& begun,
                                const Moment& end, bool is_update) {
  const GlobalMemory::Buffer& buffer = global_.buffer(place.buffer);
  if (!buffer.shadow || !options_.check_races) return;
  const int64_t at = place.at - static_cast<char*>(buffer.given.data);
  if (is_update)
    buffer.shadow->end_update(at, bytes, begun, end);
  else
    buffer.shadow->end_copy(at, bytes, begun, end);
}

bool Memories::access_barrier(const emulated::shared_place& at, bool makes, const Moment& who) {
  const AccessKind kind = makes ? AccessKind::write : AccessKind::atomic_update;
  const uint64_t value = 0;
  const Request request{at, {}, true, kind, 8, nullptr, &value};
  const Place place = find(request, who);
  if (place.memory == nullptr) return false;
  if (place.shadow == nullptr) return true;
  const Findings found = place.shadow->access(place.at, 8, kind, who);
  if (found.conflict && options_.check_races) tell_conflict(*found.conflict, request, who);
  return true;
}

std::optional<Moment> Memories::written_since(const emulated::shared_place& barrier, const Moment& made) const {
  if (!arena_shadow_) return std::nullopt;
  for (const int64_t at : {barrier.at, barrier.at + 4}) {
    const Moment& last = arena_shadow_->last_write(at);
    if (last.epoch != made.epoch || last.clock != made.clock || last.thread != made.thread || last.site != made.site)
      return last;
  }
  return std::nullopt;
}

void Memories::copy_async(const emulated::copy_request& request, const void* code, const Moment& now) {
  Copy copy{request.to.at, copies_[in_block(now)].groups, request.bytes, now.site, {}};
  if (request.inside) {
    const Request read{{}, request.from, false, AccessKind::read, request.bytes, code, nullptr, 0, true};
    if (const char* memory = access(read, now)) std::memcpy(copy.value.data(), memory, request.bytes);
  }
  const Request write{request.to, {}, true, AccessKind::write, request.bytes, code, copy.value.data()};
  const Place place = find(write, now);
  if (place.memory == nullptr) return;
  if (place.shadow != nullptr && options_.check_races) {
    const Findings found = place.shadow->begin_copy(place.at, request.bytes, false, now);
    if (found.conflict) tell(found, write, place, now);
  } else if (place.shadow != nullptr) {
    place.shadow->access(place.at, request.bytes, AccessKind::write, now);
  }
  if (options_.count) log(write, place.at, now, true);
  copies_[in_block(now)].under_way.push_back(copy);
}

void Memories::wait_copies(int64_t under_way, const Moment& now) {
  Copies& copies = copies_[in_block(now)];
  while (!copies.under_way.empty() && copies.under_way.front().group < copies.groups - under_way) {
    const Copy& copy = copies.under_way.front();
    Moment end = now;
    end.site = copy.site;
    land(copy, now, end);
    copies.under_way.pop_front();
  }
}

void Memories::land_copies(const Moment& now, const std::function<Moment(uint32_t site)>& end) {
  Copies& copies = copies_[in_block(now)];
  for (const Copy& copy : copies.under_way) land(copy, now, end(copy.site));
  copies.under_way.clear();
}

void Memories::land(const Copy& copy, const Moment& now, const Moment& end) {
  std::memcpy(arena_ + copy.at, copy.value.data(), copy.bytes);
  Moment begun = now;
  begun.site = copy.site;
  if (arena_shadow_) arena_shadow_->end_copy(copy.at, copy.bytes, begun, end);
}

void Memories::tell(const Findings& found, const Request& request, const Place& place, const Moment& who) {
  if (found.conflict && options_.check_races) {
    // Who writes what is there already disturbs nobody.
    const bool same = found.conflict->kind == ConflictKind::write_write && request.kind == AccessKind::write &&
                      request.value != nullptr && std::memcmp(place.memory, request.value, request.bytes) == 0;
    if (!same) tell_conflict(*found.conflict, request, who);
  }
  if (!found.unwritten || !options_.check_uninitialised) return;
  if (!reporter_.is_new(DefectKind::uninitialised_read, who, who)) return;
  reporter_.add(DefectKind::uninitialised_read, who, who,
                fmt::format("{} {} {}, which nothing has written", reporter_.thread(who), verb(request.kind),
                            where(request, *found.unwritten)));
}

void Memories::tell_conflict(const Conflict& conflict, const Request& request, const Moment& who) {
  const Moment& earlier = conflict.earlier;
  const std::string place = where(request, conflict.at), line = reporter_.place(earlier.site);
  if (conflict.kind == ConflictKind::unfenced) {
    if (!reporter_.is_new(DefectKind::missing_fence, earlier, who)) return;
    reporter_.add(DefectKind::missing_fence, earlier, who,
                  fmt::format("{}'s asynchronous access to {} need not see what {} wrote at {}: no "
                              "`fence_async` stands between",
                              reporter_.thread(who), place, reporter_.thread(earlier), line));
    return;
  }
  if (conflict.kind == ConflictKind::pending) {
    if (!reporter_.is_new(DefectKind::pending_copy, earlier, who)) return;
    const std::string whose = earlier.thread == who.thread ? "its own" : reporter_.thread(earlier) + "'s";
    reporter_.add(DefectKind::pending_copy, earlier, who,
                  fmt::format("{} {} {}, to which {} asynchronous copy at {} is under way", reporter_.thread(who),
                              verb(request.kind), place, whose, line));
    return;
  }
  if (!reporter_.is_new(DefectKind::data_race, earlier, who)) return;
  std::string other = clocks_.is_beside(earlier) ? "what works beside the threads" : reporter_.thread(earlier);
  if (clocks_.is_bulk_copy(earlier)) other = "a bulk copy";
  if (conflict.between_blocks) {
    const auto block = launch_.block_at(earlier.epoch);
    other += fmt::format(" of block ({}, {}, {})", block[0], block[1], block[2]);
  }
  const char* did = conflict.kind == ConflictKind::read_write ? "read" : "wrote";
  reporter_.add(DefectKind::data_race, earlier, who,
                fmt::format("{} {} {}, which {} {} at {}: nothing orders the two", reporter_.thread(who),
                            verb(request.kind), place, other, did, line));
}

}  // namespace tilepilot::emulator
