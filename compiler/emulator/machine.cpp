#include "compiler/emulator/live_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/emulator/tensor_core.h"
#include "compiler/layout/bank_conflicts.h"

namespace tilepilot::emulator {

using emulated::collective;

namespace {

Options without_steps(Options options) {
  options.steps = nullptr;
  return options;
}

}  // namespace

Machine::~Machine() = default;
bool Machine::valid() const {
  return std::all_of(live_.begin(), live_.end(), [](const auto& live) { return live->block.valid(); });
}
void Machine::warp_stopped(int warp) {
  running_->memories.count_warp(warp, report_.counters);
  if (steps() == nullptr) return;
  note_operations(warp);
  if (steps()->is_full()) running_->block.abandon();
}
void Machine::thread_ended() {
  ClusterBarrier& barrier = *running_->cluster;
  if (barrier.end(running_->block.now().thread)) pass_cluster_barrier(barrier);
}
void Machine::pass_cluster_barrier(const ClusterBarrier& barrier) {
  for (const auto& live : live_)
    if (live->cluster == &barrier) live->block.wake(kClusterEvent);
}
std::string Machine::describe_event(int64_t event) {
  return event == kClusterEvent ? running_->cluster->describe() : running_->async_proxy.describe(event);
}

// Each has the machine first. Where the call stands in the library tells accesses of the same line apart.
struct Machine::Calls {
  static Machine& of(void* machine) { return *static_cast<Machine*>(machine); }
  static char* access(Machine& self, const Memories::Request& request) {
    char* memory = self.running_->memories.access(request, self.running_->block.now());
    if (self.running_->memories.log_is_full()) self.running_->block.let_others_run(false);
    return memory;
  }
  // Copies of a size that is known are one instruction.
  static void move(void* to, const void* from, uint32_t bytes) {
    switch (bytes) {
      case 2:
        std::memcpy(to, from, 2);
        return;
      case 4:
        std::memcpy(to, from, 4);
        return;
      case 8:
        std::memcpy(to, from, 8);
        return;
      case 16:
        std::memcpy(to, from, 16);
        return;
      default:
        std::memcpy(to, from, bytes);
    }
  }
  static void take(const char* memory, uint32_t bytes, void* to) {
    if (memory == nullptr)
      std::memset(to, 0, bytes);
    else
      move(to, memory, bytes);
  }
  static void read_shared(void* machine, emulated::shared_place from, uint32_t bytes, void* to) {
    take(access(of(machine), {from, {}, true, AccessKind::read, bytes, __builtin_return_address(0)}), bytes, to);
  }
  static void read_global(void* machine, emulated::global_place from, uint32_t bytes, void* to) {
    take(access(of(machine), {{}, from, false, AccessKind::read, bytes, __builtin_return_address(0)}), bytes, to);
  }
  static void write_shared(void* machine, emulated::shared_place to, uint32_t bytes, const void* from) {
    char* memory = access(of(machine), {to, {}, true, AccessKind::write, bytes, __builtin_return_address(0), from});
    if (memory != nullptr) move(memory, from, bytes);
  }
  static void write_global(void* machine, emulated::global_place to, uint32_t bytes, const void* from) {
    char* memory = access(of(machine), {{}, to, false, AccessKind::write, bytes, __builtin_return_address(0), from});
    if (memory != nullptr) move(memory, from, bytes);
  }
  // Polling threads let those run that they wait for.
  static char* update(Machine& self, const Memories::Request& request) {
    static thread_local std::array<char, 16> nowhere;
    if (request.kind == AccessKind::atomic_read) self.running_->block.let_others_run(true);
    char* memory = access(self, request);
    if (memory == nullptr) return nowhere.data();
    self.running_->clock_group.order.access(self.running_->block.now().thread, memory, request.is_shared,
                                            request.kind == AccessKind::atomic_update);
    return memory;
  }
  static char* update_shared(void* machine, emulated::shared_place at, uint32_t bytes, bool changes) {
    const AccessKind kind = changes ? AccessKind::atomic_update : AccessKind::atomic_read;
    return update(of(machine), {at, {}, true, kind, bytes, __builtin_return_address(0)});
  }
  static char* update_global(void* machine, emulated::global_place at, uint32_t bytes, bool changes) {
    const AccessKind kind = changes ? AccessKind::atomic_update : AccessKind::atomic_read;
    return update(of(machine), {{}, at, false, kind, bytes, __builtin_return_address(0)});
  }
  static void fence_device(void* machine) {
    of(machine).running_->clock_group.order.fence(of(machine).running_->block.now().thread);
  }
  static void copy_async(void* machine, const emulated::copy_request* request) {
    Machine& self = of(machine);
    self.running_->memories.copy_async(*request, __builtin_return_address(0), self.running_->block.now());
    if (self.running_->memories.log_is_full()) self.running_->block.let_others_run(false);
  }
  static void commit_copies(void* machine) {
    of(machine).note(StepKind::commit_copies);
    of(machine).running_->memories.commit_copies(of(machine).running_->block.thread());
  }
  static void wait_copies(void* machine, uint32_t under_way) {
    of(machine).note(StepKind::wait_copies, -1, under_way);
    of(machine).running_->memories.wait_copies(under_way, of(machine).running_->block.now());
  }
  static void run_collective(void* machine, collective kind, uint32_t detail, void* lane) {
    of(machine).running_->block.run_collective(kind, detail, lane);
  }
  static void sync_threads(void* machine) {
    Machine& self = of(machine);
    self.note(StepKind::block_sync, 0, self.running_->block.size());
    self.running_->block.sync(0, self.running_->block.size());
  }
  static void sync_named(void* machine, int64_t barrier, int64_t threads) {
    of(machine).note(StepKind::block_sync, barrier, threads);
    of(machine).running_->block.sync(barrier, threads);
  }
  static void sync_grid(void* machine) {
    of(machine).note(StepKind::grid_sync);
    of(machine).running_->block.sync_grid();
  }
  static void sync_cluster_threads(void* machine, emulated::cluster_action action) {
    using emulated::cluster_action;
    Machine& self = of(machine);
    Block& block = self.running_->block;
    ClusterBarrier& barrier = *self.running_->cluster;
    const Moment now = block.now();
    self.note_cluster(action);
    if (action != cluster_action::wait) {
      if (!barrier.arrive(action, now)) block.abandon();
      if (barrier.has_passed(now.thread)) self.pass_cluster_barrier(barrier);
    }
    if (action == cluster_action::arrive || action == cluster_action::arrive_relaxed) return;
    if (!barrier.may_wait(now)) block.abandon();
    while (!barrier.has_passed(now.thread)) block.wait_for(kClusterEvent);
    barrier.pass(now.thread);
  }
  static void write_remote(void* machine, emulated::shared_place to, uint32_t block, uint32_t bytes, const void* from) {
    Machine& self = of(machine);
    const Moment now = self.running_->block.now();
    AsyncProxy* peer = self.running_->async_proxy.peer_of(block, "writes to", now);
    if (peer == nullptr) self.running_->block.abandon();
    if (char* memory = peer->memories().remote_write(to, bytes, from, now)) std::memcpy(memory, from, bytes);
    self.report_.counters.shared_writes.bytes += bytes;
  }
  static void arrive_named(void* machine, int64_t barrier, int64_t threads) {
    of(machine).note(StepKind::block_arrive, barrier, threads);
    of(machine).running_->block.arrive(barrier, threads);
  }
  static int64_t barrier(void* machine, emulated::barrier_action action, emulated::shared_place at, int64_t operand) {
    of(machine).note_barrier(action, at.at, operand);
    return of(machine).running_->async_proxy.act(action, at, operand);
  }
  static void copy_bulk(void* machine, const emulated::bulk_request* request) {
    of(machine).note_copy(*request);
    of(machine).running_->async_proxy.copy(*request, of(machine).report_.counters);
  }
  static void commit_stores(void* machine) {
    of(machine).note(StepKind::commit_stores);
    of(machine).running_->async_proxy.commit_stores();
  }
  static void wait_stores(void* machine, int64_t under_way, bool written) {
    of(machine).note(StepKind::wait_stores, -1, under_way);
    of(machine).running_->async_proxy.wait_stores(under_way, written);
  }
  static void fence_async(void* machine) { of(machine).running_->async_proxy.fence(); }
  static void wgmma_fence(void* machine) { of(machine).running_->async_proxy.fence_wgmma(++of(machine).state_.fences); }
  static void wgmma_commit(void* machine) {
    of(machine).note(StepKind::commit_wgmma);
    of(machine).running_->async_proxy.commit_wgmma();
  }
  static void register_error(void* machine, emulated::register_fault fault, int64_t index, int64_t count) {
    Machine& self = of(machine);
    const Moment now = self.running_->block.now();
    const bool outside = fault == emulated::register_fault::outside;
    const DefectKind kind = outside ? DefectKind::out_of_bounds : DefectKind::uninitialised_read;
    if (!self.reporter_.is_new(kind, now, now)) return;
    self.reporter_.add(kind, now, now,
                       outside ? fmt::format("{} uses register {} of {}", self.reporter_.thread(now), index, count)
                               : fmt::format("{} reads register {} of {}, which nothing has written",
                                             self.reporter_.thread(now), index, count));
  }
  static void fail_check(void* machine, int64_t number) {
    Machine& self = of(machine);
    const Moment now = self.running_->block.now();
    if (self.reporter_.is_new(DefectKind::failed_check, now, now)) {
      self.reporter_.add(DefectKind::failed_check, now, now,
                         fmt::format("check {} fails in {}", number, self.reporter_.thread(now)));
      self.reporter_.last().number = number;
    }
    self.running_->block.abandon();
  }
  static void print(void* machine, const char* text) { of(machine).report_.printed += text; }
};

Machine::Machine(const EmulatedLaunch& launch, const EmulatedArguments& arguments, const Options& options,
                 const std::vector<SourceLine>& sites, emulated::machine_state& state)
    : launch_(launch),
      first_block_(options.first_block),
      most_blocks_(options.most_blocks),
      unwatched_(without_steps(options)),
      state_(state),
      reporter_(report_, sites, options.most_defects, volume(launch.threads)),
      global_(arguments, options) {
  const int64_t in_cluster = volume(launch.cluster), blocks = launch.cooperative ? volume(launch.grid) : in_cluster;
  std::vector<AsyncProxy*> async_proxies;
  for (int64_t k = 0; k < std::max<int64_t>(1, blocks); ++k) {
    const BlockPlace place{launch.cooperative ? 0 : k, launch.cooperative ? 1 : in_cluster};
    if (k == 0 || launch.cooperative)
      clock_groups_.push_back(
          std::make_unique<ClockGroup>(order_, volume(launch.threads) * volume(launch.cluster), launch.cooperative));
    const bool watched = !launch.cooperative || k == first_block_;
    live_.push_back(std::make_unique<LiveBlock>(*this, *clock_groups_.back(), place, watched ? options : unwatched_));
    async_proxies.push_back(&live_.back()->async_proxy);
  }
  for (size_t k = 0; k < live_.size(); ++k) {
    live_[k]->async_proxy.set_peers(launch.cooperative ? std::vector{async_proxies[k]} : async_proxies);
    if (!launch.cooperative) live_[k]->cluster = &live_.front()->own_barrier;
  }
  state = {};
  state.machine = this;
  state.read_shared = Calls::read_shared;
  state.write_shared = Calls::write_shared;
  state.read_global = Calls::read_global;
  state.write_global = Calls::write_global;
  state.update_shared = Calls::update_shared;
  state.update_global = Calls::update_global;
  state.fence_device = Calls::fence_device;
  state.copy_async = Calls::copy_async;
  state.commit_copies = Calls::commit_copies;
  state.wait_copies = Calls::wait_copies;
  state.run_collective = Calls::run_collective;
  state.sync_threads = Calls::sync_threads;
  state.sync_named = Calls::sync_named;
  state.sync_grid = Calls::sync_grid;
  state.sync_cluster_threads = Calls::sync_cluster_threads;
  state.write_remote = Calls::write_remote;
  state.arrive_named = Calls::arrive_named;
  state.register_error = Calls::register_error;
  state.barrier = Calls::barrier;
  state.copy_bulk = Calls::copy_bulk;
  state.commit_stores = Calls::commit_stores;
  state.wait_stores = Calls::wait_stores;
  state.fence_async = Calls::fence_async;
  state.wgmma_fence = Calls::wgmma_fence;
  state.wgmma_commit = Calls::wgmma_commit;
  state.fail_check = Calls::fail_check;
  state.print = Calls::print;
  state.fences = 1;
}

Report Machine::run(void (*kernel)(const int64_t* words), const std::vector<int64_t>& words) && {
  const auto extents = [](const std::array<int64_t, 3>& of) {
    return emulated::index3{static_cast<uint32_t>(of[0]), static_cast<uint32_t>(of[1]), static_cast<uint32_t>(of[2])};
  };
  state_.block_extents = extents(launch_.threads);
  state_.grid_extents = extents(launch_.grid);
  const std::function<void()> body = [&] { kernel(words.data()); };
  if (launch_.cooperative)
    run_together(body);
  else if (volume(launch_.cluster) > 1)
    run_clusters(body);
  else
    run_in_turn(body);
  name_causes();
  return std::move(report_);
}

std::array<int64_t, 3> Machine::place_of(int64_t block) const {
  const auto& grid = launch_.grid;
  return {block % grid[0], block / grid[0] % grid[1], block / (grid[0] * grid[1])};
}

void Machine::enter(LiveBlock& live) {
  running_ = &live;
  state_.cluster_rank = static_cast<uint32_t>(live.rank);
  state_.block_index = {static_cast<uint32_t>(live.place[0]), static_cast<uint32_t>(live.place[1]),
                        static_cast<uint32_t>(live.place[2])};
  reporter_.start_block(live.place, live.rank);
  // Epochs that begin while others run are theirs.
  if (launch_.cooperative) global_.enter(live.clock_group.view(order_.epochs.last() + 1));
}

void Machine::name_causes() {
  for (const auto& live : live_) {
    reporter_.start_block(live->place, live->rank);
    live->async_proxy.tell_wrong_phases();
  }
}

Block::Outcome Machine::ended(LiveBlock& live, Block::Outcome outcome) {
  if (outcome == Block::Outcome::ended) {
    live.async_proxy.end_block();
    live.async_proxy.tell_wrong_phases();
    live.block.operation_counters().add_to(report_.counters);
  }
  return outcome;
}

Block::Outcome Machine::start(LiveBlock& live, std::array<int64_t, 3> place, const std::function<void()>& body) {
  live.place = place;
  live.clock_group.start(place);
  if (!launch_.cooperative) global_.enter(live.clock_group.view(live.clock_group.clocks.epoch()));
  enter(live);
  live.own_barrier.start_cluster();
  live.memories.start_block();
  live.async_proxy.start_block();
  return ended(live, live.block.run(body, *this));
}

Block::Outcome Machine::resume(LiveBlock& live, bool passes_grid_barrier) {
  if (passes_grid_barrier) live.clock_group.order.start_phase();
  enter(live);
  return ended(live, live.block.resume(passes_grid_barrier));
}

int64_t Machine::count(Block::Outcome outcome) const {
  return std::count_if(live_.begin(), live_.end(), [&](const auto& live) { return live->outcome == outcome; });
}

void Machine::run_in_turn(const std::function<void()>& body) {
  const int64_t last = last_of(volume(launch_.grid));
  LiveBlock& live = *live_.front();
  for (int64_t block = first_block_; block < last; ++block) {
    const Block::Outcome outcome = start(live, place_of(block), body);
    if (outcome == Block::Outcome::ended) continue;
    // The other blocks have ended, or wait for room that this one takes.
    if (outcome == Block::Outcome::polling) live.block.report_polling();
    if (outcome == Block::Outcome::at_grid_barrier) live.block.report_grid_barrier();
    return;
  }
}

void Machine::run_together(const std::function<void()>& body) {
  using Outcome = Block::Outcome;
  for (size_t block = 0; block < live_.size(); ++block) {
    live_[block]->outcome = start(*live_[block], place_of(static_cast<int64_t>(block)), body);
    if (live_[block]->outcome == Outcome::abandoned) return;
  }
  for (int idle = 0; count(Outcome::ended) < static_cast<int64_t>(live_.size());) {
    const auto waiting = count(Outcome::at_grid_barrier), polling = count(Outcome::polling);
    const bool passes = polling == 0;
    if (passes && count(Outcome::ended) > 0) return live_.front()->block.report_grid_barrier();
    if (passes) order_.start_phase();
    for (const auto& live : live_) {
      if (live->outcome == Outcome::ended || (!passes && live->outcome == Outcome::at_grid_barrier)) continue;
      live->outcome = resume(*live, passes);
      if (live->outcome == Outcome::abandoned) return;
    }
    // Polling blocks get some iterations in which nothing changes.
    idle = count(Outcome::polling) == polling && count(Outcome::at_grid_barrier) == waiting ? idle + 1 : 0;
    if (passes || idle < 8) continue;
    for (const auto& live : live_)
      if (live->outcome == Outcome::polling) return live->block.report_polling();
  }
}

std::array<int64_t, 3> Machine::place_in_cluster(int64_t cluster, int64_t rank) const {
  std::array<int64_t, 3> place{};
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t blocks = launch_.cluster[axis], clusters = launch_.grid[axis] / blocks;
    place[axis] = cluster % clusters * blocks + rank % blocks;
    cluster /= clusters;
    rank /= blocks;
  }
  return place;
}

