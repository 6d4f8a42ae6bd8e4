#include "show/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace tilepilot::show {
namespace {

using emulator::Step;
using emulator::StepKind;
using targets::c::Operation;

constexpr int kQuarters = 4;
constexpr double kIssue = 1, kIssueOfCopy = 4, kIssueOfProduct = 4, kSharedLatency = 24, kBarrier = 12;
constexpr double kStoreShare = 0.5;     // of the rate from L2, for the way back
constexpr double kWarpGemmShare = 0.6;  // of Hopper's rate that `mma` reaches
constexpr double kSector = 32;

// Cycles of a quarter for an instruction of a warp, by class (CUDA C++ Programming Guide, "Arithmetic Instructions").
double cycles_of(const targets::c::Operations& operations) {
  constexpr std::pair<Operation, double> kCycles[] = {{Operation::fp32, 1},
                                                      {Operation::fp32_fma, 1},
                                                      {Operation::fp64, 2},
                                                      {Operation::integer, 1},
                                                      {Operation::integer_division, 16},
                                                      {Operation::comparison, 1},
                                                      {Operation::conversion, 2},
                                                      {Operation::special, 8}};
  double cycles = 0;
  for (const auto& [operation, each] : kCycles) cycles += each * static_cast<double>(operations[operation]);
  return cycles;
}

Activity activity_of(StepKind kind) {
  switch (kind) {
    case StepKind::shared_read:
    case StepKind::shared_write:
    case StepKind::load_matrix:
    case StepKind::store_matrix:
      return Activity::shared;
    case StepKind::global_read:
    case StepKind::global_write:
      return Activity::global;
    case StepKind::copy:
    case StepKind::bulk_load:
    case StepKind::bulk_store:
      return Activity::copy;
    case StepKind::mma:
    case StepKind::wgmma:
      return Activity::product;
    case StepKind::compute:
    case StepKind::exchange:
      return Activity::math;
    case StepKind::wait_wgmma:
      return Activity::await;
    case StepKind::wait_copies:
    case StepKind::wait_stores:
    case StepKind::barrier_wait:
    case StepKind::block_sync:
    case StepKind::cluster_wait:
    case StepKind::grid_sync:
      return Activity::wait;
    default:
      return Activity::other;
  }
}

bool is_load(StepKind kind) {
  return kind == StepKind::shared_read || kind == StepKind::load_matrix || kind == StepKind::global_read;
}

// Asynchronous work of a warp in groups that it commits and waits for.
struct Groups {
  double open = 0;  // when what is not committed is complete
  std::vector<double> ends;
  void commit() {
    ends.push_back(open);
    open = 0;
  }
  // All but the last `outstanding`.
  double end_of(int64_t outstanding) const {
    double end = 0;
    for (size_t k = 0; static_cast<int64_t>(k) + outstanding < static_cast<int64_t>(ends.size()); ++k)
      end = std::max(end, ends[k]);
    return end;
  }
  double end_of_all() const { return std::max(open, end_of(0)); }
};

struct Warp {
  std::vector<const Step*> steps;
  uint32_t lanes = 0;  // that do anything
  size_t at = 0;
  double now = 0, data = 0;    // when what it has loaded is there
  const Step* load = nullptr;  // the last one
  Groups copies, stores, products;
  // Lanes that stand still; others of the warp may go on.
  struct Waiting {
    const Step* step;
    double since;
  };
  std::vector<Waiting> waiting;
  TimelineRow row;
  // Whether the lanes of its next step go on.
  bool can_go_on() const {
    if (at == steps.size()) return false;
    uint32_t still = 0;
    for (const Waiting& other : waiting) still |= other.step->mask;
    // The log has arithmetic of all lanes together, when the last of them has stopped.
    return steps[at]->kind == StepKind::compute ? (lanes & ~still) != 0 : (steps[at]->mask & still) == 0;
  }
};

class Replay {
 public:
  explicit Replay(const ReplayInput& input) : input_(input), machine_(input.machine) {
    for (const Step& step : input.steps) {
      const auto number = static_cast<size_t>(step.warp);
      if (warps_.size() <= number) warps_.resize(number + 1);
      warps_[number].steps.push_back(&step);
      warps_[number].lanes |= step.mask;
    }
    expect_arrivals();
  }

