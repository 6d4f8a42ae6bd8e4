#include "agent/builtin/gpu_tiles.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "agent/builtin/phases.h"
#include "compiler/runtime/target.h"

namespace tilepilot::agent::builtin {

namespace {

namespace gpu = targets::gpu;

constexpr size_t kAll = 1000;         // of the model's ranking
constexpr int64_t kVectorBytes = 16;  // that a thread moves at once

ir::DType element_type(const std::string& torch_name) { return ir::parse_dtype(torch_name).value_or(ir::kFloat32); }

// The place `choice` among those that fit; the last of them if there are fewer.
template <class Fits>
std::optional<gpu::Tiles> chosen(const std::vector<gpu::Tiles>& ranking, size_t choice, const Fits& fits) {
  std::optional<gpu::Tiles> found;
  for (const gpu::Tiles& tiles : ranking) {
    if (!fits(tiles)) continue;
    found = tiles;
    if (choice-- == 0) break;
  }
  return found;
}

class Chooser {
 public:
  Chooser(TilePlan& plan, const PrimitiveGraph& graph, const Group& group, const gpu::Machine& hardware, size_t choice)
      : plan_(plan),
        graph_(graph),
        group_(group),
        hardware_(hardware),
        choice_(choice),
        last_(static_cast<int>(plan.loops.size()) - 1) {}

  void run() {
    const bool any_reduced =
        std::any_of(plan_.loops.begin(), plan_.loops.end(), [](auto& loop) { return loop.reduced; });
    if (!any_reduced) return elementwise();
    if (plan_.loops.back().reduced)
      rows();
    else
      columns();
    plan_.one_pass = true;
    share();
  }

 private:
  TilePlan& plan_;
  const PrimitiveGraph& graph_;
  const Group& group_;
  const gpu::Machine& hardware_;
  const size_t choice_;
  const int last_;

  int64_t extent(int loop) const { return loop < 0 ? 1 : plan_.loop(loop).extent; }

  int last_loop(bool reduced, int before) const {
    for (int i = before - 1; i >= 0; --i)
      if (plan_.loop(i).reduced == reduced) return i;
    return -1;
  }

  // Of all loops that are reduced, or of all that are kept.
  int64_t elements(bool reduced) const {
    int64_t count = 1;
    for (auto& loop : plan_.loops)
      if (loop.reduced == reduced) count *= loop.extent;
    return count;
  }

  bool is_full(int leaf) const {
    auto& strides = plan_.strides.at(leaf);
    const auto last = static_cast<size_t>(last_);
    return strides[last] != 0 && (last == 0 || strides[last - 1] != 0);
  }

  // Of tensors, those that are read element by element; at least one.
  int64_t inputs(const std::set<int>& values) const {
    const auto count = std::count_if(values.begin(), values.end(),
                                     [&](int id) { return group_.axes.leaves.count(id) > 0 && is_full(id); });
    return std::max<int64_t>(1, count);
  }
  int64_t inputs() const {
    std::set<int> all;
    for (auto& [id, leaf] : group_.axes.leaves) all.insert(id);
    return inputs(all);
  }

  // What reductions need, which a tile holds until all of them are done.
  int64_t held_inputs() const {
    std::set<int> needed;
    for (size_t k = group_.members.size(); k-- > 0;) {
      const int id = group_.members[k];
      if (graph_.at(id).kind != Primitive::Kind::reduce && needed.count(id) == 0) continue;
      needed.insert(graph_.at(id).args.begin(), graph_.at(id).args.end());
    }
    return inputs(needed);
  }

  // Two reductions in one pass keep two values beside each element (one_pass.h).
  static constexpr int64_t kMostOfPair = 16;  // of a thread
  bool has_pair() const { return !find_one_pass(graph_, group_).empty(); }

  // Whether rows are read more than once, if they do not stay in the tile.
  bool returns_to_rows() const {
    const auto reductions = std::count_if(group_.members.begin(), group_.members.end(),
                                          [&](int id) { return graph_.at(id).kind == Primitive::Kind::reduce; });
    return reductions > 1 ||
           std::any_of(group_.outputs.begin(), group_.outputs.end(), [&](int id) { return fills_tile(group_, id); });
  }

  // The widest of the tensors.
  ir::DType element() const {
    ir::DType widest = ir::kInt8;
    const auto add = [&](int id) {
      const ir::DType type = element_type(graph_.at(id).dtype);
      if (type.bytes() > widest.bytes()) widest = type;
    };
    for (auto& [id, leaf] : group_.axes.leaves) add(id);
    for (int id : group_.outputs) add(id);
    return widest;
  }

  int64_t vector_elements() const { return std::max<int64_t>(1, kVectorBytes / element().bytes()); }

