#include "compiler/emulator/block.h"

#include <fmt/format.h>

#include "compiler/emulator/order/cluster_barrier.h"

namespace tilepilot::emulator {
namespace {

using emulated::collective;

std::string_view name_of_collective(collective kind) {
  switch (kind) {
    case collective::sync_warp:
      return "sync_warp";
    case collective::shuffle:
      return "a shuffle";
    case collective::vote:
      return "a vote";
    case collective::load_matrix:
      return "ldmatrix";
    case collective::store_matrix:
      return "stmatrix";
    case collective::mma:
      return "mma";
    case collective::wgmma:
      return "wgmma";
    case collective::wgmma_wait:
      return "wgmma_wait";
  }
  return "";
}

std::string threads_text(int first, int last) {
  return first == last ? fmt::format("thread {}", first) : fmt::format("threads {}-{}", first, last);
}

}  // namespace

Block::Block(const EmulatedLaunch& launch, BlockPlace place, emulated::machine_state& state, Clocks& clocks,
             Reporter& reporter)
    : extents_(launch.threads),
      place_(place),
      state_(state),
      clocks_(clocks),
      reporter_(reporter),
      stacks_(static_cast<size_t>(extents_[0] * extents_[1] * extents_[2]), static_cast<size_t>(launch.local_bytes)),
      threads_(stacks_.count()),
      operation_counters_(launch.operation_counters, stacks_.count()),
      warps_((stacks_.count() + kWarp - 1) / kWarp),
      ready_(stacks_.count()) {}

std::span<Block::Thread> Block::lanes_of(int warp) {
  return std::span(threads_).subspan(static_cast<size_t>(warp * kWarp),
                                     static_cast<size_t>(warps_[static_cast<size_t>(warp)].lanes));
}

Block::Outcome Block::run(const std::function<void()>& body, BlockOwner& owner) {
  owner_ = &owner;
  body_ = &body;
  begun_ = true;
  operation_counters_.start_block();
  ended_ = polls_ = at_grid_ = 0;
  ready_first_ = ready_count_ = 0;
  barriers_ = {};
  for (size_t warp = 0; warp < warps_.size(); ++warp)
    warps_[warp] = {static_cast<int>(std::min<size_t>(kWarp, threads_.size() - warp * kWarp)), 0};
  for (size_t k = 0; k < threads_.size(); ++k) {
    threads_[k] = {};
    threads_[k].context = stacks_.start(k, &Block::run_thread, this);
    make_ready(static_cast<int>(k));
  }
  return enter();
}

Block::Outcome Block::enter() {
  take_turn(ready_[ready_first_]);
  ready_first_ = (ready_first_ + 1) % ready_.size();
  --ready_count_;
  switch_context(scheduler_, running().context);
  return outcome_;
}

// Back to who runs the block; who is left here goes on when the block is resumed.
void Block::leave(Outcome outcome) {
  outcome_ = outcome;
  switch_context(running().context, scheduler_);
}

std::vector<uint16_t> Block::numbers_of(std::span<const uint16_t> threads) const {
  std::vector<uint16_t> numbers;
  for (const uint16_t thread : threads) numbers.push_back(static_cast<uint16_t>(number_of(thread)));
  return numbers;
}

Block::Outcome Block::resume(bool passes_grid_barrier) {
  polls_ = 0;
  if (passes_grid_barrier) {
    at_grid_ = 0;
    for (size_t thread = 0; thread < threads_.size(); ++thread) {
      if (threads_[thread].stop != Stop::grid) continue;
      threads_[thread].stop = Stop::none;
      --warp_of(static_cast<int>(thread)).stopped;
      make_ready(static_cast<int>(thread));
    }
  }
  return enter();
}

void Block::run_thread(void* block) {
  auto* self = static_cast<Block*>(block);
  (*self->body_)();
  self->end();
}

void Block::make_ready(int thread) {
  ready_[(ready_first_ + ready_count_) % ready_.size()] = static_cast<uint16_t>(thread);
  ++ready_count_;
}

// From here on the thread is the one that runs.
void Block::take_turn(int thread) {
  current_ = thread;
  state_.site = running().site;
  state_.operation_counters = operation_counters_.of(thread);
  state_.thread_index = {static_cast<uint32_t>(thread % extents_[0]),
                         static_cast<uint32_t>(thread / extents_[0] % extents_[1]),
                         static_cast<uint32_t>(thread / (extents_[0] * extents_[1]))};
}

void Block::switch_away() {
  if (ready_count_ == 0) {
    if (place_.blocks > 1) return leave(Outcome::waiting);
    report_deadlock();
    abandon();
  }
  Thread& left = running();
  const int next = ready_[ready_first_];
  ready_first_ = (ready_first_ + 1) % ready_.size();
  --ready_count_;
  if (next == current_) return;
  take_turn(next);
  switch_context(left.context, running().context);
}

// Stands still until somebody makes it ready, which may have happened by now.
void Block::stop(Stop kind) {
  Thread& self = running();
  self.stop = kind;
  self.site = state_.site;
  Warp& warp = warp_of(current_);
  ++warp.stopped;
  if (warp.stopped < warp.lanes) return;
  owner_->warp_stopped(current_ / kWarp);
  // Those that only let others run are as good as running: they stop again before this happens again.
  for (Thread& lane : lanes_of(current_ / kWarp)) {
    if (lane.stop != Stop::paused) continue;
    lane.stop = Stop::none;
    --warp.stopped;
  }
}

void Block::end() {
  polls_ = 0;
  ++ended_;
  stop(Stop::ended);
  check_stopped_warp(current_ / kWarp);
  if (!barriers_[0].arrived.empty()) pass_if_full(0);
  owner_->thread_ended();
  if (ended_ == size()) {
    outcome_ = Outcome::ended;
    leave_context(running().context, scheduler_);
  }
  switch_away();
  __builtin_unreachable();
}

void Block::abandon() {
  outcome_ = Outcome::abandoned;
  leave_context(running().context, scheduler_);
  __builtin_unreachable();
}

void Block::wait_for(int64_t event) {
  polls_ = 0;
  running().barrier = event;
  stop(Stop::event);
  switch_away();
}

void Block::wake(int64_t event) {
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    Thread& sleeper = threads_[thread];
    if (sleeper.stop != Stop::event || sleeper.barrier != event) continue;
    sleeper.stop = Stop::none;
    --warp_of(static_cast<int>(thread)).stopped;
    make_ready(static_cast<int>(thread));
  }
}