  Timeline run() {
    Timeline timeline;
    while (Warp* warp = next()) take(*warp);
    for (Warp& warp : warps_) wait_for_data(warp);
    for (const Warp& warp : warps_)
      timeline.unplaced += static_cast<int64_t>(warp.steps.size() - warp.at + warp.waiting.size());
    timeline.unit =
        fmt::format("cycles of the model of an {}, from the emulator's order of steps; not measured", machine_.name);
    timeline.steps = static_cast<int64_t>(input_.steps.size());
    const auto own = std::min(warps_.size(), static_cast<size_t>(input_.block_warps));
    for (size_t number = 0; number < own; ++number) {
      Warp& warp = warps_[number];
      warp.row.label = fmt::format("warp {}", number);
      warp.row.warp = static_cast<int64_t>(number);
      for (const Segment& segment : warp.row.segments) timeline.cycles = std::max(timeline.cycles, segment.end);
      timeline.rows.push_back(std::move(warp.row));
    }
    add_flight_rows(timeline);
    return timeline;
  }

 private:
  using Phase = std::pair<int64_t, int64_t>;  // a barrier's place and a number
  struct Completion {
    int64_t expected = 0, arrived = 0;
    double end = 0;
  };
  struct BlockBarrier {
    int64_t lanes = 0;
    double end = 0;
    std::vector<std::pair<Warp*, const Step*>> waiting;
  };
  // What the warps of a block share: when each unit is free again.
  struct Multiprocessor {
    double shared_pipe = 0, global_pipe = 0;
    std::array<double, kQuarters> tensor{}, arithmetic{};
  };
  static constexpr int64_t kClusterBarrier = -2;

  const ReplayInput& input_;
  const targets::gpu::Machine& machine_;
  std::vector<Warp> warps_;
  std::map<Phase, Completion> phases_;
  std::map<int64_t, BlockBarrier> barriers_;
  std::map<int64_t, Multiprocessor> multiprocessors_;  // by block
  double tensor_cycles_ = 0;
  std::map<std::pair<int64_t, int64_t>, TimelineRow> flights_;  // by tile and stage
  TimelineRow tensor_row_;

  void expect_arrivals() {
    for (Warp& warp : warps_) {
      for (const Step* step : warp.steps) {
        const bool arrives = step->kind == StepKind::barrier_arrive || step->kind == StepKind::barrier_copied ||
                             step->kind == StepKind::bulk_load;
        if (arrives) ++phases_[{step->at, step->phase}].expected;
        if (step->kind == StepKind::cluster_arrive) ++phases_[phase_of(*step)].expected;
      }
    }
  }

  int64_t block_of(const Step& step) const { return step.warp / input_.block_warps; }
  Multiprocessor& units_of(const Step& step) { return multiprocessors_[block_of(step)]; }
  int line_of(const Step& step) const { return step.line.file == input_.file ? static_cast<int>(step.line.line) : 0; }

  static bool waits_for_phase(const Step& step) {
    return step.kind == StepKind::barrier_wait || step.kind == StepKind::cluster_wait;
  }
  static Phase phase_of(const Step& step) {
    const bool of_cluster = step.kind == StepKind::cluster_wait || step.kind == StepKind::cluster_arrive;
    return {of_cluster ? kClusterBarrier : step.at, step.phase};
  }
  // When the phase is complete, if all that it needs has happened.
  std::optional<double> end_of_phase(const Step& step) const {
    const auto found = phases_.find(phase_of(step));
    if (found == phases_.end()) return 0;
    return found->second.arrived >= found->second.expected ? std::optional(found->second.end) : std::nullopt;
  }
  // Lets lanes go on whose phase is complete.
  void wake(Warp& warp) {
    std::erase_if(warp.waiting, [&](const Warp::Waiting& waiting) {
      if (!waits_for_phase(*waiting.step)) return false;
      const auto end = end_of_phase(*waiting.step);
      if (end) go_on(warp, *waiting.step, waiting.since, *end);
      return end.has_value();
    });
  }
  // A wait is over. The warp has waited since it last did something.
  void go_on(Warp& warp, const Step& step, double since, double end) {
    const double last = warp.row.segments.empty() ? 0 : warp.row.segments.back().end;
    warp.now = std::max(warp.now, end);
    add(warp, step, std::max(since, last), warp.now);
  }
  // The warp that is earliest, of those that can go on.
  Warp* next() {
    Warp* best = nullptr;
    for (Warp& warp : warps_) {
      wake(warp);
      if (warp.can_go_on() && (best == nullptr || warp.now < best->now)) best = &warp;
    }
    return best;
  }