void Machine::run_clusters(const std::function<void()>& body) {
  const int64_t last = last_of(volume(launch_.grid) / volume(launch_.cluster));
  for (int64_t cluster = first_block_; cluster < last; ++cluster) {
    ClockGroup& clock_group = *clock_groups_.front();
    clock_group.start(place_in_cluster(cluster, 0));
    global_.enter(clock_group.view(clock_group.clocks.epoch()));
    if (!run_cluster(cluster, body)) return;
  }
}

// The blocks run in turn: each until none of its threads can continue.
bool Machine::run_cluster(int64_t cluster, const std::function<void()>& body) {
  using Outcome = Block::Outcome;
  const auto blocks = static_cast<int64_t>(live_.size());
  for (const auto& live : live_) {  // before any of them accesses another one's
    live->place = place_in_cluster(cluster, live->rank);
    live->own_barrier.start_cluster();
    live->block.start_cluster();
    live->memories.start_block();
    live->async_proxy.start_block();
  }
  for (const auto& live : live_) {
    enter(*live);
    live->outcome = ended(*live, live->block.run(body, *this));
    if (live->outcome == Outcome::abandoned) return false;
  }
  for (int64_t idle = 0; count(Outcome::ended) < blocks;) {
    bool went_on = false;
    for (const auto& live : live_) {
      if (!live->block.can_go_on()) continue;
      went_on |= live->outcome != Outcome::polling;
      live->outcome = resume(*live, false);
      if (live->outcome == Outcome::abandoned) return false;
    }
    idle = went_on ? 0 : idle + 1;
    if (idle < 8 && (went_on || count(Outcome::polling) > 0)) continue;
    const auto stuck =
        std::find_if(live_.begin(), live_.end(), [](const auto& live) { return live->outcome != Outcome::ended; });
    running_ = stuck->get();
    reporter_.start_block(running_->place, running_->rank);
    running_->block.report_deadlock();
    return false;
  }
  return true;
}

