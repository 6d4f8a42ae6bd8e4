#include "compiler/targets/gpu/layout/layout_cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/layout/access.h"
#include "compiler/layout/bank_conflicts.h"
#include "compiler/targets/gpu/facts/loop_body.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/layout/lane_window.h"
#include "compiler/targets/gpu/layout/reduction_modes.h"
#include "compiler/targets/gpu/layout/vector_access.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Scope;
using layout::Fragment;
using layout::kWarpSize;

namespace {

// Issue slots of a multiprocessor, which issues four instructions a cycle: it takes one memory instruction or shuffle a
// cycle, gives 128 bytes of shared memory and gets about 32 bytes from beyond it. A barrier takes tens of cycles. A
// register that is spilled is stored and loaded.
constexpr int64_t kAccess = 4, kSector = 4, kWavefront = 4, kShuffle = 5, kMeeting = 100, kStep = 1, kSpill = 32;

// Of a word that one lane hands to another: it is told apart and moved into its place. A word of less than 32 bits is
// taken out of registers and put back, as costly as three. Measured on an H200: 64 shuffles of 16 bits take longer than
// a way through shared memory, by 50 ns in a GEMM of int8 and by 960 ns in one of float8; 32 of 32 bits take less.
constexpr int64_t kStepsOfWord = 2, kNarrowWord = 3;

constexpr int64_t kSectorBytes = 32, kBankBytes = 128;
constexpr int64_t kCachedSectors = 4;     // take as long as one from beyond the multiprocessor
constexpr int64_t kFarApart = 4096 + 32;  // elements, where it is known at launch alone

int64_t rounded_up(int64_t count, int64_t by) { return (count + by - 1) / by; }
int64_t warps_of(int64_t threads) { return rounded_up(threads, kWarpSize); }

std::vector<int64_t> element_steps(const ir::Buffer& buffer) {
  std::vector<int64_t> steps(buffer->rank(), 1);
  int64_t step = 1;
  for (size_t axis = buffer->rank(); axis-- > 0;) {
    steps[axis] = buffer->strides.empty() ? step : ir::constant_int(buffer->strides[axis]).value_or(kFarApart);
    step = std::min(step * ir::constant_int(buffer->shape[axis]).value_or(kFarApart), int64_t{1} << 40);
  }
  return steps;
}

// Choices count as what is chosen where the condition holds: the other value stands for what lies outside. What memory
// says, as in gathers of rows, counts as far apart wherever it is read from another place.
class Foreseen : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Foreseen(const std::vector<ir::Var>& vars) : vars_(vars) {}

  Expr rewrite(const Expr& expr) override {
    if (const auto* choice = ir::as<ir::Select>(expr)) return rewrite(choice->then);
    if (!ir::as<ir::Load>(expr) || !expr->type.is_int()) return rewrite_children(expr);
    Expr place = ir::int_imm(0, expr->type);
    for (const ir::Var& var : vars_)
      if (ir::mentions(expr, var))
        place = ir::binary(
            ir::BinaryOp::add, place,
            ir::binary(ir::BinaryOp::mul, ir::cast(ir::var_ref(var), expr->type), ir::int_imm(kFarApart, expr->type)));
    return place;
  }

 private:
  const std::vector<ir::Var>& vars_;  // of the loop
};

// The static form of indices over the loop's variables; other variables, which come after them, are the same for all
// threads.
std::optional<std::vector<passes::StaticIndex>> static_indices(const Use& use, std::vector<ir::Var>& vars) {
  std::vector<Expr> chosen;
  for (const Expr& index : use.indices) chosen.push_back(Foreseen(vars).rewrite(index));
  for (const Expr& index : chosen)
    ir::walk(index, [&](const Expr& part) {
      const auto* ref = ir::as<ir::VarRef>(part);
      if (ref && std::find(vars.begin(), vars.end(), ref->var) == vars.end()) vars.push_back(ref->var);
    });
  std::vector<passes::StaticIndex> indices;
  for (const Expr& index : chosen) {
    auto one = passes::StaticIndex::of(index, vars);
    if (!one) return std::nullopt;
    indices.push_back(std::move(*one));
  }
  return indices;
}