void Block::let_others_run(bool polls) {
  make_ready(current_);
  stop(Stop::paused);
  if (polls && ++polls_ > kMostPolls)
    leave(Outcome::polling);
  else
    switch_away();
  if (running().stop != Stop::paused) return;
  running().stop = Stop::none;
  --warp_of(current_).stopped;
}

bool Block::agrees(const Thread& a, const Thread& b) const {
  return a.stop == b.stop && a.collective == b.collective && a.detail == b.detail && a.site == b.site;
}

void Block::run_collective(collective kind, uint32_t detail, void* lane) {
  Thread& self = running();
  self.collective = kind;
  self.detail = detail;
  self.lane = lane;
  polls_ = 0;
  stop(Stop::collective);
  const int warp = current_ / kWarp;
  check_stopped_warp(warp);
  const auto lanes = lanes_of(warp);
  // Lanes may stand still only to let others run.
  const bool all = warp_of(current_).stopped == warp_of(current_).lanes &&
                   std::all_of(lanes.begin(), lanes.end(), [&](const Thread& t) { return agrees(t, self); });
  if (all)
    complete_collective(warp);
  else
    switch_away();
}

// The other lanes go on after the one that came last.
void Block::complete_collective(int warp) {
  const auto lanes = lanes_of(warp);
  std::array<void*, kWarp> brought{};
  for (size_t lane = 0; lane < lanes.size(); ++lane) brought[lane] = lanes[lane].lane;
  const int first = warp * kWarp;
  owner_->perform(running().collective, running().detail, first, brought);
  for (Thread& lane : lanes) lane.stop = Stop::none;
  warps_[static_cast<size_t>(warp)].stopped = 0;
  for (int thread = first; thread < first + static_cast<int>(lanes.size()); ++thread)
    if (thread != current_) make_ready(thread);
}

// All its lanes stand still. Where that can have no end, this does not return.
void Block::check_stopped_warp(int warp) {
  const Warp& own = warps_[static_cast<size_t>(warp)];
  if (own.stopped < own.lanes) return;
  const auto lanes = lanes_of(warp);
  bool at_collective = false, waits = false, differs = false;
  const Thread* waiting = nullptr;
  for (const Thread& lane : lanes) {
    // Who waits for an event may go on and come here.
    if (lane.stop == Stop::none || lane.stop == Stop::paused || lane.stop == Stop::event) return;
    at_collective |= lane.stop == Stop::collective;
    differs |= !agrees(lane, lanes[0]);
    if (lane.stop != Stop::barrier) continue;
    waits = true;
    if (waiting != nullptr && (waiting->barrier != lane.barrier || waiting->site != lane.site)) report_divergence(warp);
    waiting = &lane;
  }
  if (at_collective && (differs || waits)) report_divergence(warp);
}