void Machine::perform(collective kind, uint32_t detail, int first_thread, std::span<void* const> lanes) {
  Counters& counters = report_.counters;
  if (steps() != nullptr) note_collective(kind, detail, first_thread, lanes);
  switch (kind) {
    case collective::sync_warp: {
      std::vector<uint16_t> members;
      for (int lane = 0; lane < 32 && first_thread + lane < running_->block.size(); ++lane)
        members.push_back(static_cast<uint16_t>(first_thread + lane));
      running_->clock_group.clocks.join(running_->block.numbers_of(members));
      ++counters.warp_syncs;
      return;
    }
    case collective::shuffle:
      ++counters.shuffles;
      return shuffle(detail, lanes);
    case collective::vote:
      ++counters.votes;
      return vote(detail, lanes);
    default:
      break;
  }
  if (first_thread + 32 > running_->block.size()) {
    const Moment now = running_->block.now();
    if (reporter_.is_new(DefectKind::unsupported, now, now))
      reporter_.add(DefectKind::unsupported, now, now, "tensor cores need warps of 32 threads");
    running_->block.abandon();
  }
  if (kind == collective::wgmma) {
    ++counters.wgmma;
    return running_->async_proxy.multiply(first_thread, lanes, state_.fences++);
  }
  if (kind == collective::wgmma_wait) return running_->async_proxy.wait_wgmma(first_thread, detail);
  if (kind == collective::mma) {
    ++counters.mma;
    return multiply(detail, lanes);
  }
  ++(kind == collective::load_matrix ? counters.ldmatrix : counters.stmatrix);
  move_matrices(kind == collective::store_matrix, detail, first_thread, lanes);
}