// How far apart, in elements of memory, neighbours along an axis of the loop are.
int64_t distance_along(const MemoryAccess& access, size_t axis) {
  std::vector<int64_t> values(access.variables, 0);
  int64_t step = 0;
  for (const int64_t sign : {-1, 1}) {
    values[axis] = sign > 0 ? 1 : 0;
    for (size_t k = 0; k < access.indices.size(); ++k) step += sign * access.indices[k](values) * access.steps[k];
  }
  return step;
}

// Coordinates of what the lanes of the first warp do first.
struct Sample {
  struct Lane {
    std::vector<int64_t> at;
    bool is_first = true;  // of those that do the same
  };
  std::vector<Lane> lanes;
};
Sample sample_of(const Fragment& fragment) {
  Sample sample;
  for (int64_t thread = 0; thread < std::min(fragment.thread_count(), kWarpSize); ++thread) {
    const int64_t index = fragment.threads()(thread) + fragment.registers()(0);
    Sample::Lane lane{layout::coordinates(fragment.cover(), index), true};
    if (!std::equal(lane.at.begin(), lane.at.end(), fragment.shape().begin(), std::less<>())) continue;
    int64_t rest = thread;
    for (const layout::Mode& mode : fragment.threads().modes()) {
      if (mode.stride == 0 && rest % mode.extent != 0) lane.is_first = false;
      rest /= mode.extent;
    }
    sample.lanes.push_back(std::move(lane));
  }
  return sample;
}

// In bytes; in a tile, out-of-bounds places count as its ends.
// `behind`: so many elements further on in the row.
int64_t address_of(const MemoryAccess& access, const std::vector<int64_t>& values, int64_t behind = 0) {
  const int64_t bytes = std::max<int64_t>(1, access.buffer->type.bytes());
  int64_t place = 0;
  if (access.tile == nullptr) {
    for (size_t axis = 0; axis < access.indices.size(); ++axis)
      place += access.indices[axis](values) * access.steps[axis];
    return (place + behind) * bytes;
  }
  const layout::Shape& shape = access.tile->shape();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t index = access.indices[axis](values) + (axis + 1 == shape.size() ? behind : 0);
    place = place * shape[axis] + std::clamp<int64_t>(index, 0, shape[axis] - 1);
  }
  return access.tile->offset(place) * bytes;
}

// The elements that one lane moves at once.
int64_t elements_at_once(const MemoryAccess& access, const Lanes& lanes) {
  if (lanes.count == 1 || access.alike[lanes.axis] % lanes.count != 0) return 1;
  return std::gcd(lanes.count, access.vectors[lanes.axis]);
}

int64_t count_distinct(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return static_cast<int64_t>(values.size());
}

LayoutCost access_cost(const MemoryAccess& access, const Fragment& at, const Sample& sample, const Lanes& lanes) {
  const auto window = access.windows.find({lanes.axis, lanes.count});
  const bool is_window = lanes.count > 1 && window != access.windows.end();
  const int64_t elements = is_window ? window->second.elements : elements_at_once(access, lanes);
  const int64_t loads = is_window ? window->second.loads : 1;
  const int64_t iterations = is_window ? lanes.count : elements;  // that these serve
  const int64_t bytes = elements * std::max<int64_t>(1, access.buffer->type.bytes());
  std::vector<int64_t> starts;
  for (const Sample::Lane& lane : sample.lanes) {
    if (access.by_one && !lane.is_first) continue;
    std::vector<int64_t> values = lane.at;
    values.resize(access.variables, 0);
    for (int64_t load = 0; load < loads; ++load) {
      const int64_t behind = is_window ? window->second.first + load * elements : 0;
      starts.push_back(address_of(access, values, behind) / bytes * bytes);
    }
  }
  if (starts.empty()) return {};
  // What all warps do is as much more as they move more elements.
  const int64_t moved = layout::volume(at.shape()) * (access.by_one ? 1 : at.replicas());
  const int64_t sampled = static_cast<int64_t>(starts.size()) / loads * iterations;
  const auto scaled = [&](int64_t count) { return rounded_up(count * moved, sampled); };
  LayoutCost cost;
  cost.accesses = scaled(loads);
  std::vector<int64_t> all;  // sectors
  int64_t requests = 0;
  for (int64_t load = 0; load < loads; ++load) {
    std::vector<int64_t> addresses, sectors;
    for (size_t k = static_cast<size_t>(load); k < starts.size(); k += static_cast<size_t>(loads))
      addresses.push_back(starts[k]);
    if (access.tile != nullptr) {
      cost.wavefronts += scaled(layout::wavefronts(addresses, std::min(kAccessBytes, bytes)));
      continue;
    }
    for (const int64_t address : addresses)
      for (int64_t part = address; part < address + bytes; part += kSectorBytes) sectors.push_back(part / kSectorBytes);
    requests += count_distinct(sectors);
    all.insert(all.end(), sectors.begin(), sectors.end());
  }
  if (access.tile != nullptr) return cost;
  const int64_t distinct = count_distinct(all);
  cost.sectors = scaled(distinct + rounded_up(requests - distinct, kCachedSectors));
  return cost;
}

}  // namespace

