#include "compiler/targets/cpu/loops/transposed_loads.h"

#include "compiler/ir/text/text.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/loops/load_hoisting.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kShortestStride = 16;    // elements: nearer rows share the lines of a cache
constexpr int64_t kRowBlockBytes = 32768;  // of all blocks of a loop, that they stay in the nearest cache

// Finds addresses of the form `lane * stride + step + ..`, where the rest is known before the loop.
class RowFinder {
 public:
  RowFinder(c::Context& context, const LaneFacts& facts, const LanePlan& plan, const ir::For& loop)
      : context_(context),
        facts_(facts),
        plan_(plan),
        step_(loop.vars[0]),
        inside_(ir::bound_in(loop.body)),
        uses_(count_uses(loop.body)) {
    inside_.insert(step_.get());
  }

  // What stands for quotients and remainders must not change within a block.
  bool can_run() const {
    const auto& parts = plan_.runs.parts();
    return plan_.width >= kVectorLanes && std::none_of(parts.begin(), parts.end(), [&](const RunPart& part) {
             return ir::mentions(context_.facts.expand(part.number), inside_);
           });
  }

  void visit(const ir::Stmt& stmt) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node))
      for (const ir::Stmt& child : block->body) visit(child);
    const auto* branch = std::get_if<ir::If>(&stmt->node);
    if (branch != nullptr && context_.proven.contains(branch)) visit(branch->then);
    if (const auto* let = std::get_if<ir::Let>(&stmt->node)) visit(let->value);
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store == nullptr) return;
    // A small float that is stored as it was loaded needs no conversion.
    const bool is_moved = std::holds_alternative<ir::Load>(store->value->node) && store->value->type.is_small_float();
    if (!is_moved) visit(store->value);
    add(stmt, *store);
  }

  TransposedAccesses found;

 private:
  c::Context& context_;
  const LaneFacts& facts_;
  const LanePlan& plan_;
  const ir::Var& step_;
  ir::Variables inside_;
  const std::unordered_map<const ir::BufferData*, int64_t> uses_;
  int64_t bytes_ = 0;

  void visit(const ir::Expr& expr) {
    ir::walk(expr, [&](const ir::Expr& part) {
      if (const auto* load = std::get_if<ir::Load>(&part->node)) add(part, *load);
    });
  }

  void add(const ir::Expr& expr, const ir::Load& load) {
    const ir::Buffer& buffer = load.buffer;
    if (!has_blocks(buffer->type) || !is_read_only(buffer) || !is_in_bounds(context_, expr, load)) return;
    const std::vector<ir::Expr> indices = within_runs(load.indices);
    if (!walks_along_memory(buffer, indices)) return;
    const bool for_all_lanes = buffer->type == ir::kFloat16 && !mentions(indices, plan_.lane.var);
    std::string stride = for_all_lanes ? "" : stride_of_lanes(buffer, indices);
    if (stride.empty() && !for_all_lanes) return;
    for (TransposedLoad& other : found.loads)
      if (ir::structurally_equal(other.load, expr)) return other.nodes.push_back(expr.get());
    TransposedLoad row{
        {expr.get()}, expr, std::move(stride), for_all_lanes, !plan_.row || !mentions(indices, plan_.row->var)};
    if (has_room(row.elements(plan_), buffer)) found.loads.push_back(std::move(row));
  }

  void add(const ir::Stmt& stmt, const ir::Store& store) {
    const ir::Buffer& buffer = store.buffer;
    const bool is_alone = uses_.at(buffer.get()) == 1 && !context_.sharing.contains(buffer.get()) &&
                          !context_.layouts.contains(buffer.get()) && !context_.lanes.own.contains(buffer.get());
    if (!is_alone || !has_blocks(buffer->type)) return;
    if (buffer->type == ir::kTensorFloat32 || !is_in_bounds(context_, stmt, store)) return;
    const std::vector<ir::Expr> indices = within_runs(store.indices);
    if (!walks_along_memory(buffer, indices) || (plan_.row && !mentions(indices, plan_.row->var))) return;
    std::string stride = stride_of_lanes(buffer, indices);
    if (stride.empty() || !has_room(kRowSteps * plan_.chunk_size(), buffer)) return;
    found.stores.push_back({stmt, std::move(stride)});
  }

  std::vector<ir::Expr> within_runs(const std::vector<ir::Expr>& given) const {
    std::vector<ir::Expr> indices;
    for (const ir::Expr& index : given) indices.push_back(plan_.runs.within(index));
    return indices;
  }

  bool has_room(int64_t elements, const ir::Buffer& buffer) {
    const int64_t bytes = elements * std::max<int64_t>(buffer->type.bytes(), 4);
    if (bytes_ + bytes > kRowBlockBytes) return false;
    bytes_ += bytes;
    return true;
  }

  // Types that are computed in 4 or 8 bytes, but for those whose conversion is long.
  static bool has_blocks(ir::DType type) {
    return !type.is_bool() && (type == ir::kFloat16 || type == ir::kBFloat16 || type.bits == 32 || type.bits == 64);
  }

  bool is_read_only(const ir::Buffer& buffer) const {
    if (facts_.is_stored(buffer) || context_.layouts.contains(buffer.get())) return false;
    return !context_.sharing.contains(buffer.get()) || !facts_.stores_any(context_.sharing);
  }

  // From step to step; what else is in the indices is known before the loop.
  bool walks_along_memory(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) const {
    if (needs_lanes(facts_, plan_, indices)) return false;
    if (!buffer->strides.empty() && ir::constant_int(buffer->strides.back()) != 1) return false;
    const auto last = context_.facts.affine(indices.back());
    if (!last || last->coefficient(step_) != 1) return false;
    for (const auto& term : last->terms)
      if (term.var != step_ && inside_.contains(term.var.get())) return false;
    return std::none_of(indices.begin(), indices.end() - 1,
                        [&](const ir::Expr& index) { return ir::mentions(context_.facts.expand(index), inside_); });
  }

  // Empty unless it is known, and rows are far from each other.
  std::string stride_of_lanes(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
    const std::vector<std::string> steps = strides(context_, buffer);
    std::string text;
    int64_t constant = 0;
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      const auto position = context_.facts.affine(indices[axis]);
      if (!position && mentions(indices[axis], plan_.lane.var)) return "";
      const int64_t factor = position ? position->coefficient(plan_.lane.var) : 0;
      if (factor == 0) continue;
      if (const auto step = constant_stride(buffer, axis))
        constant += factor * *step;
      else
        text += fmt::format("{}{}{}", text.empty() ? "" : " + ", steps[axis],
                            factor == 1 ? "" : fmt::format(" * {}", factor));
    }
    if (text.empty()) return std::abs(constant) < kShortestStride ? "" : fmt::format("{}", constant);
    return constant == 0 ? text : fmt::format("{} + {}", text, constant);
  }

  static std::optional<int64_t> constant_stride(const ir::Buffer& buffer, size_t axis) {
    if (!buffer->strides.empty()) return ir::constant_int(buffer->strides[axis]);
    int64_t product = 1;
    for (size_t inner = axis + 1; inner < buffer->rank(); ++inner) {
      const auto extent = ir::constant_int(buffer->shape[inner]);
      if (!extent) return std::nullopt;
      product *= *extent;
    }
    return product;
  }
};