  void arrive(const Phase& phase, double end) {
    Completion& completion = phases_[phase];
    ++completion.arrived;
    completion.end = std::max(completion.end, end);
  }

  void add(Warp& warp, const Step& step, double begin, double end) {
    if (end <= begin) return;
    const Activity activity = activity_of(step.kind);
    const int line = line_of(step);
    std::string what(name_of(step.kind));
    if (step.kind == StepKind::mma || step.kind == StepKind::wgmma)
      what += fmt::format(" m{}n{}k{}", step.kind == StepKind::wgmma ? 64 : step.m, step.n, step.k);
    std::vector<Segment>& segments = warp.row.segments;
    if (!segments.empty()) {
      Segment& last = segments.back();
      if (last.activity == activity && last.line == line && last.what == what && begin - last.end < 2) {
        last.end = end;
        last.bytes += step.bytes;
        ++last.count;
        return;
      }
    }
    segments.push_back({begin, end, activity, line, std::move(what), 1, step.bytes});
  }

  // Work of the tensor cores, at most one piece at a time for each quarter.
  double multiply(Warp& warp, const Step& step) {
    double& tensor = units_of(step).tensor[static_cast<size_t>(step.warp % kQuarters)];
    double rate = machine_.half_rate / kQuarters * 16 / static_cast<double>(std::max<int64_t>(step.operand_bits, 1));
    if (step.operand_bits == 64) rate = machine_.half_rate / kQuarters / 16;
    if (step.kind == StepKind::mma && machine_.has_wgmma) rate *= kWarpGemmShare;
    const double cost = 2.0 * static_cast<double>(step.m * step.n * step.k) / rate;
    const double begin = std::max(warp.now, tensor);
    tensor = begin + cost;
    if (block_of(step) == 0) {
      tensor_cycles_ += cost;
      tensor_row_.segments.push_back(
          {begin, tensor, Activity::product, line_of(step), std::string(name_of(step.kind)), 1, 0});
    }
    return tensor;
  }

  // Bytes on their way to shared memory.
  double fetch(const Step& step, double from) {
    double& pipe = units_of(step).global_pipe;
    pipe = std::max(from, pipe) + static_cast<double>(step.bytes) / machine_.cache_rate;
    const double end = pipe + machine_.latency;
    const int64_t block = step.kind == StepKind::bulk_load ? step.at >> 32 : block_of(step);
    if (block == 0) note_flight(step, from, end);
    return end;
  }

  void note_flight(const Step& step, double begin, double end) {
    const int64_t at = step.kind == StepKind::copy ? step.at - step.tile : step.width;
    int64_t stage = -1;
    std::string name = fmt::format("byte {}", step.tile);
    for (const CopyTarget& target : input_.targets) {
      if (target.offset != step.tile) continue;
      name = target.name;
      if (target.stages > 1) stage = at / (target.bytes / target.stages);
      break;
    }
    TimelineRow& row = flights_[{step.tile, stage}];
    const int line = line_of(step);
    if (row.segments.empty()) {
      row.label = stage < 0 ? name : fmt::format("{}, stage {}", name, stage);
      row.group = "copies in flight";
      row.stage = stage;
    } else if (Segment& last = row.segments.back(); begin <= last.end) {
      last.end = std::max(last.end, end);
      last.bytes += step.bytes;
      ++last.count;
      return;
    }
    row.segments.push_back({begin, end, Activity::copy, line, std::string(name_of(step.kind)), 1, step.bytes});
  }