LayoutCost& LayoutCost::operator+=(const LayoutCost& other) {
  accesses += other.accesses;
  sectors += other.sectors;
  wavefronts += other.wavefronts;
  shuffles += other.shuffles;
  barriers += other.barriers;
  steps += other.steps;
  spills += other.spills;
  return *this;
}

LayoutCost LayoutCost::operator*(int64_t times) const {
  return {accesses * times, sectors * times, wavefronts * times, shuffles * times,
          barriers * times, steps * times,   spills * times};
}

bool is_clearly_less(const LayoutCost& cost, const LayoutCost& than) { return cost.total() * 10 < than.total() * 9; }

int64_t LayoutCost::total() const {
  return accesses * kAccess + sectors * kSector + wavefronts * kWavefront + shuffles * kShuffle + barriers * kMeeting +
         steps * kStep + spills * kSpill;
}

std::string to_text(const LayoutCost& cost) {
  std::vector<std::string> parts;
  const auto add = [&](int64_t count, const char* noun) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, noun));
  };
  add(cost.accesses, "accesses");
  add(cost.sectors, "sectors");
  add(cost.wavefronts, "wavefronts");
  add(cost.shuffles, "shuffles");
  add(cost.barriers, "barriers");
  add(cost.steps, "steps");
  add(cost.spills, "spills");
  return fmt::format("cost {} ({})", cost.total(), fmt::join(parts, ", "));
}

namespace {

// A window of one access.
struct SharedWindow {
  std::pair<size_t, int64_t> lanes;
  bool stores;
  bool is_vector;  // which is as good by itself
  bool is_written;
  size_t access;
  LaneWindow window;
};

std::string text_of(const Use& use) {
  std::string text = fmt::format("{}", static_cast<const void*>(use.buffer.get()));
  for (const Expr& index : use.indices) text += " " + ir::to_text(index);
  return text;
}

// What several accesses load of one window, or store of it if that is all, counts for the first of them.
void share_windows(std::vector<SharedWindow>& windows, std::vector<MemoryAccess>& accesses) {
  const auto place = [](const SharedWindow& one) {
    return std::tuple(one.lanes, one.stores, one.window.base, one.window.origin + one.window.first);
  };
  std::stable_sort(windows.begin(), windows.end(),
                   [&](const SharedWindow& a, const SharedWindow& b) { return place(a) < place(b); });
  for (size_t k = 0, next = 0; k < windows.size(); k = next) {
    const SharedWindow& begin = windows[k];
    LaneWindow group = begin.window;
    std::vector<const LaneWindow*> members{&begin.window};
    for (next = k + 1; next < windows.size(); ++next) {
      const SharedWindow& other = windows[next];
      const bool is_alike = other.lanes == begin.lanes && other.stores == begin.stores;
      const auto both = is_alike ? joined(group, other.window) : std::nullopt;
      if (!both) break;
      group = *both;
      members.push_back(&other.window);
    }
    if (members.size() < 2 && (begin.stores || begin.is_vector)) continue;
    if (begin.stores && !is_covered(group, members)) continue;
    if (begin.is_written && !is_all_taken(group, members)) continue;
    for (size_t other = k + 1; other < next; ++other)
      accesses[windows[other].access].windows[windows[other].lanes] = {};
    accesses[windows[k].access].windows[windows[k].lanes] = {group.first - group.taken[0], group.elements,
                                                             group.loads()};
  }
}

// The elements side by side that at most so many lanes along an axis move at once. Fewer may stay within a row, or find
// a mask alike, where more do not: then `lanes` is how many.
int64_t vector_along(const Surroundings& around, const Use& use, const ir::Var& lane, int64_t& lanes) {
  for (; lanes > 1; lanes /= 2)
    if (const VectorChoice choice = vector_access(around, use.buffer, use.indices, lane, lanes); choice.vector)
      return choice.vector->elements;
  return 1;
}

}  // namespace