// Semantics: compiler/ir/stmt.h, Shuffle. Also PTX ISA, "shfl.sync".
void Machine::shuffle(uint32_t detail, std::span<void* const> lanes) {
  const auto kind = static_cast<emulated::shuffle_kind>(detail >> 8);
  const int width = static_cast<int>(detail & 255u);
  for (int lane = 0; lane < 32; ++lane) {
    auto* own = static_cast<emulated::shuffle_lane*>(lanes[static_cast<size_t>(lane)]);
    if (own == nullptr) continue;
    const int first = lane / width * width, last = first + width - 1, operand = own->lane & 31;
    int other = lane;
    switch (kind) {
      case emulated::shuffle_kind::from:
        other = first + operand % width;
        break;
      case emulated::shuffle_kind::by_xor:
        other = lane ^ operand;
        break;
      case emulated::shuffle_kind::up:
        other = lane - operand < first ? lane : lane - operand;
        break;
      case emulated::shuffle_kind::down:
        other = lane + operand;
        break;
    }
    if (other > last || lanes[static_cast<size_t>(other)] == nullptr) other = lane;
    own->result = static_cast<emulated::shuffle_lane*>(lanes[static_cast<size_t>(other)])->value;
  }
}

void Machine::vote(uint32_t detail, std::span<void* const> lanes) {
  uint32_t ballot = 0, present = 0;
  for (size_t lane = 0; lane < 32; ++lane) {
    if (lanes[lane] == nullptr) continue;
    present |= 1u << lane;
    if (static_cast<emulated::vote_lane*>(lanes[lane])->value != 0) ballot |= 1u << lane;
  }
  const auto kind = static_cast<emulated::vote_kind>(detail);
  const uint32_t result = kind == emulated::vote_kind::any   ? ballot != 0
                          : kind == emulated::vote_kind::all ? ballot == present
                                                             : ballot;
  for (void* lane : lanes)
    if (lane != nullptr) static_cast<emulated::vote_lane*>(lane)->result = result;
}

