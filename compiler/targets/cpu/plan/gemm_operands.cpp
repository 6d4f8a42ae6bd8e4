#include "compiler/targets/cpu/plan/gemm_operands.h"

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {
namespace {

// Whether all indices depend on the dimensions as on one number that counts their elements.
class CountsAlong : public ir::Rewriter {
 public:
  CountsAlong(const c::IntegerFacts& facts, const std::vector<Dimension>& dimensions)
      : facts_(facts), dimensions_(dimensions) {}

  bool in(const ir::Expr& expr) {
    rewrite(expr);
    return holds_;
  }

 private:
  const c::IntegerFacts& facts_;
  const std::vector<Dimension>& dimensions_;
  bool holds_ = true;

  using ir::Rewriter::rewrite;
  ir::Expr rewrite(const ir::Expr& expr) override {
    if (!c::is_index_arithmetic(expr)) return rewrite_children(expr);
    const auto form = facts_.affine(expr);
    const bool varies = std::any_of(dimensions_.begin(), dimensions_.end(),
                                    [&](const Dimension& dimension) { return mentions(expr, dimension.var); });
    holds_ = holds_ && (form ? has_steps(*form) : !varies);
    return expr;
  }

  bool has_steps(const ir::Affine& form) const {
    int64_t step = form.coefficient(dimensions_.back().var);
    for (size_t k = dimensions_.size(); k-- > 0;) {
      if (form.coefficient(dimensions_[k].var) != step) return false;
      step *= *ir::constant_int(dimensions_[k].extent);
    }
    return true;
  }
};

ir::Expr with(const ir::Expr& expr, const std::unordered_map<const ir::VarData*, ir::Expr>& values) {
  return ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto found = values.find(var.get());
    return found == values.end() ? nullptr : found->second;
  });
}

ir::Expr zero_of(const ir::Var& var) { return ir::int_imm(0, var->type); }

// The side with one dimension instead of several, where that is the same.
GemmSide with_merged_dimensions(const c::IntegerFacts& facts, const GemmSide& side) {
  if (side.dimensions.size() < 2 || !CountsAlong(facts, side.dimensions).in(side.factor)) return side;
  const ir::Var& last = side.dimensions.back().var;
  const ir::Var merged = ir::make_var(last->name, last->type);
  std::unordered_map<const ir::VarData*, ir::Expr> values{{last.get(), ir::var_ref(merged)}};
  for (size_t k = 0; k + 1 < side.dimensions.size(); ++k)
    values.emplace(side.dimensions[k].var.get(), zero_of(side.dimensions[k].var));
  return {with(side.factor, values), {{merged, ir::int_imm(side.size(), merged->type)}}, side.is_guarded};
}

// The load that a factor is, but for a conversion that is exact.
const ir::Load* plain_load(const ir::Expr& factor) {
  const auto* cast = std::get_if<ir::Cast>(&factor->node);
  const ir::Expr& inner = cast ? cast->value : factor;
  const ir::DType type = inner->type;
  if (type != ir::kFloat32 && type != ir::kFloat16 && type != ir::kBFloat16) return nullptr;
  const auto* load = std::get_if<ir::Load>(&inner->node);
  const bool is_plain =
      load != nullptr && load->buffer->strides.empty() && !load->buffer->base && !load->buffer->address;
  return is_plain ? load : nullptr;
}

class OperandMaker {
 public:
  OperandMaker(const c::IntegerFacts& facts, const GemmSide& side, const Steps& steps, bool is_left)
      : facts_(facts), side_(with_merged_dimensions(facts, side)), steps_(steps), is_left_(is_left) {
    if (side_.dimensions.size() == 1) facts_.set_range(side_.dimensions[0].var, {0, side_.size() - 1});
  }

  GemmOperand run() {
    const ir::Load* load = side_.dimensions.size() == 1 ? plain_load(side_.factor) : nullptr;
    const bool is_matrix = side_.size() > 1 && steps_.count > 1 && steps_.inner.empty();
    if (load == nullptr || !is_matrix || !find_axes(*load)) return filled();
    const ir::Region source = region(*load);
    const bool is_transposed = (axis_ < step_axis_) != is_left_;
    if (load->buffer->scope == ir::Scope::global) return copied(source, is_transposed);
    return is_tile(*load) ? GemmOperand{source, is_transposed, nullptr, nullptr} : filled();
  }

 private:
  c::IntegerFacts facts_;
  const GemmSide side_;
  const Steps& steps_;
  const bool is_left_;
  size_t axis_ = 0, step_axis_ = 0;

  // One axis goes with the side's dimension, another one with the steps, the later one through memory.
  bool find_axes(const ir::Load& load) {
    const ir::Var& var = side_.dimensions[0].var;
    int found = 0;
    for (size_t axis = 0; axis < load.indices.size(); ++axis) {
      const bool varies = mentions(load.indices[axis], var), steps = mentions(load.indices[axis], steps_.var);
      if (!varies && !steps) continue;
      const auto form = facts_.affine(load.indices[axis]);
      if ((varies && steps) || !form || form->coefficient(varies ? var : steps_.var) != 1) return false;
      (varies ? axis_ : step_axis_) = axis;
      found += varies ? 1 : 10;
    }
    return found == 11 && std::max(axis_, step_axis_) + 1 == load.indices.size();
  }