std::vector<MemoryAccess> memory_accesses(const ParallelLoop& loop, const c::IntegerFacts& facts,
                                          const decltype(Inference::tiles)& tiles, bool adds_vectors) {
  std::vector<MemoryAccess> accesses;
  const auto guarded = guarded_loop(*ir::as<ir::For>(loop.stmt), adds_vectors);
  const LoopBody body(guarded ? guarded->loop : *ir::as<ir::For>(loop.stmt), adds_vectors);
  std::vector<int64_t> alike(loop.vars.size(), kAccessBytes);
  const RowLengths lengths = guarded ? row_lengths_of(loop.stmt) : RowLengths{};
  for (size_t axis = 0; axis < loop.vars.size() && guarded; ++axis)
    while (alike[axis] > 1 && !is_same_for_lanes({facts, lengths, loop.vars[axis], alike[axis]}, guarded->guard))
      alike[axis] /= 2;
  const bool only_seen = !writes_own(loop.stmt);
  std::vector<SharedWindow> windows;
  const ir::BufferSet written = ir::memory_effects_of(loop.stmt).writes;
  std::set<std::string> loaded;
  for (const Use& use : loop.uses) {
    if (use.buffer->scope != Scope::global && use.buffer->scope != Scope::shared) continue;
    if (!use.changes && body.may_move_together(use.buffer) && !loaded.insert(text_of(use)).second) continue;
    std::vector<ir::Var> vars = loop.vars;
    auto indices = static_indices(use, vars);
    const auto names = [&](const Expr& index) { return body.mentions_values(index); };
    if (!indices || std::any_of(use.indices.begin(), use.indices.end(), names)) continue;
    MemoryAccess access{use.buffer, use.changes || only_seen, std::move(*indices), vars.size(), {}, {}, alike,
                        {},         element_steps(use.buffer)};
    if (const auto tile = tiles.find(use.buffer.get()); tile != tiles.end()) access.tile = &tile->second;
    if (use.buffer->scope == Scope::shared && access.tile == nullptr) continue;
    const bool moves = body.may_move_together(use.buffer);
    for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
      int64_t lanes = moves ? alike[axis] : 1;
      access.vectors.push_back(vector_along({facts, tiles}, use, loop.vars[axis], lanes));
      if (access.vectors.back() > 1) access.alike[axis] = lanes;
      access.distances.push_back(distance_along(access, axis));
    }
    for (size_t axis = 0; axis < loop.vars.size() && moves; ++axis) {
      const bool is_common = !use.changes && !ir::mentions(use.indices, loop.vars[axis]);
      for (int64_t lanes = 2; lanes <= alike[axis]; lanes *= 2) {
        if (is_common) access.windows[{axis, lanes}].loads = 1;  // of the one element that all of them want
        auto window = lane_window({facts, tiles}, use.buffer, use.indices, loop.vars[axis], lanes);
        const int64_t one_by_one = lanes / std::gcd(lanes, access.vectors[axis]);
        if (!window || window->loads() > one_by_one) continue;
        const bool is_vector = window->loads() == one_by_one;
        windows.push_back({{axis, lanes},
                           use.changes,
                           is_vector,
                           written.contains(ir::memory_of(use.buffer)),
                           accesses.size(),
                           std::move(*window)});
      }
    }
    accesses.push_back(std::move(access));
  }
  share_windows(windows, accesses);
  return accesses;
}

LayoutCost loop_cost(const ParallelLoop& loop, const std::vector<MemoryAccess>& accesses, const Fragment& at) {
  const Lanes lanes = lanes_of(at);
  const Sample sample = sample_of(at);
  LayoutCost cost;
  for (const MemoryAccess& access : accesses) cost += access_cost(access, at, sample, lanes);
  cost.steps = warps_of(at.thread_count()) * at.register_count() * static_cast<int64_t>(loop.uses.size());
  return cost;
}