  void set(int row, int64_t row_block, int column, int64_t column_block, int64_t threads) {
    plan_.row = row;
    plan_.row_block = row_block;
    plan_.column = column;
    plan_.column_block = column_block;
    plan_.threads = threads;
  }

  void elementwise() {
    const int row = last_ - 1;
    const int64_t lines = extent(row), length = extent(last_);
    const gpu::ElementwiseProblem problem{elements(false) / length, length, element(), inputs()};
    const auto tiles = chosen(gpu::recommend(problem, hardware_, kAll), choice_,
                              [&](const gpu::Tiles& one) { return one.block_m <= lines; });
    if (tiles) return set(row, tiles->block_m, last_, std::min(tiles->block_n, length), tiles->threads);
    // Too little for any of them: one block a warp's worth of lines.
    constexpr int64_t kFew = 1024, kThreads = 128;
    const int64_t block = pick_block(length, kFew);
    set(row, std::min(lines, std::max<int64_t>(1, kFew / block)), last_, block, kThreads);
  }

  void rows() {
    const int other = last_loop(true, last_), kept = other >= 0 ? -1 : last_loop(false, last_);
    const int64_t length = extent(last_), both = length * extent(other);
    const gpu::ReductionProblem problem{elements(false), both, element(), returns_to_rows(), held_inputs()};
    const bool in_one_pass = has_pair();
    const auto tiles = chosen(gpu::recommend(problem, hardware_, kAll), choice_, [&](const gpu::Tiles& one) {
      const bool is_light = one.block_m * one.block_n <= kMostOfPair * one.threads;
      return one.block_m <= extent(kept) && (is_light || !in_one_pass || one.block_n >= both);
    });
    constexpr int64_t kFew = 4096, kThreads = 128;
    const int64_t at_once = tiles ? tiles->block_n : std::min(both, kFew);
    const int64_t threads = tiles ? tiles->threads : kThreads;
    const int64_t column = part_of_row(length, at_once, threads);
    plan_.rows_first = other >= 0;
    if (other >= 0)
      return set(other, pick_block(extent(other), std::max<int64_t>(1, at_once / column)), last_, column, threads);
    set(kept, kept >= 0 && tiles ? tiles->block_m : 1, last_, column, threads);
  }

  // Elements of a row that a block takes at a time, `most` at the most: as many as threads share evenly, by vectors
  // where the row's length lets them. Blocks that end with the row test for no end, which costs less than threads
  // without work. Measured on an H200: rows of 66564 by 2048 take 0.7 of the time that they take by 1849, a divisor.
  int64_t part_of_row(int64_t length, int64_t most, int64_t threads) const {
    constexpr int64_t kFewest = 4;  // `most` over the least part
    constexpr double kCostOfEnd = 1.05;
    if (length <= most) return length;
    const int64_t vector = std::gcd(length, vector_elements());
    const auto cost = [&](int64_t part) {
      const int64_t turn = threads * vector;
      const auto places = static_cast<double>(of_part(length, part) * of_part(part, turn) * turn);
      return length % part == 0 ? places : places * kCostOfEnd;
    };
    int64_t best = most;
    for (int64_t part = most - 1; part >= most / kFewest; --part)
      if (length % part == 0 && cost(part) < cost(best)) best = part;
    return best;
  }

  // Sums over rows, of columns side by side: blocks for each multiprocessor, as long as lanes read their columns at
  // once. Where wide blocks keep all multiprocessors busy, each thread has a column and loads of many rows on the way,
  // fewer where rows of odd length have no vectors. Measured on an H200, in TB/s: rows of 4094 by 1024 threads with 32
  // rows 4.4, with 8 rows 3.9, by 256 threads 3.5; rows of 4095 3.6, 3.8 and 3.5. Such a thread has 64 registers, of
  // which two reductions in one pass take three an element.
  void columns() {
    constexpr int64_t kWidest = 1024, kNarrowest = 32, kThreads = 256, kOfThread = 16, kFewRows = 8, kManyRows = 32;
    const bool has_vectors = extent(last_) % 2 == 0;
    const int64_t of_column =
        has_pair() ? kMostOfPair / 2 : std::max<int64_t>(1, (has_vectors ? kManyRows : kFewRows) / inputs());
    const int other = last_loop(true, last_);
    int64_t width = kWidest;
    const auto blocks = [&] { return elements(false) / extent(last_) * ((extent(last_) + width - 1) / width); };
    if (width < 2 * extent(last_) && 10 * blocks() >= 9 * hardware_.multiprocessors)
      return set(other, pick_block(extent(other), of_column), last_, std::min(width, extent(last_)), kWidest);
    width /= 2;
    while (width > kNarrowest && (width >= 2 * extent(last_) || blocks() < 2 * hardware_.multiprocessors)) width /= 2;
    width = std::min(width, extent(last_));
    const int64_t most = std::max<int64_t>(1, kThreads * kOfThread / width);
    set(other, pick_block(extent(other), most), last_, width, kThreads);
  }

