#include "compiler/stage/tile/buffers/regions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/text/text.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"

namespace tilepilot::stage {
namespace {

TileOperand whole_buffer(const BufferObject& object, Span span) {
  TileOperand operand{{object.buffer, {}, {}, span}, false, true};
  bool is_constant = true;
  for (const ir::Expr& extent : object.buffer->shape) {
    auto constant = ir::constant_int(extent);
    is_constant = is_constant && constant;
    operand.region.start.push_back(ir::int_imm(0, ir::kInt32, span));
    operand.region.extent.push_back(constant.value_or(kRunTimeExtent));
  }
  if (!is_constant) operand.extents = object.buffer->shape;
  return operand;
}

Error no_tile(const ir::BufferData& buffer, Span span) {
  Error error =
      make_error(DiagnosticKind::non_constant_shape, span,
                 fmt::format("`{}` has extents known only at run time, so it is no tile as a whole", buffer.name),
                 "name a slice with constant extents");
  error->notes.push_back(declaration_note(buffer));
  return error;
}

std::string operand_text(const TileOperand& operand) {
  if (operand.extents.empty()) return describe(operand.region);
  std::vector<std::string> extents;
  for (const ir::Expr& extent : operand.extents) extents.push_back(ir::to_text(extent));
  return fmt::format("`{}` ({})", operand.region.buffer->name, fmt::join(extents, "x"));
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

Error unequal_extents(const TileArguments& arguments, const TileOperand& source, const TileOperand& destination) {
  Error error = make_error(
      DiagnosticKind::shape_mismatch, arguments.span(),
      fmt::format("`{}` between unequal extents: source {}, destination {}", arguments.function(), operand_text(source),
                  operand_text(destination)),
      "both sides need the same extents, apart from extents of 1; write a slice such as `A[i : i + n, j : j + m]`");
  error->notes.push_back(declaration_note(*source.region.buffer));
  error->notes.push_back(declaration_note(*destination.region.buffer));
  return error;
}

// What is copied follows upstream's rule; that the sides differ may still be a mistake.
void warn_of_unequal_extents(const TileArguments& arguments, const TileOperand& source, const TileOperand& destination,
                             const std::vector<ir::Expr>& taken) {
  std::vector<std::string> extents;
  for (const ir::Expr& extent : taken) extents.push_back(ir::to_text(extent));
  Diagnostic warning{
      DiagnosticKind::unequal_extents,
      arguments.span(),
      fmt::format("`{}` between unequal extents: source {}, destination {}; {} elements are copied",
                  arguments.function(), operand_text(source), operand_text(destination), fmt::join(extents, "x")),
      {declaration_note(*source.region.buffer), declaration_note(*destination.region.buffer)},
      "the extents of the side closer to the threads count: give both sides the same"};
  arguments.context().interpreter.diagnostics().add(std::move(warning));
}

// `X[b, -3]` begins three elements before the end, as in Python, where people who read a halo mean three before the
// start. It is what was meant if the region ends with the tensor.
void warn_of_start_near_end(const TileArguments& arguments, const ir::Region& region) {
  const TileContext& context = arguments.context();
  for (size_t axis = 0; context.builder && axis < region.extent.size(); ++axis) {
    const auto written = context.builder->negative_index(region.start[axis]);
    if (!written) continue;
    const int64_t extent = region.extent[axis];
    const bool before_start = ir::constant_int(region.start[axis]).value_or(0) < 0;
    if (!before_start && extent != kRunTimeExtent && *written + extent <= 0) continue;
    std::vector<std::string> indices(region.extent.size(), "...");
    indices[axis] = fmt::format("i - {}", -*written);
    Diagnostic warning{
        DiagnosticKind::begins_near_end,
        region.start[axis]->span,
        fmt::format("the index {} on axis {} of `{}` counts from the end: `{}` begins there and goes beyond the tensor",
                    *written, axis, region.buffer->name, arguments.function()),
        {declaration_note(*region.buffer)},
        fmt::format("for elements before the start, which read as 0, fill the tile in a `T.Parallel` loop with "
                    "`T.if_then_else(i >= {0}, {1}[{2}], 0)`, or copy from a tensor with {0} more elements in front",
                    -*written, region.buffer->name, fmt::join(indices, ", "))};
    context.interpreter.diagnostics().add(std::move(warning));
  }
}

// How close to its threads a block has the memory of a region.
int closeness(const ir::Region& region) {
  if (region.buffer->scope == ir::Scope::global) return 0;
  return region.buffer->scope == ir::Scope::shared ? 1 : 2;
}

// `x = A[i, j]` names a value, but where a tile is wanted it stands for the element, as does a macro's parameter.
ir::Expr element_of(const TileContext& context, const ir::Expr& expr) {
  auto* reference = std::get_if<ir::VarRef>(&expr->node);
  ir::Expr named = reference && context.builder ? context.builder->definition(reference->var) : nullptr;
  return named ? named : expr;
}

}  // namespace

Result<TileOperand> tile_operand(const TileArguments& arguments, size_t i) {
  TileOperand operand = TRY(open_operand(arguments, i));
  for (const ir::Expr& extent : operand.extents) {
    if (ir::constant_int(extent)) continue;
    const ir::BufferData& buffer = *operand.region.buffer;
    return operand.is_whole ? no_tile(buffer, arguments.span(i))
                            : no_constant_extent(buffer, extent, arguments.span(i));
  }
  return operand;
}

Result<TileOperand> open_operand(const TileArguments& arguments, size_t i) {
  Span span = arguments.span(i);
  const Value& value = arguments[i];
  if (auto* buffer = value.get_if<BufferObject>()) return whole_buffer(*buffer, span);
  if (auto* region = value.get_if<RegionObject>()) return TileOperand{region->region, false, false, region->extents};
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

std::vector<ir::Expr> neighbour(const ir::Region& region, const ir::Expr& step, Span span) {
  std::vector<ir::Expr> indices = region.start;
  const ir::Expr offset = fold_cast(step, indices.back()->type, span);
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
  warn_of_start_near_end(arguments, source.region);
  warn_of_start_near_end(arguments, destination.region);
  if (without_ones(source.region.extent) == without_ones(destination.region.extent)) return {};
  return unequal_extents(arguments, source, destination);
}

std::vector<ir::Expr> long_extents(const TileOperand& operand) {
  std::vector<ir::Expr> extents;
  for (size_t axis = 0; axis < operand.region.extent.size(); ++axis) {
    if (operand.region.extent[axis] == 1) continue;
    extents.push_back(operand.extents.empty() ? ir::int_imm(operand.region.extent[axis], ir::kInt32)
                                              : operand.extents[axis]);
  }
  return extents;
}

bool take_extents(ir::Region& region, const std::vector<ir::Expr>& extents) {
  size_t next = 0;
  bool is_constant = true;
  for (int64_t& extent : region.extent) {
    if (extent == 1) continue;
    auto constant = ir::constant_int(extents[next++]);
    is_constant = is_constant && constant;
    extent = constant.value_or(kRunTimeExtent);
  }
  return is_constant;
}

Result<CopyBox> copy_box(const TileArguments& arguments, TileOperand source, TileOperand destination) {
  if (source.is_point) TRY(extend_point(arguments, source, destination.region));
  if (destination.is_point) TRY(extend_point(arguments, destination, source.region));
  const std::vector<ir::Expr> from = long_extents(source.is_point ? destination : source),
                              to = long_extents(destination.is_point ? source : destination);
  const bool both_whole = source.is_whole && destination.is_whole;
  const bool takes_destination = closeness(destination.region) > closeness(source.region);
  const std::vector<ir::Expr>& taken = takes_destination ? to : from;
  bool fits = from.size() == to.size();
  for (size_t k = 0; fits && k < from.size(); ++k) {
    auto surplus = constant_difference(taken[k], from[k], nullptr);
    fits = both_whole ? constant_difference(to[k], from[k], nullptr) == 0 : surplus.value_or(0) >= 0;
  }
  if (!fits) return unequal_extents(arguments, source, destination);
  const auto differs = [](const ir::Expr& a, const ir::Expr& b) {
    return constant_difference(a, b, nullptr).value_or(0) != 0;
  };
  const bool is_equal = std::equal(from.begin(), from.end(), to.begin(), std::not_fn(differs));
  if (!is_equal) warn_of_unequal_extents(arguments, source, destination, taken);
  if (take_extents(source.region, taken)) TRY(check_inside(arguments, source.region));
  if (take_extents(destination.region, taken)) TRY(check_inside(arguments, destination.region));
  warn_of_start_near_end(arguments, source.region);
  warn_of_start_near_end(arguments, destination.region);
  return CopyBox{std::move(source.region), std::move(destination.region), taken};
}

Status for_each_element(const TileArguments& arguments, const std::vector<ir::Expr>& extents,
                        const std::function<Status(const std::vector<ir::Expr>&)>& body) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  if (builder.in_parallel_loop())
    return make_error(DiagnosticKind::unsupported_tile_feature, span,
                      fmt::format("`{}` of a tile inside a parallel or vectorized loop", arguments.function()),
                      "it already works on the whole tile: name one element, or put it after the loop");
  ir::For loop{ir::LoopKind::parallel, {}, extents, 0, nullptr};
  if (extents.empty()) loop.extents.push_back(ir::int_imm(1, ir::kInt32, span));
  std::vector<ir::Expr> steps;
  for (const ir::Expr& extent : loop.extents) {
    loop.vars.push_back(ir::make_var(fmt::format("a{}", steps.size()), extent->type));
    steps.push_back(ir::var_ref(loop.vars.back(), span));
  }
  loop.body = TRY(builder.nested(
      BlockKind::parallel_loop, loop.vars, [&] { return body(steps); }, span));
  return builder.emit(std::move(loop), span);
}

std::vector<ir::Expr> stepped(const ir::Region& region, const std::vector<ir::Expr>& steps, Span span) {
  std::vector<ir::Expr> indices = region.start;
  size_t next = 0;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (region.extent[axis] == 1) continue;
    const ir::Expr step = fold_cast(steps[next++], indices[axis]->type, span);
    indices[axis] = fold_binary(ir::BinaryOp::add, indices[axis], step, span);
  }
  return indices;
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