Block::Barrier* Block::join_barrier(int64_t number, int64_t expected) {
  const Moment self = now();
  const auto misuse = [&](const Moment& other, std::string message) {
    if (reporter_.is_new(DefectKind::barrier_misuse, other, self))
      reporter_.add(DefectKind::barrier_misuse, other, self, std::move(message));
    abandon();
  };
  if (number < 0 || number >= kBarriers)
    misuse(self, fmt::format("there is no barrier {}: a block has {}", number, kBarriers));
  if (expected <= 0 || expected > (size() + kWarp - 1) / kWarp * kWarp)
    misuse(self, fmt::format("barrier {} waits for {} threads, the block has {}", number, expected, size()));
  // The hardware counts warps.
  if (expected % kWarp != 0 && expected != size())
    misuse(self, fmt::format("barrier {} waits for {} threads, no multiple of {}", number, expected, kWarp));
  Barrier& barrier = barriers_[static_cast<size_t>(number)];
  const auto& passing = barrier.passing;
  if (std::find(passing.begin(), passing.end(), current_) != passing.end())
    misuse(barrier.first, fmt::format("thread {} comes to barrier {} twice before others have come", current_, number));
  if (barrier.arrived.empty()) {
    barrier.expected = expected;
    barrier.first = self;
  } else if (barrier.expected != expected) {
    misuse(barrier.first, fmt::format("thread {} comes to barrier {} for {} threads, thread {} came to it for {}",
                                      current_, number, expected, barrier.arrived.front(), barrier.expected));
  }
  barrier.arrived.push_back(static_cast<uint16_t>(current_));
  polls_ = 0;
  return &barrier;
}

void Block::sync(int64_t number, int64_t expected) {
  join_barrier(number, expected);
  running().barrier = number;
  running().collective = {};
  running().detail = 0;
  stop(Stop::barrier);
  pass_if_full(number);
  if (running().stop == Stop::barrier) {
    check_stopped_warp(current_ / kWarp);
    switch_away();
  }
}

// Others come to know what it did, and it learns nothing.
void Block::arrive(int64_t number, int64_t expected) {
  Barrier* barrier = join_barrier(number, expected);
  barrier->passing.push_back(static_cast<uint16_t>(current_));
  clocks_.release(number_of(current_), barrier->known);
  pass_if_full(number);
}

void Block::pass_if_full(int64_t number) {
  Barrier& barrier = barriers_[static_cast<size_t>(number)];
  const auto arrived = static_cast<int64_t>(barrier.arrived.size());
  const int64_t expected = std::min(barrier.expected, size());
  if (arrived >= expected) return pass(barrier);
  // A barrier of the whole block waits for nobody who has ended: the hardware goes on, programs must not rely on it.
  if (number != 0 || expected != size() || arrived + ended_ < expected) return;
  const auto gone =
      std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.stop == Stop::ended; });
  const Moment first = now_of(static_cast<int>(gone - threads_.begin()));
  if (reporter_.is_new(DefectKind::barrier_misuse, first, barrier.first))
    reporter_.add(
        DefectKind::barrier_misuse, first, barrier.first,
        fmt::format("threads wait at `sync_threads` at {}, where thread {} never comes: it ended at {}",
                    reporter_.place(barrier.first.site), gone - threads_.begin(), reporter_.place(first.site)));
  pass(barrier);
}

void Block::pass(Barrier& barrier) {
  const std::vector<uint16_t> passing = std::exchange(barrier.passing, {});
  std::vector<uint16_t> waiting = std::exchange(barrier.arrived, {});
  if (!passing.empty())
    std::erase_if(waiting,
                  [&](uint16_t thread) { return std::find(passing.begin(), passing.end(), thread) != passing.end(); });
  if (static_cast<int64_t>(waiting.size()) == size() && place_.blocks == 1) {
    clocks_.start_epoch();
  } else {
    if (!passing.empty() && !waiting.empty()) clocks_.acquire(number_of(waiting.front()), barrier.known);
    clocks_.join(numbers_of(waiting));
  }
  barrier.known = {};
  for (const uint16_t thread : waiting) {
    threads_[thread].stop = Stop::none;
    --warp_of(thread).stopped;
    if (thread != current_) make_ready(thread);
  }
  owner_->barrier_passed();
}

