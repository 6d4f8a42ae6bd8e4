#include "compiler/targets/gpu/estimate/kernel_estimate.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/layout/gemm_plan.h"

namespace tilepilot::targets::gpu {
namespace {

using Numbers = std::unordered_map<const ir::VarData*, int64_t>;

// The value of an integer expression where variables have the given ones; nullopt if it needs others.
std::optional<int64_t> number_of(const ir::Expr& expr, const Numbers& numbers) {
  if (auto constant = ir::constant_int(expr)) return constant;
  if (auto* var = ir::as<ir::VarRef>(expr)) {
    const auto found = numbers.find(var->var.get());
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  if (auto* cast = ir::as<ir::Cast>(expr)) return number_of(cast->value, numbers);
  if (auto* choice = ir::as<ir::Select>(expr)) {
    const auto condition = number_of(choice->condition, numbers);
    return condition ? number_of(*condition != 0 ? choice->then : choice->otherwise, numbers) : std::nullopt;
  }
  auto* operation = ir::as<ir::Binary>(expr);
  if (operation == nullptr || !expr->type.is_int()) return std::nullopt;
  const auto left = number_of(operation->left, numbers), right = number_of(operation->right, numbers);
  if (!left || !right) return std::nullopt;
  switch (operation->op) {
    case ir::BinaryOp::add:
      return *left + *right;
    case ir::BinaryOp::sub:
      return *left - *right;
    case ir::BinaryOp::mul:
      return *left * *right;
    case ir::BinaryOp::min:
      return std::min(*left, *right);
    case ir::BinaryOp::max:
      return std::max(*left, *right);
    case ir::BinaryOp::floor_div:
      return *right == 0 ? std::nullopt : std::optional(static_cast<int64_t>(ir::floor_div(*left, *right)));
    case ir::BinaryOp::floor_mod:
      return *right == 0 ? std::nullopt : std::optional(static_cast<int64_t>(ir::floor_mod(*left, *right)));
    default:
      return std::nullopt;
  }
}

double elements_of(const ir::Region& region) {
  double count = 1;
  for (const int64_t extent : region.extent) count *= static_cast<double>(extent);
  return count;
}

double elements_of(const ir::BufferData& buffer) {
  double count = 1;
  for (const ir::Expr& extent : buffer.shape) count *= static_cast<double>(ir::constant_int(extent).value_or(1));
  return count;
}

double bytes_of(const ir::DType& type, double elements) { return elements * type.bits / 8; }

bool takes_long(ir::MathFn function) { return function < ir::MathFn::abs; }

TileGemm product_of(const ir::Gemm& gemm) {
  const auto matrix = [](const ir::Region& region, bool transposed) {
    const size_t rank = region.extent.size();
    const int64_t rows = region.extent[rank - 2], columns = region.extent[rank - 1];
    return transposed ? std::make_pair(columns, rows) : std::make_pair(rows, columns);
  };
  const auto [m, k] = matrix(gemm.a, gemm.transpose_a);
  const int64_t n = matrix(gemm.b, gemm.transpose_b).second;
  const bool in_registers = gemm.a.buffer->scope == ir::Scope::fragment;
  const bool any_major = (in_registers || !gemm.transpose_a) && gemm.transpose_b;
  const ir::DType type = mma_operand_type(gemm, gemm.a.buffer->type);
  const bool splits = gemm.precision == ir::Precision::fp32 && type == ir::kTensorFloat32;
  return {m, n, k, type, in_registers, any_major, splits ? kPartsOfFloat32 : 1};
}

// Sums over the whole life of a block.
struct Totals {
  double loaded = 0, stored = 0, functions = 0, operations = 0;
};

// Reads a kernel's body at one place of the grid.
class WorkReader {
 public:
  explicit WorkReader(Numbers numbers) : numbers_(std::move(numbers)) {}

  // The innermost loop around the GEMMs, if there are any: what the model calls steps.
  void find_main_loop(const ir::Stmt& stmt) {
    if (auto* loop = ir::as<ir::For>(stmt); loop && loop->kind != ir::LoopKind::parallel) {
      const auto* outer = std::exchange(inner_, &*stmt);
      find_main_loop(loop->body);
      inner_ = outer;
      return;
    }
    if (ir::as<ir::Gemm>(stmt)) {
      if (main_ == nullptr) main_ = inner_;
      return;
    }
    for_children(stmt, [&](const ir::Stmt& child) { find_main_loop(child); });
  }

  void read(const ir::Stmt& stmt, double times, bool inside) {
    if (auto* loop = ir::as<ir::For>(stmt)) {
      double count = 1;
      for (size_t axis = 0; axis < loop->extents.size(); ++axis) {
        const int64_t extent = std::max<int64_t>(0, number_of(loop->extents[axis], numbers_).value_or(1));
        numbers_[loop->vars[axis].get()] = extent / 2;
        count *= static_cast<double>(extent);
      }
      const bool is_main = &*stmt == main_;
      if (is_main) steps_ += times * count;
      if (is_main) stages_ = std::max<int64_t>(loop->kind == ir::LoopKind::pipelined ? loop->num_stages : 1, 1);
      return read(loop->body, times * count, inside || is_main);
    }
    if (auto* let = ir::as<ir::Let>(stmt))
      if (auto number = number_of(let->value, numbers_)) numbers_[let->var.get()] = *number;
    add(stmt, times, inside);
    for_children(stmt, [&](const ir::Stmt& child) { read(child, times, inside); });
  }

  const ir::StmtNode* main() const { return main_; }
  double steps() const { return steps_; }
  int64_t stages() const { return stages_; }
  int64_t row_bytes() const { return row_bytes_; }
  const Totals& inside() const { return inside_; }
  const Totals& outside() const { return outside_; }
  const std::vector<TileGemm>& products() const { return products_; }
  const std::set<const ir::BufferData*>& rings() const { return rings_; }
  // Of tiles, those that the steps access.
  const std::set<const ir::BufferData*>& touched() const { return touched_; }

 private:
  Numbers numbers_;
  const ir::StmtNode* main_ = nullptr;
  const ir::StmtNode* inner_ = nullptr;
  double steps_ = 0;
  int64_t stages_ = 1, row_bytes_ = 1 << 20;
  Totals inside_, outside_;
  std::vector<TileGemm> products_;
  std::set<const ir::BufferData*> rings_, touched_;

  template <class Visit>
  static void for_children(const ir::Stmt& stmt, const Visit& visit) {
    if (auto* block = ir::as<ir::Block>(stmt)) std::for_each(block->body.begin(), block->body.end(), visit);
    if (auto* loop = ir::as<ir::For>(stmt)) visit(loop->body);
    if (auto* loop = ir::as<ir::While>(stmt)) visit(loop->body);
    if (auto* roles = ir::as<ir::Roles>(stmt)) visit(roles->body);
    if (auto* choice = ir::as<ir::If>(stmt)) {
      visit(choice->then);
      if (choice->otherwise) visit(choice->otherwise);
    }
  }

  void touch(const ir::Buffer& buffer, bool inside) {
    if (inside || main_ == nullptr) touched_.insert(ir::memory_of(buffer));
  }

  void add(const ir::Stmt& stmt, double times, bool inside) {
    Totals& totals = inside ? inside_ : outside_;
    ir::each_own_effect(stmt, [&](const ir::Buffer& buffer, bool) { touch(buffer, inside); });
    if (auto* copy = ir::as<ir::Copy>(stmt)) return add_copy(*copy, times, inside);
    if (auto* gemm = ir::as<ir::Gemm>(stmt); gemm && inside) products_.push_back(product_of(*gemm));
    if (auto* reduce = ir::as<ir::Reduce>(stmt)) totals.operations += times * elements_of(reduce->source);
    if (auto* fill = ir::as<ir::Fill>(stmt)) totals.operations += times * elements_of(fill->destination) / 2;
    if (auto* store = ir::as<ir::Store>(stmt)) {
      if (store->buffer->scope == ir::Scope::global) totals.stored += bytes_of(store->buffer->type, times);
      add_value(store->value, times, inside);
    }
    if (auto* atomic = ir::as<ir::Atomic>(stmt); atomic && atomic->element.buffer->scope == ir::Scope::global)
      totals.stored += 2 * bytes_of(atomic->element.buffer->type, times);
  }

  void add_copy(const ir::Copy& copy, double times, bool inside) {
    Totals& totals = inside ? inside_ : outside_;
    const bool from_global = copy.source.buffer->scope == ir::Scope::global;
    const bool to_global = copy.destination.buffer->scope == ir::Scope::global;
    const double elements = elements_of(to_global ? copy.source : copy.destination);
    if (from_global) totals.loaded += bytes_of(copy.source.buffer->type, times * elements);
    if (to_global) totals.stored += bytes_of(copy.destination.buffer->type, times * elements);
    if (!from_global || !inside || copy.destination.buffer->scope != ir::Scope::shared) return;
    rings_.insert(copy.destination.buffer.get());
    row_bytes_ = std::min(row_bytes_, copy.source.extent.back() * copy.source.buffer->type.bytes());
  }

  void add_value(const ir::Expr& value, double times, bool inside) {
    Totals& totals = inside ? inside_ : outside_;
    ir::walk(value, [&](const ir::Expr& part) {
      if (auto* load = ir::as<ir::Load>(part)) {
        touch(load->buffer, inside);
        if (load->buffer->scope == ir::Scope::global) totals.loaded += bytes_of(load->buffer->type, times);
      }
      if (!part->type.is_float()) return;
      auto* math = ir::as<ir::Math>(part);
      if (math != nullptr && takes_long(math->function)) totals.functions += times;
      if (ir::as<ir::Binary>(part) || ir::as<ir::Select>(part) || ir::as<ir::Unary>(part)) totals.operations += times;
    });
  }
};

// Shared memory: rings once a stage. Tiles used only outside the steps may share memory with those of the steps.
int64_t shared_bytes_of(const ir::Kernel& kernel, const WorkReader& reader) {
  double steps = 0, others = 0;
  for (const ir::Buffer& buffer : kernel.allocations) {
    if (buffer->scope != ir::Scope::shared || buffer->base) continue;
    const double bytes = bytes_of(buffer->type, elements_of(*buffer));
    const bool ring = reader.rings().count(buffer.get()) > 0;
    if (reader.touched().count(buffer.get()) == 0)
      others += bytes;
    else
      steps += bytes * (ring ? static_cast<double>(reader.stages()) : 1);
  }
  const double most = std::max(steps, others);
  return most == 0 ? 0 : static_cast<int64_t>(most) + 1024;
}

// Fragments that steps use are there together, but for those of less than 32 bits: they are operands made of one that
// is no longer needed.
int64_t registers_of(const ir::Kernel& kernel, const WorkReader& reader, int64_t threads, const Machine& machine) {
  double words = 0;
  for (const ir::Buffer& buffer : kernel.allocations) {
    if (buffer->base || reader.touched().count(buffer.get()) == 0) continue;
    const double elements = elements_of(*buffer);
    if (buffer->scope == ir::Scope::local) words += std::min(64.0, bytes_of(buffer->type, elements) / 4);
    if (buffer->scope != ir::Scope::fragment || (reader.main() != nullptr && buffer->type.bits < 32)) continue;
    words += std::max(1.0, bytes_of(buffer->type, elements) / 4 / static_cast<double>(threads));
  }
  int64_t operands = 0;
  for (const TileGemm& product : reader.products())
    operands = std::max(operands, operand_registers(product, threads, machine));
  return static_cast<int64_t>(words) + operands + kOverheadRegisters;
}

BlockWork work_from(const ir::Kernel& kernel, const WorkReader& reader, const Machine& machine) {
  BlockWork work;
  work.threads = 1;
  for (const int64_t extent : kernel.threads) work.threads *= extent;
  const double steps = std::max(1.0, reader.steps());
  work.steps = work.longest = steps;
  work.stages = reader.stages();
  work.products = reader.products();
  work.copied = static_cast<int64_t>(reader.inside().loaded / steps);
  work.row_bytes = reader.row_bytes();
  // Without GEMMs all is one step.
  const Totals& worked = reader.main() != nullptr ? reader.inside() : reader.outside();
  work.functions = worked.functions / steps;
  work.operations = worked.operations / steps;
  work.loaded = static_cast<int64_t>(reader.outside().loaded);
  work.stored = static_cast<int64_t>(reader.outside().stored + reader.inside().stored);
  work.shared_bytes = shared_bytes_of(kernel, reader);
  work.registers = registers_of(kernel, reader, work.threads, machine);
  return work;
}

// What the compiler does with more than a thread can have: it keeps them in memory, written and read in every step.
void spill(BlockWork& work) {
  const int64_t most = registers_of_thread(work.threads);
  if (work.registers <= most) return;
  work.copied += 2 * 4 * (work.registers - most) * work.threads;
  work.registers = most;
}

// Bytes of the tensors that a kernel names, as far as their sizes are known.
double tensor_bytes(const ir::Program& program, const ir::Kernel& kernel) {
  double bytes = 0;
  for (const auto& parameter : program.parameters) {
    auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer != nullptr && ir::accesses_any(kernel.body, {buffer->get()}))
      bytes += bytes_of((*buffer)->type, elements_of(**buffer));
  }
  return bytes;
}

}  // namespace

std::optional<BlockWork> work_of(const ir::Kernel& kernel, const Machine& machine) {
  std::vector<int64_t> grid;
  int64_t blocks = 1;
  for (const ir::Expr& extent : kernel.grid) {
    const auto count = number_of(extent, {});
    if (!count) return std::nullopt;
    grid.push_back(std::max<int64_t>(0, *count));
    blocks *= grid.back();
  }
  // The first block of the grid, one in the middle and the last, by Simpson's rule.
  std::optional<BlockWork> middle;
  double mean = 0, longest = 0;
  for (const int place : {0, 2, 1}) {
    Numbers numbers;
    for (size_t axis = 0; axis < grid.size(); ++axis)
      numbers[kernel.block_vars[axis].get()] = std::max<int64_t>(0, grid[axis] - 1) * place / 2;
    WorkReader reader(std::move(numbers));
    reader.find_main_loop(kernel.body);
    reader.read(kernel.body, 1, false);
    middle = work_from(kernel, reader, machine);
    mean += middle->steps * (place == 1 ? 4 : 1) / 6;
    longest = std::max(longest, middle->steps);
  }
  middle->steps = mean;
  middle->longest = longest;
  middle->blocks = blocks;
  return middle;
}

std::optional<std::variant<Estimate, Refusal>> estimate(const ir::Program& program, const Machine& machine) {
  Estimate all;
  double longest = 0;
  for (const ir::Kernel& kernel : program.kernels) {
    auto work = work_of(kernel, machine);
    if (!work) return std::nullopt;
    work->memory_bytes = tensor_bytes(program, kernel);
    work->threads = (work->threads + 31) / 32 * 32;  // whole warps
    if (work->threads <= kMostThreadsOfBlock) spill(*work);
    const auto made = gpu::estimate(*work, machine);
    if (std::holds_alternative<Refusal>(made)) return made;
    const Estimate& one = std::get<Estimate>(made);
    const double before = all.seconds, cycles = all.cycles;
    if (one.seconds > longest) all = one;
    longest = std::max(longest, one.seconds);
    all.seconds = before + one.seconds;
    all.cycles = cycles + one.cycles;
  }
  return all;
}

std::optional<Workload> workload_of(const ir::Program& program, const Machine& machine) {
  Workload all;
  for (const ir::Kernel& kernel : program.kernels) {
    const auto work = work_of(kernel, machine);
    if (!work) return std::nullopt;
    double products = 0;
    for (const TileGemm& product : work->products)
      products += 2.0 * static_cast<double>(product.m * product.n * product.k);
    const double blocks = static_cast<double>(work->blocks);
    all.operations += blocks * work->steps * (products > 0 ? products : work->operations + work->functions);
    all.bytes +=
        blocks * (work->steps * static_cast<double>(work->copied) + static_cast<double>(work->loaded + work->stored));
  }
  return all;
}

}  // namespace tilepilot::targets::gpu