  ir::Region region(const ir::Load& load) const {
    const ir::Var& var = side_.dimensions[0].var;
    ir::Region result{load.buffer, {}, std::vector<int64_t>(load.indices.size(), 1), {}};
    for (const ir::Expr& index : load.indices)
      result.start.push_back(with(index, {{var.get(), zero_of(var)}, {steps_.var.get(), steps_.first}}));
    result.extent[axis_] = side_.size();
    result.extent[step_axis_] = steps_.count;
    return result;
  }

  bool is_tile(const ir::Load& load) const {
    for (size_t axis = 0; axis < load.indices.size(); ++axis)
      if (!facts_.in_bounds(load.indices[axis], load.buffer->shape[axis])) return false;
    return std::min(axis_, step_axis_) + 2 == load.indices.size();
  }

  ir::Buffer new_tile(int64_t first, int64_t second) const {
    ir::BufferData data;
    data.name = is_left_ ? "left" : "right";
    data.type = ir::kFloat32;
    data.scope = ir::Scope::shared;
    data.shape = {ir::int_imm(first), ir::int_imm(second)};
    return std::make_shared<ir::BufferData>(std::move(data));
  }

  static ir::Region whole(const ir::Buffer& tile) {
    return {tile,
            {ir::int_imm(0), ir::int_imm(0)},
            {*ir::constant_int(tile->shape[0]), *ir::constant_int(tile->shape[1])},
            {}};
  }

  GemmOperand copied(const ir::Region& source, bool is_transposed) const {
    const bool steps_first = step_axis_ < axis_;
    const ir::Buffer tile =
        new_tile(steps_first ? steps_.count : side_.size(), steps_first ? side_.size() : steps_.count);
    return {whole(tile), is_transposed, tile, ir::make_stmt(ir::Copy{source, whole(tile), {}}, {})};
  }

  // Whatever the factor is, it is computed once for all elements that need it.
  GemmOperand filled() const {
    const int64_t size = steps_.size();
    const ir::Buffer tile = is_left_ ? new_tile(side_.size(), size) : new_tile(size, side_.size());
    const ir::Var step = ir::make_var(steps_.var->name, steps_.var->type);
    std::vector<Dimension> steps{{step, ir::int_imm(steps_.count, step->type)}};
    steps.insert(steps.end(), steps_.inner.begin(), steps_.inner.end());
    ir::For loop{ir::LoopKind::parallel, {}, {}, 0, nullptr};
    std::vector<ir::Expr> place;
    for (const auto* dimensions : {is_left_ ? &side_.dimensions : &steps, is_left_ ? &steps : &side_.dimensions}) {
      std::vector<ir::Expr> indices;
      std::vector<int64_t> extents;
      for (const Dimension& dimension : *dimensions) {
        loop.vars.push_back(dimension.var);
        loop.extents.push_back(dimension.extent);
        indices.push_back(ir::var_ref(dimension.var));
        extents.push_back(*ir::constant_int(dimension.extent));
      }
      place.push_back(flat_index(indices, extents));
    }
    const ir::Expr here = ir::binary(ir::BinaryOp::add, steps_.first, ir::var_ref(step));
    loop.body = ir::make_stmt(ir::Store{tile, std::move(place), with(side_.factor, {{steps_.var.get(), here}})}, {});
    return {whole(tile), false, tile, ir::make_stmt(std::move(loop), {})};
  }
};

}  // namespace

int64_t Steps::size() const {
  int64_t size = count;
  for (const Dimension& dimension : inner) size *= ir::constant_int(dimension.extent).value_or(1);
  return size;
}

ir::Expr flat_index(const std::vector<ir::Expr>& indices, const std::vector<int64_t>& extents) {
  ir::Expr flat;
  for (size_t k = 0; k < indices.size(); ++k) {
    const bool is_narrow = indices[k]->type == ir::kInt32;
    const ir::Expr index = is_narrow ? indices[k] : ir::cast(indices[k], ir::kInt64);
    if (flat == nullptr) {
      flat = index;
      continue;
    }
    const ir::DType type = flat->type == ir::kInt32 && is_narrow ? ir::kInt32 : ir::kInt64;
    flat = ir::binary(ir::BinaryOp::mul, ir::cast(flat, type), ir::int_imm(extents[k], type));
    flat = ir::binary(ir::BinaryOp::add, flat, ir::cast(index, type));
  }
  return flat ? flat : ir::int_imm(0);
}

GemmOperand gemm_operand(const c::IntegerFacts& facts, const GemmSide& side, const Steps& steps, bool is_left) {
  return OperandMaker(facts, side, steps, is_left).run();
}

}  // namespace tilepilot::targets::cpu