  void take(Warp& warp) {
    const Step& step = *warp.steps[warp.at++];
    if (!is_load(step.kind)) wait_for_data(warp);
    const double begin = warp.now;
    const size_t waiting = warp.waiting.size();
    switch (activity_of(step.kind)) {
      case Activity::shared:
      case Activity::global:
        access(warp, step);
        break;
      case Activity::copy:
        copy(warp, step);
        break;
      case Activity::product:
        product(warp, step);
        break;
      case Activity::math: {
        double& units = units_of(step).arithmetic[static_cast<size_t>(step.warp % kQuarters)];
        const double cost = step.kind == StepKind::compute ? cycles_of(step.operations) : 2 * kIssue;
        units = std::max(units, warp.now) + cost;
        warp.now = units;
        break;
      }
      case Activity::wait:
      case Activity::await:
        wait(warp, step);
        break;
      default:
        commit(warp, step);
        break;
    }
    if (warp.waiting.size() == waiting) add(warp, step, begin, warp.now);
  }

  // Until what the warp has loaded is there.
  void wait_for_data(Warp& warp) {
    if (warp.data <= warp.now) return;
    const std::string what = fmt::format("wait for the data of a {}", name_of(warp.load->kind));
    warp.row.segments.push_back({warp.now, warp.data, Activity::wait, line_of(*warp.load), what, 1, 0});
    warp.now = warp.data;
  }

  void access(Warp& warp, const Step& step) {
    if (is_load(step.kind)) warp.load = &step;
    const auto& traffic = step.traffic;
    if (activity_of(step.kind) == Activity::shared) {
      const double cost = static_cast<double>(std::max<int64_t>(1, traffic.shared_wavefronts));
      double& pipe = units_of(step).shared_pipe;
      pipe = std::max(pipe, warp.now) + cost;
      warp.now = pipe;
      if (is_load(step.kind)) warp.data = std::max(warp.data, warp.now + kSharedLatency);
      return;
    }
    const bool loads = is_load(step.kind);
    const double bytes = kSector * static_cast<double>(traffic.global_sectors);
    double& pipe = units_of(step).global_pipe;
    pipe = std::max(pipe, warp.now) + bytes / (machine_.cache_rate * (loads ? 1 : kStoreShare));
    warp.now += kIssueOfCopy;
    if (loads)
      warp.data = std::max(warp.data, pipe + machine_.latency);
    else
      warp.now = std::max(warp.now, pipe);
  }

  void copy(Warp& warp, const Step& step) {
    const double from = warp.now;
    warp.now += kIssueOfCopy;
    if (step.kind == StepKind::bulk_load) return arrive({step.at, step.phase}, fetch(step, from));
    if (step.kind == StepKind::copy) {
      warp.copies.open = std::max(warp.copies.open, fetch(step, from));
      return;
    }
    double& pipe = units_of(step).global_pipe;
    pipe = std::max(pipe, from) + static_cast<double>(step.bytes) / (machine_.cache_rate * kStoreShare);
    warp.stores.open = std::max(warp.stores.open, pipe);
    if (block_of(step) == 0) note_flight(step, from, pipe);
  }

  void product(Warp& warp, const Step& step) {
    const double end = multiply(warp, step);
    if (step.kind == StepKind::mma) {
      warp.now = end;
      return;
    }
    warp.now += kIssueOfProduct;
    warp.products.open = std::max(warp.products.open, end);
  }

  void wait(Warp& warp, const Step& step) {
    switch (step.kind) {
      case StepKind::wait_copies:
        warp.now = std::max(warp.now, warp.copies.end_of(step.phase));
        return;
      case StepKind::wait_stores:
        warp.now = std::max(warp.now, warp.stores.end_of(step.phase));
        return;
      case StepKind::wait_wgmma:
        warp.now = std::max(warp.now, warp.products.end_of(step.phase));
        return;
      case StepKind::block_sync:
        warp.waiting.push_back({&step, warp.now});
        return come(warp, step);
      case StepKind::grid_sync:
        return;
      default:
        if (const auto end = end_of_phase(step))
          warp.now = std::max(warp.now, *end);
        else
          warp.waiting.push_back({&step, warp.now});
    }
  }