// "A + offset": the element of the first lane and step.
std::string address_in(c::Context& context, const LanePlan& plan, const ir::Buffer& buffer,
                       const std::vector<ir::Expr>& indices, const TransposedBlock& block) {
  context.lanes.values[plan.lane.var.get()] = block.base;
  context.lanes.values[block.var.get()] = block.start;
  std::string text = address(context, buffer, indices);
  context.lanes.values.erase(plan.lane.var.get());
  context.lanes.values.erase(block.var.get());
  return text;
}

std::string lanes_of(const LanePlan& plan, const TransposedBlock& block) {
  return block.all_lanes ? fmt::format("{}", plan.width)
                         : fmt::format("{}, {}, {}", plan.width, block.first, block.end);
}

// Nothing else points to what the name stands for: compilers then keep what lanes own in registers.
std::string name_columns(c::Context& context, const std::string& type, const std::string& wish,
                         const std::string& array) {
  std::string name = context.names.fresh(wish + "_columns");
  context.body.line("{}* __restrict {} = {};", type, name, array);
  return name;
}

}  // namespace

TransposedAccesses find_transposed_accesses(c::Context& context, const LaneFacts& facts, const LanePlan& plan,
                                            const ir::For& loop) {
  RowFinder finder(context, facts, plan, loop);
  if (!finder.can_run()) return {};
  for (const ir::Stmt& stmt : flattened(loop.body)) finder.visit(stmt);
  const std::vector<TransposedLoad>& loads = finder.found.loads;
  const bool is_worth =
      !finder.found.stores.empty() ||
      std::any_of(loads.begin(), loads.end(), [](const TransposedLoad& load) { return !load.for_all_lanes; });
  return is_worth ? std::move(finder.found) : TransposedAccesses{};
}

