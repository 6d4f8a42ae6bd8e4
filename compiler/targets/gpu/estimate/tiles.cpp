#include "compiler/targets/gpu/estimate/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>

namespace tilepilot::targets::gpu {
namespace {

// The same on both.
constexpr int64_t kMostThreads = 2048, kMostBlocks = 32;  // of a multiprocessor
constexpr double kSharedRate = 128;                       // bytes of a cycle
constexpr double kFunctionRate = 16;                      // exp2 and the like of a cycle
constexpr int64_t kSharedOfSystem = 1024;                 // of each block
constexpr double kLaunchSeconds = 3e-6;                   // what no kernel goes below
constexpr double kWarpGemmShare = 0.6;                    // of Hopper's rate that `mma` reaches
constexpr double kStoreShare = 0.5;                       // of the rate from L2, for the way back
constexpr double kBlockCycles = 300;                      // to begin and end a block
constexpr double kHiddenShare = 0.8;                      // of a barrier's cost, by other blocks
constexpr double kBusyThreads = 512;                      // of a multiprocessor, that keep its arithmetic units busy
constexpr double kSplitOperations = 5;                    // to split an element of a GEMM's operand
constexpr double kSplitShare = 0.9;                       // of the rate of wgmma, between whose sums threads add
// Of warpgroups that multiply what TMA brings, fitted to 200 tiles of 22 GEMMs on an H200: what a load takes, where L2
// has most; the end of a block, whose result goes by TMA while others begin; a step's waiting, by what issues the
// loads.
constexpr double kTmaLatency = 400, kGroupsEnd = 300, kGroupsStored = 0.3, kGroupsBlock = 1300;
// How late a load may be where all blocks begin at once and wait for the same rows from memory, as in thin GEMMs.
constexpr double kLateLoad = 400;
constexpr double kGroupsBarrier = 90, kProducerBarrier = 10, kGroupsHidden = 0.5;
// Where operands are split they wait for each step's MMAs, and other blocks hide less of that.
constexpr double kSplitBarrier = 400, kSplitHidden = 0.45;
constexpr int64_t kMostSplitSums = 96;  // of a thread, beside which the parts of operands find their registers
constexpr double kSpilledSplit = 1.25;  // the cost of more
constexpr int64_t kRowRegisters = 24;   // of a thread, beside rows: there are no operands
constexpr int64_t kMostHeld = 32;       // elements of rows that a thread holds without spilling some
constexpr int64_t kUsualHeld = 16;      // of them, as has proved itself
constexpr int64_t kMostStreamed = 16;   // elements of a thread that only passes them on
constexpr int64_t kVectorBytes = 16;    // that a thread moves at once
constexpr int64_t kLongestLine = 4096;  // that an element-wise block takes whole

int64_t tiles_over(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }
double in_kilobytes(int64_t bytes) { return static_cast<double>(bytes) / 1024; }

bool is_half(ir::DType type) { return type == ir::kFloat16 || type == ir::kBFloat16; }
bool is_fp8(ir::DType type) { return type == ir::kFloat8E4M3 || type == ir::kFloat8E5M2; }
bool is_byte_integer(ir::DType type) { return type == ir::kInt8 || type == ir::kUInt8; }

// Of the tensor cores of a multiprocessor, operations of a cycle; 0: they do not take the type.
double tensor_rate(ir::DType type, const Machine& machine) {
  if (is_half(type)) return machine.half_rate;
  if (type == ir::kTensorFloat32) return machine.half_rate / 2;
  if (is_byte_integer(type)) return machine.half_rate * 2;
  if (type == ir::kFloat64) return machine.half_rate / 16;
  const bool hopper = machine.has_wgmma;
  return is_fp8(type) && hopper ? machine.half_rate * 2 : 0;
}

struct Arrangement {
  int64_t rows = 1, columns = 1;
};

// Warpgroups over a GEMM, those over rows first.
Arrangement groups_over(const TileGemm& product, int64_t threads) {
  const int64_t groups = threads / 128, rows = std::min(groups, product.m / 64);
  return {rows, groups / rows};
}

// Registers of a thread for a split-precision GEMM: accumulators of one instruction, and parts of A for some steps.
// None if nothing is left beside C.
std::optional<int64_t> registers_for_parts(const TileGemm& product, int64_t threads) {
  const int64_t sums = product.m * product.n / threads, steps = std::min(kStepsOfParts, product.k / 8);
  for (int64_t n = std::min<int64_t>(256, product.n / groups_over(product, threads).columns); n >= 8; n /= 2)
    if (const int64_t parts = registers_of_parts(n, steps); has_room_for_parts(sums, parts, threads)) return parts;
  return std::nullopt;
}

// Whether warpgroups multiply it, from shared memory (wgmma).
bool by_groups(const TileGemm& product, int64_t threads, const Machine& machine) {
  if (!machine.has_wgmma || threads % 128 != 0 || product.m % 64 != 0 || product.n % 8 != 0) return false;
  if (product.parts > 1) return registers_for_parts(product, threads).has_value();
  return product.type != ir::kFloat64 && tensor_rate(product.type, machine) > 0 &&
         (product.any_major || is_half(product.type));
}

// `workers` over a matrix of tiles, nearly square.
Arrangement arrange(int64_t workers, int64_t m, int64_t n, int64_t least_m) {
  Arrangement best{1, workers};
  double shortest = 0;
  for (int64_t rows = 1; rows <= workers; rows *= 2) {
    const int64_t columns = workers / rows;
    if (rows > 1 && m / rows < least_m) break;
    const double edge =
        static_cast<double>(m) / static_cast<double>(rows) + static_cast<double>(n) / static_cast<double>(columns);
    if (rows > 1 && edge >= shortest) continue;
    best = {rows, columns};
    shortest = edge;
  }
  return best;
}

struct ProductCost {
  double cycles = 0;        // of tensor cores, or of the threads where those do not take the type
  double shared_bytes = 0;  // read
  double operations = 0;    // of the threads, on operands
};

ProductCost cost_of(const TileGemm& product, int64_t threads, const Machine& machine) {
  const double operations = 2.0 * static_cast<double>(product.m * product.n * product.k);
  const double bytes = static_cast<double>(product.k * product.type.bytes());
  const double rate = tensor_rate(product.type, machine);
  if (by_groups(product, threads, machine)) {
    // Each group reads, for each 64 rows of its own, these rows of a and its columns of b.
    const int64_t columns = groups_over(product, threads).columns;
    const double pieces = static_cast<double>(product.m / 64 * columns), parts = static_cast<double>(product.parts);
    const double a = product.a_in_registers ? 0 : 64, b = static_cast<double>(product.n) / static_cast<double>(columns);
    const double read = pieces * (a + parts * b) * bytes;
    if (product.parts == 1) return {operations / rate, read, 0};
    // Parts of B are written once, for all groups.
    const double written = static_cast<double>(product.n * (product.any_major ? 2 : 3)) * bytes;
    const double split = static_cast<double>((product.n + product.m * columns) * product.k) * kSplitOperations;
    const double spilled = product.m * product.n / threads > kMostSplitSums ? kSpilledSplit : 1;
    return {spilled * parts * operations / (rate * kSplitShare), read + written, split};
  }
  const Arrangement warps = arrange(threads / 32, product.m, product.n, 16);
  const double rows = product.a_in_registers ? 0 : static_cast<double>(product.m * warps.columns);
  const double read = (rows + static_cast<double>(product.n * warps.rows)) * bytes;
  // Threads that multiply themselves read each operand twice as often as warps do together.
  if (rate == 0) return {operations / machine.float_rate, 2 * read, 0};
  const bool hopper = machine.has_wgmma;
  const double parts = static_cast<double>(product.parts);
  const double splitting = product.parts == 1 ? 0 : read / static_cast<double>(product.type.bytes()) * kSplitOperations;
  return {parts * operations / (hopper ? rate * kWarpGemmShare : rate), read, splitting};
}

// The share of L2's rate that copies of such rows reach: TMA requests rows one by one.
double share_of_rows(int64_t row_bytes, const Machine& machine) {
  if (!machine.has_tma) return row_bytes >= 64 ? 1 : 0.6;
  return row_bytes >= 128 ? 1 : row_bytes >= 64 ? 0.65 : 0.35;
}

std::optional<Refusal> refusal_of(const BlockWork& work, const Machine& machine) {
  if (work.threads % 32 != 0 || work.threads < 32 || work.threads > kMostThreadsOfBlock)
    return Refusal{
        fmt::format("{} threads; blocks have a multiple of 32, and at most {}", work.threads, kMostThreadsOfBlock)};
  if (work.shared_bytes > machine.block_shared_bytes)
    return Refusal{fmt::format("{:.1f} KB of shared memory; a block has {:.0f}", in_kilobytes(work.shared_bytes),
                               in_kilobytes(machine.block_shared_bytes))};
  if (work.registers > registers_of_thread(work.threads))
    return Refusal{fmt::format("{} registers for each of {} threads; there are {}", work.registers, work.threads,
                               registers_of_thread(work.threads))};
  return std::nullopt;
}

// Whether warpgroups multiply in a pipeline that TMA fills.
bool is_tma_pipeline(const BlockWork& work, const Machine& machine) {
  return machine.has_tma && !work.products.empty() && work.copied > 0 && work.steps > 1 &&
         std::all_of(work.products.begin(), work.products.end(),
                     [&](const TileGemm& product) { return by_groups(product, work.threads, machine); });
}

// Whether one more warpgroup issues the loads of such a pipeline. All registers are divided among them, so that no
// second block finds any.
bool has_producer(const BlockWork& work, const Machine& machine) {
  return work.stages > 1 && work.threads >= 256 && work.threads <= 512 && is_tma_pipeline(work, machine);
}

int64_t resident_blocks(const BlockWork& work, const Machine& machine) {
  if (has_producer(work, machine)) return 1;
  const int64_t allocated = tiles_over(std::max<int64_t>(work.registers, 16), kRegisterUnit) * kRegisterUnit;
  return std::max<int64_t>(
      1, std::min({machine.shared_bytes / (work.shared_bytes + kSharedOfSystem),
                   kRegistersOfBlock / (allocated * work.threads), kMostThreads / work.threads, kMostBlocks}));
}

// What blocks wait for beside their work, in cycles.
struct Waits {
  double latency = 0;  // of loads
  double late = 0;     // of some loads: steps ahead make up for it
  int64_t ahead = 1;   // steps that a load is issued before what it brings is needed
  double barrier = 0;  // of each step
  double hidden = 0;   // the share of it that other blocks hide
  double block = 0;    // of a block among others
  double end = 0;      // of a block alone
  double stored = 1;   // the share of its stores that it waits for
};

Waits waits_of(const BlockWork& work, const Machine& machine) {
  const int64_t ahead = work.stages - 1;
  // Steps without GEMMs mostly have no barrier: threads combine what they have after the loop.
  const double barrier = work.products.empty() ? 0 : machine.barrier_cycles;
  if (!is_tma_pipeline(work, machine))
    return {machine.latency, 0, ahead, barrier, kHiddenShare, kBlockCycles, machine.latency, 1};
  if (work.products.front().parts > 1)
    return {kTmaLatency, 0, ahead, kSplitBarrier, kSplitHidden, kGroupsBlock, kGroupsEnd, kGroupsStored};
  // An MMA still reads a stage while the next one is issued.
  return {kTmaLatency,
          kLateLoad,
          std::max<int64_t>(1, ahead - 1),
          has_producer(work, machine) ? kProducerBarrier : kGroupsBarrier,
          kGroupsHidden,
          kGroupsBlock,
          kGroupsEnd,
          kGroupsStored};
}

// The cycles of one step, by what they go to.
struct StepCost {
  double tensor = 0, arithmetic = 0, shared = 0, cache = 0;
};

// `together`: blocks of a multiprocessor.
StepCost cost_of_step(const BlockWork& work, const Machine& machine, double together) {
  StepCost cost;
  double read = 0, by_threads = 0, splitting = 0;
  for (const TileGemm& product : work.products) {
    const ProductCost one = cost_of(product, work.threads, machine);
    (tensor_rate(product.type, machine) > 0 ? cost.tensor : by_threads) += one.cycles;
    read += one.shared_bytes;
    splitting += one.operations;
  }
  cost.arithmetic =
      by_threads + work.functions / kFunctionRate + (work.operations + splitting) / (machine.float_rate / 2);
  // Few threads that only compute leave the units waiting for one another's results.
  if (work.products.empty())
    cost.arithmetic /= std::min(1.0, together * static_cast<double>(work.threads) / kBusyThreads);
  cost.shared = (read + static_cast<double>(work.copied)) / kSharedRate;
  cost.cache = static_cast<double>(work.copied) / (machine.cache_rate * share_of_rows(work.row_bytes, machine));
  return cost;
}

std::string largest(const StepCost& cost) {
  const std::pair<double, const char*> all[] = {{cost.tensor, "tensor cores"},
                                                {cost.arithmetic, "arithmetic"},
                                                {cost.shared, "shared memory"},
                                                {cost.cache, "L2"}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

}  // namespace

std::variant<Estimate, Refusal> estimate(const BlockWork& work, const Machine& machine) {
  if (auto refusal = refusal_of(work, machine)) return *refusal;
  const double blocks = static_cast<double>(work.blocks), processors = static_cast<double>(machine.multiprocessors);
  const double rounds = std::max(1.0, std::ceil(blocks / processors));  // blocks of the busiest multiprocessor
  Estimate result;
  result.resident = resident_blocks(work, machine);
  result.waves = blocks / (processors * static_cast<double>(result.resident));
  const double together = std::min(static_cast<double>(result.resident), rounds);
  const StepCost step = cost_of_step(work, machine, together);
  // Blocks or warpgroups side by side hide half of the arithmetic behind MMAs; one alone hides nothing.
  const double more = std::max(step.tensor, step.arithmetic), less = std::min(step.tensor, step.arithmetic);
  const double computing = together > 1 || work.threads > 128 ? more + less / 2 : more + less;
  const double busy = std::max({computing, step.shared, step.cache});
  const Waits waits = waits_of(work, machine);
  const double arrival = work.copied == 0 ? 0 : waits.latency + step.cache;
  const double late = rounds > 1 ? 0 : waits.late / static_cast<double>(waits.ahead);
  const double alone =
      work.stages < 2 ? busy + waits.barrier + arrival
                      : std::max({busy + waits.barrier, step.cache + late, arrival / static_cast<double>(waits.ahead)});
  const double moved = static_cast<double>(work.loaded) + static_cast<double>(work.stored) / kStoreShare;
  const double ends = waits.end + waits.stored * moved / machine.cache_rate + arrival;
  const double full = rounds * (work.steps * (busy + waits.barrier * (1 - waits.hidden)) + waits.block) + ends;
  const double chained = std::ceil(rounds / together) * (work.steps * alone + ends + kBlockCycles);
  // Blocks that take longer than others keep the device from ending.
  result.cycles = std::max(full, chained) + std::max(0.0, work.longest - work.steps) * alone;
  const double moving = work.memory_bytes / machine.memory_rate, running = result.cycles / machine.clock;
  result.seconds = std::max(running, moving) + kLaunchSeconds;
  const bool is_waiting = work.steps * busy < ends || (chained > full && alone > 1.5 * busy);
  result.bound = moving >= running ? "memory" : is_waiting ? "latency" : largest(step);
  return result;
}

int64_t operand_registers(const TileGemm& product, int64_t threads, const Machine& machine) {
  if (by_groups(product, threads, machine)) return product.parts > 1 ? *registers_for_parts(product, threads) : 0;
  const Arrangement warps = arrange(std::max<int64_t>(1, threads / 32), product.m, product.n, 16);
  const int64_t words = (product.m / warps.rows + product.n / warps.columns) / 4;
  // Of a split operand there are the whole and both parts, and those of the next step.
  return product.parts > 1 ? 6 * words : words;
}

namespace {

// Those that can run, the fastest first. Equal times: what hangs least over the ends, then what has proved itself, then
// what leaves the most room, then the order they came in.
class Ranking {
 public:
  explicit Ranking(const Machine& machine) : hardware_(machine) {}

  // Of kernels without GEMMs: the elements of the problem, and those of a thread that have proved themselves.
  Ranking(const Machine& machine, int64_t elements, int64_t usual)
      : hardware_(machine), elements_(static_cast<double>(elements)), usual_(usual) {}

  void add(Tiles tiles) {
    auto made = gpu::estimate(tiles.work, hardware_);
    if (std::holds_alternative<Refusal>(made)) return;
    tiles.estimate = std::get<Estimate>(std::move(made));
    all_.push_back(std::move(tiles));
  }

  std::vector<Tiles> best(size_t count) && {
    const auto order = [&](const Tiles& tiles) {
      return std::make_tuple(tiles.estimate.seconds, tiles.split_k, overhang(tiles), unusual(tiles),
                             tiles.work.registers, std::abs(tiles.stages - proven_stages(tiles)),
                             tiles.work.shared_bytes);
    };
    std::stable_sort(all_.begin(), all_.end(), [&](const Tiles& a, const Tiles& b) { return order(a) < order(b); });
    if (all_.size() > count) all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(count), all_.end());
    return std::move(all_);
  }

 private:
  const Machine& hardware_;
  std::vector<Tiles> all_;
  double elements_ = 1;
  int64_t usual_ = 0;

  // Of blocks that all begin at once some wait longer for memory.
  int64_t proven_stages(const Tiles& tiles) const {
    const bool may_be_late = tiles.estimate.waves <= 1 && is_tma_pipeline(tiles.work, hardware_);
    return may_be_late && tiles.work.products.front().parts == 1 ? 6 : 3;
  }
  // Of GEMMs in elements; elsewhere in parts of what there is, as what hangs over waits for no memory.
  double overhang(const Tiles& tiles) const {
    const auto covered = static_cast<double>(tiles.work.blocks * tiles.block_m * tiles.block_n);
    if (!tiles.work.products.empty()) return covered;
    constexpr double kParts = 32;
    return std::floor(kParts * (covered * tiles.work.steps / elements_ - 1));
  }
  // Of kernels without GEMMs, which mostly wait for memory alike: how far from the usual elements of each of 256
  // threads.
  int64_t unusual(const Tiles& tiles) const {
    if (!tiles.work.products.empty()) return 0;
    return std::abs(tiles.block_m * tiles.block_n / tiles.threads - usual_) * 1024 + std::abs(tiles.threads - 256);
  }
};

int64_t words_of(int64_t elements, ir::DType type) { return tiles_over(elements * type.bytes(), 4); }

// Registers of a thread for an accumulator and the operands.
int64_t product_registers(const TileGemm& product, int64_t threads, const Machine& machine) {
  const ir::DType accumulator = product.type == ir::kFloat64 ? ir::kFloat64 : ir::kFloat32;
  return words_of(product.m * product.n, accumulator) / threads + kOverheadRegisters +
         operand_registers(product, threads, machine);
}

// What a wave of blocks reads of the operands, the rest of the cache's good luck left out: blocks are counted along n,
// or within panels of so many rows of blocks.
double wave_traffic(const GemmProblem& problem, const Tiles& tiles, double wave) {
  const double rows = static_cast<double>(tiles_over(problem.m, tiles.block_m));
  const double columns = static_cast<double>(tiles_over(problem.n, tiles.block_n));
  const double at_once = std::min(wave, rows * columns);
  const double high =
      tiles.panel > 0 ? std::min<double>(static_cast<double>(tiles.panel), rows) : std::ceil(at_once / columns);
  const double wide = std::min(columns, std::ceil(at_once / high));
  const double elements = high * static_cast<double>(tiles.block_m) + wide * static_cast<double>(tiles.block_n);
  return elements * static_cast<double>(problem.k * problem.element.bytes()) * (rows * columns / at_once);
}

void set_traffic(const GemmProblem& problem, const Machine& machine, Tiles& tiles) {
  const double batch = static_cast<double>(problem.batch);
  const double operands = static_cast<double>((problem.m + problem.n) * problem.k * problem.element.bytes()) * batch;
  const double result = static_cast<double>(problem.m * problem.n * problem.output.bytes()) * batch;
  double read = operands;
  if (operands > static_cast<double>(machine.cache_bytes)) {
    const auto wave = static_cast<double>(machine.multiprocessors * resident_blocks(tiles.work, machine));
    const auto with_panel = [&](int64_t panel) {
      Tiles tried = tiles;
      tried.panel = panel;
      return std::max(operands, wave_traffic(problem, tried, wave) * batch);
    };
    read = with_panel(0);
    // A panel costs divisions in every block: it has to save something.
    for (const int64_t panel : {4, 8, 16}) {
      if (with_panel(panel) > 0.9 * read) continue;
      read = with_panel(panel);
      tiles.panel = panel;
    }
  }
  tiles.work.memory_bytes = read + result * (tiles.split_k > 1 ? static_cast<double>(2 * tiles.split_k) : 1);
}

Tiles gemm_tiles(const GemmProblem& problem, const Machine& machine, Tiles tiles) {
  const int64_t bytes = problem.element.bytes(), steps = tiles_over(problem.k, tiles.block_k);
  BlockWork& work = tiles.work;
  work.blocks =
      tiles_over(problem.m, tiles.block_m) * tiles_over(problem.n, tiles.block_n) * problem.batch * tiles.split_k;
  work.threads = tiles.threads;
  work.steps = static_cast<double>(tiles_over(steps, tiles.split_k));
  work.stages = tiles.stages;
  TileGemm product{tiles.block_m, tiles.block_n, tiles.block_k, problem.element};
  if (problem.full_precision && problem.element == ir::kFloat32) {
    product.type = ir::kTensorFloat32;
    product.parts = kPartsOfFloat32;
  }
  product.any_major = !problem.transpose_a && problem.transpose_b;
  work.products = {product};
  work.copied = (tiles.block_m + tiles.block_n) * tiles.block_k * bytes;
  work.row_bytes = std::min(problem.transpose_a ? tiles.block_m : tiles.block_k,
                            problem.transpose_b ? tiles.block_k : tiles.block_n) *
                   bytes;
  const ir::DType output = tiles.split_k > 1 ? ir::kFloat32 : problem.output;
  work.stored = tiles.block_m * tiles.block_n * output.bytes();
  // The tile of the result may pass through the memory that the operands no longer need.
  int64_t held = tiles.stages * work.copied;
  if (product.parts > 1 && by_groups(product, tiles.threads, machine))
    held += tiles.block_n * tiles.block_k * bytes * (product.any_major ? 1 : 2);
  work.shared_bytes = std::max(held, work.stored) + kSharedOfSystem;
  work.registers = product_registers(product, tiles.threads, machine);
  set_traffic(problem, machine, tiles);
  return tiles;
}

// Tiles of which more than half would be empty are none, but for the smallest.
std::vector<int64_t> block_sizes(std::initializer_list<int64_t> sizes, int64_t extent) {
  std::vector<int64_t> fitting;
  for (const int64_t size : sizes)
    if (fitting.empty() || (size < 2 * extent && size > fitting.back())) fitting.push_back(size);
  return fitting;
}

int64_t even_split(int64_t steps, int64_t split) { return steps / split >= 4 ? split : 1; }

}  // namespace

std::vector<Tiles> recommend(const GemmProblem& problem, const Machine& machine, size_t count) {
  Ranking ranking(machine);
  if (problem.m <= 0 || problem.n <= 0 || problem.k <= 0 || problem.batch <= 0) return {};
  const int64_t bytes = problem.element.bytes();
  const auto each = [&](const Tiles& tiles) {
    const int64_t steps = tiles_over(problem.k, tiles.block_k);
    if (tiles.stages > std::max<int64_t>(2, steps)) return;
    // Where every block has a multiprocessor for itself, longer steps cost nothing.
    const int64_t blocks = tiles_over(problem.m, tiles.block_m) * tiles_over(problem.n, tiles.block_n) * problem.batch;
    if (tiles.block_k * bytes > 128 && (problem.full_precision || blocks > machine.multiprocessors)) return;
    // More warps than instructions find rows and columns for would do the same twice.
    if ((tiles.block_m / 16) * (tiles.block_n / 8) < tiles.threads / 32) return;
    for (const int64_t split : {1, 2, 4, 8}) {
      if (split > 1 && (!problem.may_split || even_split(steps, split) == 1)) break;
      Tiles one = tiles;
      one.split_k = split;
      ranking.add(gemm_tiles(problem, machine, one));
    }
  };
  // Rows of up to 128 bytes, what a swizzle spans and TMA moves at a time, or two of them.
  for (const int64_t m : block_sizes({16, 32, 64, 128, 256}, problem.m))
    for (const int64_t n : block_sizes({16, 32, 64, 128, 256}, problem.n))
      for (const int64_t k :
           block_sizes({std::max<int64_t>(16, 32 / bytes), 64 / bytes, 128 / bytes, 256 / bytes}, problem.k))
        for (const int64_t stages : {2, 3, 4, 5, 6, 8})
          for (const int64_t threads : {128, 256}) each({m, n, k, stages, threads, 0, 1, {}, {}});
  return std::move(ranking).best(count);
}

namespace {

Tiles attention_tiles(const AttentionProblem& problem, Tiles tiles) {
  const int64_t bytes = problem.element.bytes(), m = tiles.block_m, n = tiles.block_n;
  BlockWork& work = tiles.work;
  work.blocks = tiles_over(problem.queries, m) * problem.batch * problem.heads;
  work.threads = tiles.threads;
  // Below the diagonal: half of the keys, and the tile on it.
  const double all = static_cast<double>(tiles_over(problem.keys, n));
  work.steps = problem.causal ? (all + std::max(1.0, static_cast<double>(m) / static_cast<double>(n))) / 2 : all;
  work.longest = all;
  work.stages = tiles.stages;
  work.products = {{m, n, problem.dim, problem.element}, {m, problem.dim, n, problem.element, true}};
  work.copied = 2 * n * problem.dim * bytes;
  work.row_bytes = problem.dim * bytes;
  // Of each score: scale, maximum, difference, power, sum, conversion; the sum over keys is rescaled as well.
  const double scores = static_cast<double>(m * n);
  work.functions = scores;
  work.operations = 10 * scores;
  work.loaded = work.stored = m * problem.dim * bytes;
  work.shared_bytes = work.loaded + tiles.stages * work.copied + kSharedOfSystem;
  work.registers =
      (words_of(m * problem.dim, ir::kFloat32) + words_of(m * n, ir::kFloat32)) / tiles.threads + kOverheadRegisters;
  work.memory_bytes = static_cast<double>(problem.batch * problem.heads * problem.dim * bytes) * 2 *
                      static_cast<double>(problem.queries + problem.keys);
  return tiles;
}

// A thread reads up to 16 bytes at a time, where rows of so many bytes begin at multiples of them; less costs more
// instructions.
double operations_of_elements(double elements, int64_t of_thread, ir::DType type, int64_t row_bytes) {
  const int64_t aligned = std::gcd(row_bytes, kVectorBytes);
  const double vector = static_cast<double>(std::clamp<int64_t>(of_thread * type.bytes(), 1, aligned));
  return elements * (4 + 16 / vector);
}

// The share of what blocks read twice that memory has to give twice: none if L2 keeps their rows, all of it if they
// are more than L2 holds. Measured on an H200 with rows of 64 and 256 KB and blocks of 256 to 1024 threads: 0.1 of it
// at a third of L2, 0.6 at two thirds, 0.8 at 1.4 times, 1 at 2.8 times.
double missed_share(double rows_bytes, const Machine& machine) {
  return std::clamp(rows_bytes / static_cast<double>(machine.cache_bytes) * 4 / 3 - 1.0 / 3, 0.0, 1.0);
}

Tiles reduction_tiles(const ReductionProblem& problem, const Machine& machine, Tiles tiles) {
  const int64_t bytes = problem.element.bytes(), elements = tiles.block_m * tiles.block_n;
  const int64_t chunks = tiles_over(problem.columns, tiles.block_n);
  BlockWork& work = tiles.work;
  work.blocks = tiles_over(problem.rows, tiles.block_m);
  work.threads = tiles.threads;
  // A row that does not stay in registers is read again to be written.
  const bool reads_again = chunks > 1 && problem.writes_rows;
  work.steps = static_cast<double>(chunks * (reads_again ? 2 : 1));
  const int64_t of_thread =
      std::max<int64_t>(1, tiles_over(tiles.block_n, std::max<int64_t>(1, tiles.threads / tiles.block_m)));
  // Once a row, warps combine their values through scratch after lanes have by shuffles (deferred_reductions.h).
  const double barriers = tiles.threads > 32 * tiles.block_m ? 60 * std::log2(static_cast<double>(tiles.threads)) : 100;
  work.operations =
      operations_of_elements(static_cast<double>(elements), of_thread, problem.element, problem.columns * bytes) +
      128 * barriers / static_cast<double>(chunks);
  (chunks > 1 ? work.copied : work.loaded) = elements * bytes * problem.inputs;
  work.stored = problem.writes_rows ? tiles.block_m * problem.columns * bytes : tiles.block_m * bytes;
  work.registers = words_of(elements * problem.inputs, ir::kFloat32) / tiles.threads + kRowRegisters;
  const auto row_bytes = static_cast<double>(problem.columns * bytes * problem.inputs);
  const auto at_once = static_cast<double>(
      std::min(problem.rows, tiles.block_m * machine.multiprocessors * resident_blocks(work, machine)));
  const double passes = 1 + (reads_again ? missed_share(at_once * row_bytes, machine) : 0);
  const double written = problem.writes_rows ? static_cast<double>(problem.columns * bytes) : 0;
  work.memory_bytes = static_cast<double>(problem.rows) * (passes * row_bytes + written);
  return tiles;
}

Tiles elementwise_tiles(const ElementwiseProblem& problem, Tiles tiles) {
  const int64_t bytes = problem.element.bytes(), elements = tiles.block_m * tiles.block_n;
  BlockWork& work = tiles.work;
  work.blocks = tiles_over(problem.rows, tiles.block_m) * tiles_over(problem.columns, tiles.block_n);
  work.threads = tiles.threads;
  const int64_t of_thread = std::max<int64_t>(1, elements / tiles.threads);
  work.operations =
      operations_of_elements(static_cast<double>(elements), of_thread, problem.element, problem.columns * bytes);
  work.loaded = elements * bytes * problem.inputs;
  work.stored = elements * bytes;
  work.registers = words_of(of_thread * (problem.inputs + 1), problem.element) + kOverheadRegisters;
  work.memory_bytes = static_cast<double>(problem.rows * problem.columns * bytes * (problem.inputs + 1));
  return tiles;
}

}  // namespace

std::vector<Tiles> recommend(const AttentionProblem& problem, const Machine& machine, size_t count) {
  Ranking ranking(machine);
  if (problem.queries <= 0 || problem.keys <= 0 || problem.dim <= 0 || problem.batch <= 0 || problem.heads <= 0)
    return {};
  for (const int64_t m : block_sizes({16, 32, 64, 128, 192}, problem.queries))
    for (const int64_t n : block_sizes({16, 32, 64, 128}, problem.keys))
      for (const int64_t stages : {1, 2, 3})
        for (const int64_t threads : {128, 256, 384}) {
          // Rows of a warp, so that the maximum of a row stays within it.
          if (m / 16 < threads / 32) continue;
          if (machine.has_wgmma && m % 64 == 0 && m / 64 < threads / 128) continue;
          ranking.add(attention_tiles(problem, {m, n, 0, stages, threads, 0, 1, {}, {}}));
        }
  return std::move(ranking).best(count);
}

std::vector<Tiles> recommend(const ReductionProblem& problem, const Machine& machine, size_t count) {
  if (problem.rows <= 0 || problem.columns <= 0 || problem.inputs <= 0) return {};
  Ranking ranking(machine, problem.rows * problem.columns, kUsualHeld);
  std::vector<int64_t> widths = {problem.columns};
  for (const int64_t width : {1024, 2048, 4096, 8192, 16384})
    if (width < problem.columns) widths.push_back(width);
  for (const int64_t m : block_sizes({1, 2, 4, 8, 16, 32, 64}, problem.rows))
    for (const int64_t n : widths)
      for (const int64_t threads : {32, 64, 128, 256, 512, 1024})
        if (m * n >= threads && m * n * problem.inputs <= kMostHeld * threads)
          ranking.add(reduction_tiles(problem, machine, {m, n, 0, 1, threads, 0, 1, {}, {}}));
  return std::move(ranking).best(count);
}

std::vector<Tiles> recommend(const ElementwiseProblem& problem, const Machine& machine, size_t count) {
  if (problem.rows <= 0 || problem.columns <= 0 || problem.inputs <= 0) return {};
  // A vector of each thread: more of them in a block of as many threads make memory slower, by 3 % of an H200's rate.
  const int64_t vector = std::max<int64_t>(1, kVectorBytes / std::max<int64_t>(1, problem.element.bytes()));
  Ranking ranking(machine, problem.rows * problem.columns, vector);
  std::vector<int64_t> widths = block_sizes({32, 64, 128, 256, 512, 1024, 2048, kLongestLine}, problem.columns);
  if (problem.columns <= kLongestLine && std::find(widths.begin(), widths.end(), problem.columns) == widths.end())
    widths.push_back(problem.columns);
  for (const int64_t m : block_sizes({1, 2, 4, 8, 16, 32, 64, 128}, problem.rows))
    for (const int64_t n : widths)
      for (const int64_t threads : {64, 128, 256, 512})
        if (m * n >= threads && m * n <= kMostStreamed * threads)
          ranking.add(elementwise_tiles(problem, {m, n, 0, 1, threads, 0, 1, {}, {}}));
  return std::move(ranking).best(count);
}

}  // namespace tilepilot::targets::gpu