  // To a barrier of the block, which lets all go on when as many have come as it waits for.
  void come(Warp& warp, const Step& step) {
    BlockBarrier& barrier = barriers_[step.at];
    barrier.lanes += step.lanes;
    barrier.end = std::max(barrier.end, warp.now);
    if (step.kind == StepKind::block_sync) barrier.waiting.emplace_back(&warp, &step);
    if (barrier.lanes < step.phase) return;
    const BlockBarrier full = std::exchange(barrier, {});
    for (const auto& [other, at] : full.waiting) {
      const Step* const place = at;
      const auto found = std::find_if(other->waiting.begin(), other->waiting.end(),
                                      [&](const Warp::Waiting& waiting) { return waiting.step == place; });
      const double since = found->since;
      other->waiting.erase(found);
      if (other == &warp)
        warp.now = std::max(warp.now, full.end + kBarrier);
      else
        go_on(*other, *place, since, full.end + kBarrier);
    }
  }

  void commit(Warp& warp, const Step& step) {
    switch (step.kind) {
      case StepKind::commit_copies:
        return warp.copies.commit();
      case StepKind::commit_stores:
        return warp.stores.commit();
      case StepKind::commit_wgmma:
        return warp.products.commit();
      case StepKind::barrier_arrive:
        return arrive({step.at, step.phase}, warp.now);
      case StepKind::barrier_copied:
        return arrive({step.at, step.phase}, std::max(warp.now, warp.copies.end_of_all()));
      case StepKind::cluster_arrive:
        return arrive(phase_of(step), warp.now);
      case StepKind::block_arrive:
        return come(warp, step);
      default:
        return;
    }
  }

  // Segments that touch become one.
  static std::vector<Segment> united(std::vector<Segment> segments) {
    std::sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
    std::vector<Segment> result;
    for (Segment& segment : segments) {
      if (!result.empty() && segment.begin <= result.back().end + 1 && result.back().line == segment.line) {
        result.back().end = std::max(result.back().end, segment.end);
        result.back().count += segment.count;
      } else {
        result.push_back(std::move(segment));
      }
    }
    return result;
  }

  // Of the time in which copies are in flight, the share in which tensor cores work.
  static double overlap(const std::vector<Segment>& copies, const std::vector<Segment>& products) {
    double all = 0, both = 0;
    for (const Segment& copy : copies) {
      all += copy.end - copy.begin;
      for (const Segment& product : products)
        both += std::max(0.0, std::min(copy.end, product.end) - std::max(copy.begin, product.begin));
    }
    return all > 0 ? both / all : 0;
  }

  void add_flight_rows(Timeline& timeline) {
    std::vector<Segment> copies;
    for (auto& [place, row] : flights_) {
      for (Segment segment : row.segments) {
        segment.line = 0;
        copies.push_back(segment);
        timeline.cycles = std::max(timeline.cycles, segment.end);
      }
      timeline.rows.push_back(std::move(row));
    }
    if (tensor_row_.segments.empty()) return;
    tensor_row_.label = "tensor cores";
    tensor_row_.group = "matrix products";
    tensor_row_.segments = united(std::move(tensor_row_.segments));
    std::vector<Segment> products = tensor_row_.segments;
    for (Segment& segment : products) segment.line = 0;
    timeline.cycles = std::max(timeline.cycles, products.back().end);
    timeline.copies_under_products = overlap(united(std::move(copies)), united(std::move(products)));
    if (timeline.cycles > 0) timeline.tensor_busy = tensor_cycles_ / kQuarters / timeline.cycles;
    timeline.rows.push_back(std::move(tensor_row_));
  }
};

}  // namespace

Timeline replay(const ReplayInput& input) { return Replay(input).run(); }

std::string_view name_of(Activity activity) {
  switch (activity) {
    case Activity::copy:
      return "copy";
    case Activity::wait:
      return "wait";
    case Activity::await:
      return "wait for its matrix products";
    case Activity::product:
      return "matrix product";
    case Activity::global:
      return "global memory";
    case Activity::shared:
      return "shared memory";
    case Activity::math:
      return "arithmetic";
    case Activity::other:
      return "other";
  }
  return "";
}

}  // namespace tilepilot::show