// Kept as [step, lane of the chunk]; what is the same for all lanes as [row, step].
void write_transposed_load(c::Context& context, const LanePlan& plan, const TransposedLoad& row,
                           const TransposedBlock& block) {
  const auto& load = std::get<ir::Load>(row.load->node);
  const ir::Buffer& buffer = load.buffer;
  const std::string array = context.names.fresh(buffer->name + "_block"), type = c::computed_type(buffer->type);
  context.body.line("alignas(64) {} {}[{}];", type, array, row.elements(plan));
  const int opened = row.for_all_rows ? 0 : block.open_rows();
  const std::string from = address_in(context, plan, buffer, load.indices, block);
  const std::string line =
      row.for_all_rows ? "" : fmt::format("{} * {}", block.row, row.for_all_lanes ? kRowSteps : plan.width);
  const std::string to = line.empty() ? array : array + " + " + line;
  if (row.for_all_lanes)
    context.body.line("widen<{}>({}, {});", kRowSteps, to, from);
  else
    context.body.line("load_columns(rows<{}>{{{}, {}}}, rows<const {}>{{{}, {}}}, {});", type, to, row.columns(plan),
                      c::stored_type(buffer->type), from, row.stride, lanes_of(plan, block));
  if (opened > 0) context.body.close();
  const std::string name = name_columns(context, "const " + type, buffer->name, array);
  const std::string chunk_lane = row.for_all_rows ? block.lane : context.lanes.chunk_lane;
  const std::string at = !row.for_all_lanes ? fmt::format("{} * {} + {}", block.step, row.columns(plan), chunk_lane)
                         : line.empty()     ? block.step
                                            : line + " + " + block.step;
  for (const ir::ExprNode* node : row.nodes) context.lanes.loads[node] = fmt::format("{}[{}]", name, at);
}

std::string declare_transposed_store(c::Context& context, const LanePlan& plan, const TransposedStore& row,
                                     const TransposedBlock& block) {
  const ir::Buffer& buffer = std::get<ir::Store>(row.stmt->node).buffer;
  const std::string array = context.names.fresh(buffer->name + "_block"), type = c::computed_type(buffer->type);
  context.body.line("alignas(64) {} {}[{}];", type, array, kRowSteps * plan.chunk_size());
  std::string name = name_columns(context, type, buffer->name, array);
  context.lanes.stores[row.stmt.get()] =
      fmt::format("{}[{} * {} + {}]", name, block.step, plan.chunk_size(), context.lanes.chunk_lane);
  return name;
}

void write_transposed_store(c::Context& context, const LanePlan& plan, const TransposedStore& row,
                            const TransposedBlock& block, const std::string& columns) {
  const auto& store = std::get<ir::Store>(row.stmt->node);
  const int opened = block.open_rows();
  const std::string from = opened > 0 ? fmt::format("{} + {} * {}", columns, block.row, plan.width) : columns;
  const std::string lanes = block.all_lanes && block.done == "0"
                                ? fmt::format("{}", plan.width)
                                : fmt::format("{}, {}, {}, {}", plan.width, block.first, block.end, block.done);
  const std::string to = address_in(context, plan, store.buffer, store.indices, block);
  context.body.line("store_columns(rows<{}>{{{}, {}}}, rows<const {}>{{{}, {}}}, {});",
                    c::stored_type(store.buffer->type), to, row.stride, c::computed_type(store.buffer->type), from,
                    plan.chunk_size(), lanes);
  if (opened > 0) context.body.close();
}

}  // namespace tilepilot::targets::cpu
