#include "compiler/stage/tile/regions.h"

#include <fmt/format.h>

#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/expressions.h"
#include "compiler/stage/tile/fold.h"

namespace tilepilot::stage {
namespace {

Result<TileOperand> whole_buffer(const BufferObject& object, Span span) {
  TileOperand operand{{object.buffer, {}, {}, span}, false, true};
  for (const ir::Expr& extent : object.buffer->shape) {
    auto constant = ir::constant_int(extent);
    if (!constant) {
      Error error =
          make_error(DiagnosticKind::non_constant_shape, span,
                     fmt::format("`{}` has extents known only at run time, so it is no tile as a whole", object.name()),
                     "name a slice with constant extents");
      error->notes.push_back(declaration_note(*object.buffer));
      return error;
    }
    operand.region.start.push_back(ir::int_imm(0, ir::kInt32, span));
    operand.region.extent.push_back(*constant);
  }
  return operand;
}

// A point takes the other side's extents, right-aligned; extents of 1 in front may be dropped.
Status extend_point(const TileArguments& arguments, TileOperand& point, const ir::Region& other) {
  std::vector<int64_t> extents = other.extent;
  size_t rank = point.region.buffer->rank();
  while (extents.size() > rank && extents.front() == 1) extents.erase(extents.begin());
  if (extents.size() > rank) extents = without_ones(extents);
  if (extents.size() > rank)
    return make_error(DiagnosticKind::shape_mismatch, arguments.span(),
                      fmt::format("`{}`: `{}` has {} dimensions, too few for the tile {}", arguments.function(),
                                  point.region.buffer->name, rank, describe(other)));
  point.region.extent.assign(rank - extents.size(), 1);
  point.region.extent.insert(point.region.extent.end(), extents.begin(), extents.end());
  return {};
}

Status check_inside(const TileArguments& arguments, const ir::Region& region) {
  if (region.buffer->scope == ir::Scope::global) return {};
  for (size_t axis = 0; axis < region.extent.size(); ++axis) {
    int64_t limit = ir::constant_int(region.buffer->shape[axis]).value_or(region.extent[axis]);
    int64_t end = ir::constant_int(region.start[axis]).value_or(0) + region.extent[axis];
    if (end <= limit) continue;
    Error error = make_error(DiagnosticKind::out_of_bounds, arguments.span(),
                             fmt::format("`{}` reaches index {} of axis {} of `{}`, whose extent there is {}",
                                         arguments.function(), end - 1, axis, region.buffer->name, limit));
    error->notes.push_back(declaration_note(*region.buffer));
    return error;
  }
  return {};
}

// `x = A[i, j]` names a value, but where a tile is wanted it stands for the element, as does a macro's parameter.
ir::Expr element_of(const TileContext& context, const ir::Expr& expr) {
  auto* reference = std::get_if<ir::VarRef>(&expr->node);
  ir::Expr named = reference && context.builder ? context.builder->definition(reference->var) : nullptr;
  return named ? named : expr;
}

}  // namespace

Result<TileOperand> tile_operand(const TileArguments& arguments, size_t i) {
  Span span = arguments.span(i);
  const Value& value = arguments[i];
  if (auto* buffer = value.get_if<BufferObject>()) return whole_buffer(*buffer, span);
  if (auto* region = value.get_if<RegionObject>()) return TileOperand{region->region};
  if (auto* variable = value.get_if<VarObject>())
    return TileOperand{{variable->buffer, variable->indices, {}, span}, true};
  if (auto* expression = value.get_if<TileExpr>())
    if (auto* load = std::get_if<ir::Load>(&element_of(arguments.context(), expression->expr)->node))
      return TileOperand{{load->buffer, load->indices, {}, span}, true};
  return make_error(
      DiagnosticKind::type_error, span,
      fmt::format("`{}` works on buffers and slices of them, not on a `{}`", arguments.function(), value.type_name()));
}

ir::Region element_at(ir::Buffer buffer, std::vector<ir::Expr> indices, Span span) {
  std::vector<int64_t> extent(indices.size(), 1);
  return {std::move(buffer), std::move(indices), std::move(extent), span};
}

std::vector<ir::Expr> neighbour(const ir::Region& region, int64_t step, Span span) {
  std::vector<ir::Expr> indices = region.start;
  const ir::Expr offset = ir::int_imm(step, indices.back()->type, span);
  indices.back() = fold_binary(ir::BinaryOp::add, indices.back(), offset, span);
  return indices;
}

bool names_memory(const Value& value) { return value.get_if<BufferObject>() || value.get_if<RegionObject>(); }

Result<ir::Region> tile_region(const TileArguments& arguments, size_t i) {
  TileOperand operand = TRY(tile_operand(arguments, i));
  if (operand.is_point) operand.region.extent.assign(operand.region.buffer->rank(), 1);
  return std::move(operand.region);
}

Status match_extents(const TileArguments& arguments, TileOperand& source, TileOperand& destination) {
  if (source.is_point && destination.is_point) {
    source.region.extent.assign(source.region.buffer->rank(), 1);
    destination.region.extent.assign(destination.region.buffer->rank(), 1);
    return {};
  }
  if (source.is_point) TRY(extend_point(arguments, source, destination.region));
  if (destination.is_point) TRY(extend_point(arguments, destination, source.region));
  TRY(check_inside(arguments, source.region));
  TRY(check_inside(arguments, destination.region));
  if (without_ones(source.region.extent) == without_ones(destination.region.extent)) return {};
  Error error = make_error(
      DiagnosticKind::shape_mismatch, arguments.span(),
      fmt::format("`{}` between unequal extents: source {}, destination {}", arguments.function(),
                  describe(source.region), describe(destination.region)),
      "both sides need the same extents, apart from extents of 1; write a slice such as `A[i : i + n, j : j + m]`");
  error->notes.push_back(declaration_note(*source.region.buffer));
  error->notes.push_back(declaration_note(*destination.region.buffer));
  return error;
}

std::vector<int64_t> without_ones(const std::vector<int64_t>& extents) {
  std::vector<int64_t> rest;
  for (int64_t extent : extents)
    if (extent != 1) rest.push_back(extent);
  return rest;
}

std::string describe(const ir::Region& region) {
  return fmt::format("`{}` ({})", region.buffer->name, describe_extents(region.extent));
}

Status require_on_chip(const TileArguments& arguments, const ir::Region& region, std::string_view role) {
  if (region.buffer->scope != ir::Scope::global) return {};
  Error error = make_error(
      DiagnosticKind::wrong_scope, arguments.span(),
      fmt::format("{} of `{}` is `{}`, which lies in global memory", role, arguments.function(), region.buffer->name),
      "copy it into a shared or fragment buffer first");
  error->notes.push_back(declaration_note(*region.buffer));
  return error;
}

}  // namespace tilepilot::stage