void Block::sync_grid() {
  polls_ = 0;
  stop(Stop::grid);
  check_stopped_warp(current_ / kWarp);
  if (++at_grid_ == size())
    leave(Outcome::at_grid_barrier);
  else
    switch_away();
}

std::string Block::what(const Thread& thread) const {
  const std::string place = reporter_.place(thread.site);
  switch (thread.stop) {
    case Stop::collective:
      return fmt::format("at {} ({})", name_of_collective(thread.collective), place);
    case Stop::barrier:
      return thread.barrier == 0 ? fmt::format("at `sync_threads` ({})", place)
                                 : fmt::format("at barrier {} ({})", thread.barrier, place);
    case Stop::event:
      if (thread.barrier == kClusterEvent)
        return fmt::format("at the barrier of the cluster{} ({})", owner_->describe_event(thread.barrier), place);
      return fmt::format("at the barrier at byte {}{} ({})", thread.barrier, owner_->describe_event(thread.barrier),
                         place);
    case Stop::grid:
      return fmt::format("at `sync_grid` ({})", place);
    case Stop::ended:
      return fmt::format("have ended ({})", place);
    default:
      return fmt::format("running ({})", place);
  }
}

// "threads 0-31 at `sync_threads` (a.py:3), threads 32-63 have ended (a.py:9)"
std::string Block::standstill() const {
  std::string text;
  const auto size = static_cast<int>(threads_.size());
  for (int first = 0, last = 0; first < size; first = last + 1) {
    const std::string state = what(threads_[static_cast<size_t>(first)]);
    for (last = first; last + 1 < size && what(threads_[static_cast<size_t>(last + 1)]) == state;) ++last;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", threads_text(first, last), state);
  }
  return text;
}

void Block::report_divergence(int warp) {
  const auto lanes = lanes_of(warp);
  size_t other = 1;
  while (other < lanes.size() && agrees(lanes[other], lanes[0]) && lanes[other].barrier == lanes[0].barrier) ++other;
  other = std::min(other, lanes.size() - 1);
  const int first = warp * kWarp;
  const Moment one = now_of(first), two = now_of(first + static_cast<int>(other));
  if (reporter_.is_new(DefectKind::divergence, one, two))
    reporter_.add(DefectKind::divergence, one, two,
                  fmt::format("lanes of warp {} went different ways: {} {}, {} {}", warp,
                              threads_text(first, first + static_cast<int>(other) - 1), what(lanes[0]),
                              threads_text(first + static_cast<int>(other), first + static_cast<int>(other)),
                              what(lanes[other])));
  abandon();
}

void Block::report_polling() {
  const Moment self = now_of(current_);
  if (reporter_.is_new(DefectKind::deadlock, self, self))
    reporter_.add(DefectKind::deadlock, self, self,
                  fmt::format("thread {} reads again and again at {}, and nothing changes", current_,
                              reporter_.place(self.site)));
}

void Block::report_grid_barrier() {
  const Moment self = now_of(current_);
  if (reporter_.is_new(DefectKind::deadlock, self, self))
    reporter_.add(DefectKind::deadlock, self, self,
                  fmt::format("threads wait at `sync_grid` ({}) for blocks that have ended or have not begun",
                              reporter_.place(self.site)));
}

void Block::report_deadlock() {
  const auto waits = [](const Thread& t) {
    return t.stop == Stop::collective || t.stop == Stop::barrier || t.stop == Stop::event || t.stop == Stop::grid;
  };
  const auto first = std::find_if(threads_.begin(), threads_.end(), waits);
  const auto differs = [&](const Thread& t) { return !agrees(t, *first) || t.barrier != first->barrier; };
  auto second = std::find_if(first, threads_.end(), differs);
  if (second == threads_.end()) second = std::find_if(threads_.begin(), first, differs);
  Moment one = now_of(static_cast<int>(first - threads_.begin()));
  Moment two = second == first ? one : now_of(static_cast<int>(second - threads_.begin()));
  if (!waits(*second)) std::swap(one, two);  // the place to tell is where a thread waits
  if (reporter_.is_new(DefectKind::deadlock, one, two))
    reporter_.add(DefectKind::deadlock, one, two, "threads wait for ever: " + standstill());
}

}  // namespace tilepilot::emulator