  // Blocks share a reduction where there are too few of them to keep the memory busy, and enough to read that the
  // launches between the phases do not matter.
  void share() {
    constexpr double kWorth = 0.75;
    constexpr size_t kFreeAxes = 2;  // of the three that a grid has
    if (plan_.resident() || kept_loops() > kFreeAxes) return;
    const TilePlan alone = plan_;
    const double before = seconds(alone);
    TilePlan best = alone;
    for (TilePlan& plan : divisible()) {
      split(plan);
      if (plan.split > 1 && seconds(plan) < seconds(best)) best = plan;
    }
    if (seconds(best) < kWorth * before) plan_ = best;
  }

  // The plan as it is, and, of sums over rows, with columns that whole vectors of a warp read.
  std::vector<TilePlan> divisible() const {
    constexpr int64_t kLanes = 32, kOfThread = 16;
    if (plan_.loop(last_).reduced) return {plan_};
    TilePlan wide = plan_;
    wide.column_block = std::min(extent(last_), vector_elements() * kLanes);
    wide.row_block = pick_block(extent(plan_.row), std::max<int64_t>(1, plan_.threads * kOfThread / wide.column_block));
    return {wide, plan_};
  }

  size_t kept_loops() const {
    return static_cast<size_t>(std::count_if(plan_.loops.begin(), plan_.loops.end(), [&](auto& loop) {
      return !loop.reduced && !plan_.whole(static_cast<int>(&loop - plan_.loops.data()));
    }));
  }

  // Blocks that run at once on a multiprocessor.
  static int64_t at_once(const TilePlan& plan) { return std::max<int64_t>(1, gpu::kMostThreadsOfBlock / plan.threads); }

  // Along the reduced loop that gives blocks the most even work.
  void split(TilePlan& plan) const {
    constexpr int64_t kMostResults = 8192;  // of all parts, which one block holds to put them together
    int64_t results = 1;
    for (const int i : {plan.row, plan.column})
      if (i >= 0 && !plan.loop(i).reduced) results *= plan.block(i);
    const int64_t even = of_part(hardware_.multiprocessors * at_once(plan), plan.blocks());
    const int64_t wanted = std::clamp<int64_t>(kMostResults / results, 1, even);
    double most = 1;
    for (int i = 0; i < static_cast<int>(plan.loops.size()); ++i) {
      if (!plan.loop(i).reduced) continue;
      const int64_t parts = parts_of(plan.steps(i), wanted);
      const double sped_up = static_cast<double>(plan.steps(i)) / static_cast<double>(of_part(plan.steps(i), parts));
      if (sped_up <= most) continue;
      most = sped_up;
      plan.split_loop = i;
      plan.split = parts;
    }
  }

  static int64_t of_part(int64_t steps, int64_t parts) { return (steps + parts - 1) / parts; }

  // Parts of the same length, if about as many as wanted have it: others test where they end.
  static int64_t parts_of(int64_t steps, int64_t wanted) {
    const int64_t many = of_part(steps, of_part(steps, wanted));
    for (int64_t parts = many; 4 * parts >= 3 * many; --parts)
      if (steps % parts == 0) return parts;
    return many;
  }