// Word w of row r of a matrix belongs to lane 4 * r + w; transposed, half h of word w belongs to row 2 * w + h.
void Machine::move_matrices(bool stores, uint32_t detail, int first_thread, std::span<void* const> lanes) {
  const size_t matrices = detail & 255u;
  const bool transposed = detail >> 8 != 0;
  const auto lane = [&](size_t number) -> emulated::matrix_lane& {
    return *static_cast<emulated::matrix_lane*>(lanes[number]);
  };
  for (size_t matrix = 0; matrix < matrices; ++matrix) {
    std::array<std::array<uint16_t, 8>, 8> tile{};
    const auto exchange = [&](bool gives) {
      for (size_t number = 0; number < 32; ++number) {
        std::array<uint16_t, 2> halves;
        uint32_t& word = lane(number).values[matrix];
        std::memcpy(halves.data(), &word, 4);
        for (size_t half = 0; half < 2; ++half) {
          const size_t major = number / 4, minor = number % 4 * 2 + half;
          uint16_t& cell = transposed ? tile[minor][major] : tile[major][minor];
          (gives ? cell : halves[half]) = gives ? halves[half] : cell;
        }
        if (!gives) std::memcpy(&word, halves.data(), 4);
      }
    };
    if (stores) exchange(true);
    std::array<int64_t, 8> addresses;
    for (size_t row = 0; row < 8; ++row) {
      const size_t holder = 8 * matrix + row;
      const Moment who = running_->block.now_of(first_thread + static_cast<int>(holder));
      char* memory = running_->memories.matrix_row(lane(holder).row, stores, tile[row].data(), who);
      addresses[row] = memory == nullptr ? layout::kNoAccess : lane(holder).row.at;
      if (memory == nullptr) continue;
      if (stores)
        std::memcpy(memory, tile[row].data(), 16);
      else
        std::memcpy(tile[row].data(), memory, 16);
    }
    if (!stores) exchange(false);
    Traffic traffic{0, 128, layout::wavefronts(addresses, 16), layout::bank_conflicts(addresses, 16)};
    traffic.instructions = matrix == 0;
    (stores ? report_.counters.shared_writes : report_.counters.shared_reads) += traffic;
    report_.counters.shared_lines[reporter_.line(state_.site)] += traffic;
    if (steps() != nullptr) note_matrix(stores, first_thread, traffic, lane(8 * matrix).row);
  }
}

}  // namespace tilepilot::emulator