LayoutCost least_cost(const ParallelLoop& loop, const std::vector<MemoryAccess>& accesses, int64_t threads) {
  const int64_t volume = layout::volume(loop.extents);
  LayoutCost cost;
  for (const MemoryAccess& access : accesses) {
    const int64_t bytes = volume * std::max<int64_t>(1, access.buffer->type.bytes());
    bool is_distinct = true;  // else several iterations want the same
    for (size_t axis = 0; axis < loop.extents.size(); ++axis)
      is_distinct &= loop.extents[axis] == 1 || access.distances[axis] != 0;
    int64_t least = rounded_up(volume, kWarpSize * *std::max_element(access.vectors.begin(), access.vectors.end()));
    for (const auto& [lanes, window] : access.windows)
      least = std::min(least, rounded_up(volume, kWarpSize * lanes.second) * window.loads);
    cost.accesses += least;
    if (is_distinct && access.tile == nullptr) cost.sectors += rounded_up(bytes, kSectorBytes);
    if (is_distinct && access.tile != nullptr) cost.wavefronts += rounded_up(bytes, kBankBytes);
  }
  cost.steps = std::max(rounded_up(volume, kWarpSize), warps_of(threads)) * static_cast<int64_t>(loop.uses.size());
  return cost;
}

LayoutCost reduction_cost(const Fragment& source, size_t axis, int64_t results) {
  const int64_t threads = source.thread_count(), warps = warps_of(threads);
  const SplitModes modes = split_modes(modes_along(source, axis), threads);
  LayoutCost cost;
  cost.steps = warps * source.register_count();
  for (const ThreadMode& mode : modes.lanes)
    cost.shuffles += std::bit_width(static_cast<uint64_t>(mode.extent - 1)) * results * warps;
  if (modes.warps.empty()) return cost;
  int64_t parts = 1;
  for (const ThreadMode& mode : modes.warps) parts *= mode.extent;
  // Each thread leaves what it has and takes what the others left.
  cost.accesses = cost.wavefronts = warps * results * (1 + parts);
  cost.steps += warps * results * parts;
  cost.barriers = 1;
  return cost;
}

LayoutCost exchange_cost(int64_t elements, int64_t threads) {
  const int64_t rounds = std::max(warps_of(threads), rounded_up(elements, kWarpSize));
  return {.accesses = 2 * rounds,
          .sectors = 0,
          .wavefronts = 2 * rounds,
          .shuffles = 0,
          .barriers = 2,
          .steps = 2 * rounds,
          .spills = 0};
}

LayoutCost exchange_cost(const Fragment& from, const Fragment& to, int64_t element_bits) {
  const int64_t warps = warps_of(from.thread_count());
  LayoutCost cost{.barriers = 2};
  for (const Fragment* side : {&from, &to}) {
    const auto tile = layout::SharedLayout::linear(side->shape(), element_bits);
    const int64_t together = layout::vector_length(*side, tile), moves = warps * side->register_count() / together;
    cost.accesses += moves;
    cost.wavefronts += moves * rounded_up(kWarpSize * together * element_bits / 8, kBankBytes);
  }
  return cost;
}

LayoutCost shuffle_cost(const layout::WarpMoves& moves, int64_t element_bits, int64_t threads) {
  const int64_t bits = element_bits * moves.unit, warps = warps_of(threads);
  const int64_t words = moves.shuffles() * (bits < 32 ? kNarrowWord : bits / 32);
  int64_t choices = 0;  // of lanes that request several words, among what arrives
  for (const layout::WordMove& move : moves.words) choices += static_cast<int64_t>(move.words.size()) - 1;
  LayoutCost cost;
  cost.shuffles = warps * words;
  cost.steps = warps * (kStepsOfWord * words + choices);
  return cost;
}

LayoutCost register_cost(int64_t words, int64_t threads) {
  const int64_t most = registers_of_thread(threads) - kOverheadRegisters;
  LayoutCost cost;
  cost.spills = std::max<int64_t>(0, words - most) * warps_of(threads);
  return cost;
}

}  // namespace tilepilot::targets::gpu