  // A step of a block takes the memory's latency and what the block does with the numbers, about the same again.
  double seconds(const TilePlan& plan) const {
    constexpr double kLaunch = 3e-6;
    int64_t steps = 1;
    for (int i = 0; i < static_cast<int>(plan.loops.size()); ++i)
      if (plan.loop(i).reduced) steps *= of_part(plan.steps(i), i == plan.split_loop ? plan.split : 1);
    const int64_t blocks = plan.blocks(), room = hardware_.multiprocessors * at_once(plan);
    const double step = 2 * hardware_.latency / hardware_.clock;
    const double moved = static_cast<double>(elements(false) * elements(true) * inputs() * element().bytes());
    const double phases = returns_to_rows() ? 2 : 1;
    const double waiting = static_cast<double>(steps * ((blocks + room - 1) / room)) * step;
    return phases * (std::max(waiting, moved / hardware_.memory_rate) + (plan.split > 1 ? kLaunch : 0));
  }
};

constexpr double kNoMatter = 20e-6;  // seconds, about what launching PyTorch's kernels takes

// Few results of long sums want blocks that share a sum, which these kernels have not and PyTorch's library has.
bool splits_better(gpu::GemmProblem problem, const gpu::Tiles& tiles, const gpu::Machine& hardware) {
  constexpr double kWorthACall = 1.5;
  problem.may_split = true;
  if (tiles.estimate.seconds < kNoMatter) return false;
  const auto split = gpu::recommend(problem, hardware, 1);
  return !split.empty() && tiles.estimate.seconds > kWorthACall * split.front().estimate.seconds;
}

// Operands of 16 bits whose rows do not begin where vectors do are copied element by element, and PyTorch's library,
// which has kernels for them, is faster.
bool has_vectors(const PrimitiveGraph& graph, const TilePlan& loops, int product) {
  for (const int operand : {0, 1}) {
    const auto described = describe_operand(graph, loops, product, operand);
    const int64_t bytes = element_type(graph.at(graph.at(product).args[static_cast<size_t>(operand)]).dtype).bytes();
    if (bytes == 2 && described->access.axes.back().extent * bytes % kVectorBytes != 0) return false;
  }
  return true;
}

std::optional<gpu::GemmProblem> gemm_problem(const PrimitiveGraph& graph, const TilePlan& loops, int product) {
  const auto a = describe_operand(graph, loops, product, 0), b = describe_operand(graph, loops, product, 1);
  if (!a || !b) return std::nullopt;
  gpu::GemmProblem problem;
  for (int i = 0; i < loops.row; ++i) problem.batch *= loops.loop(i).extent;
  problem.m = loops.loop(loops.row).extent;
  problem.n = loops.loop(loops.column).extent;
  problem.k = product_depth(graph, product);
  problem.element = element_type(graph.at(graph.at(product).args[0]).dtype);
  problem.output = problem.element;
  problem.full_precision = problem.element == ir::kFloat32;
  problem.transpose_a = a->depth_first;
  problem.transpose_b = !b->depth_first;
  return problem;
}

}  // namespace

std::optional<gpu::Machine> gpu_of(std::string_view target) {
  const auto parsed = runtime::parse_target(target);
  if (!parsed || parsed->architecture.empty()) return std::nullopt;
  return gpu::machine_of(parsed->architecture == "sm_80" ? gpu::Architecture::sm_80 : gpu::Architecture::sm_90a);
}

void choose_gpu_tiles(TilePlan& plan, const PrimitiveGraph& graph, const Group& group, const gpu::Machine& hardware,
                      size_t choice) {
  Chooser(plan, graph, group, hardware, choice).run();
}

bool has_too_few_blocks(const TilePlan& plan, int64_t bytes, const targets::gpu::Machine& machine) {
  constexpr double kPasses = 6;  // of PyTorch over the same bytes
  const double of_one = machine.cache_rate * machine.clock, size = static_cast<double>(bytes);
  const double ours = size / (static_cast<double>(plan.blocks()) * of_one);
  return ours > kNoMatter && ours > kPasses * size / machine.memory_rate;
}

bool multiplies_faster(const PrimitiveGraph& graph, const TilePlan& loops, int product, const gpu::Machine& hardware) {
  constexpr double kWorthAKernel = 1.25;
  auto problem = gemm_problem(graph, loops, product);
  if (!problem || problem->element != ir::kFloat32) return false;
  const auto ours = gpu::recommend(*problem, hardware, 1);
  problem->full_precision = false;
  problem->may_split = true;
  const auto theirs = gpu::recommend(*problem, hardware, 1);
  return !ours.empty() && !theirs.empty() &&
         theirs.front().estimate.seconds > kWorthAKernel * ours.front().estimate.seconds;
}

std::optional<ProductTiles> gpu_product_tiles(const PrimitiveGraph& graph, const TilePlan& loops, int product,
                                              const gpu::Machine& hardware, size_t choice) {
  const auto problem = gemm_problem(graph, loops, product);
  if (!problem) return std::nullopt;
  const int64_t columns = problem->n;
  if (!has_vectors(graph, loops, product)) return std::nullopt;
  // Rows that are reduced lie in one block, as long as its instructions take them.
  const bool whole = loops.loop(loops.column).reduced;
  if (whole && columns % 16 != 0) return std::nullopt;
  const auto tiles = chosen(gpu::recommend(*problem, hardware, kAll), choice,
                            [&](const gpu::Tiles& one) { return !whole || one.block_n >= columns; });
  if (!tiles || splits_better(*problem, *tiles, hardware)) return std::nullopt;
  return ProductTiles{.rows = tiles->block_m,
                      .columns = whole ? columns : tiles->block_n,
                      .depth = tiles->block_k,
                      .depth_16_bit = tiles->block_k,
                      .elements = tiles->block_m * tiles->block_n,
                      .threads = tiles->threads,
                      .stages = tiles->stages,
                      .exact = true,
                      .full_precision = problem->full_precision};
}

}  // namespace tilepilot::agent::builtin
