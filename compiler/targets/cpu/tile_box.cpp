#include "compiler/targets/cpu/tile_box.h"

#include "compiler/targets/c/expr.h"

namespace tilepilot::targets::cpu {
namespace {

ir::Expr region_end(const ir::Region& region, size_t axis) {
  return ir::binary(ir::BinaryOp::add, region.start[axis],
                    ir::int_imm(region.extent[axis] - 1, region.start[axis]->type));
}

bool axis_inside(c::Context& context, const ir::Region& region, size_t axis) {
  const ir::Expr& extent = region.buffer->shape[axis];
  return context.facts.in_bounds(region.start[axis], extent) &&
         context.facts.in_bounds(region_end(region, axis), extent);
}

// The range of one matrix axis that lies inside the buffer.
std::pair<std::string, std::string> inside(c::Context& context, const ir::Region& region, std::optional<size_t> axis) {
  if (!axis) return {"0", "1"};
  const int64_t extent = region.extent[*axis];
  if (axis_inside(context, region, *axis)) return {"0", fmt::format("{}", extent)};
  const std::string start = index(context, region.start[*axis]);
  const std::string end =
      fmt::format("end_inside({}, {}, {})", start, extent, index(context, region.buffer->shape[*axis]));
  if (context.facts.index_range(region.start[*axis]).lo >= 0) return {"0", end};
  return {fmt::format("first_inside({})", start), end};
}

}  // namespace

std::optional<MatrixView> matrix_view(c::Context& context, const ir::Region& region) {
  MatrixView view;
  for (size_t axis = region.extent.size(); axis-- > 0;) {
    if (region.extent[axis] == 1) continue;
    if (!view.column_axis)
      view.column_axis = axis;
    else if (!view.row_axis)
      view.row_axis = axis;
    else
      return std::nullopt;
  }
  const std::vector<std::string> steps = strides(context, region.buffer);
  if (view.column_axis && steps[*view.column_axis] != "1") return std::nullopt;
  if (view.column_axis) view.columns = region.extent[*view.column_axis];
  if (view.row_axis) view.rows = region.extent[*view.row_axis];
  view.stride = view.row_axis ? steps[*view.row_axis] : fmt::format("{}", view.columns);
  view.at = address(context, region.buffer, region.start);
  return view;
}

std::string window_of(c::Context& context, const ir::Region& region, const MatrixView& view) {
  if (region.buffer->scope != ir::Scope::global) return "";
  bool all_inside = true;
  std::vector<std::string> fixed;  // conditions on the axes of extent 1
  for (size_t axis = 0; axis < region.extent.size(); ++axis) {
    if (axis_inside(context, region, axis)) continue;
    all_inside = false;
    if (axis != view.row_axis && axis != view.column_axis)
      fixed.push_back(axis_condition(context, region.start[axis], region.buffer->shape[axis]));
  }
  if (all_inside) return "";
  auto rows = inside(context, region, view.row_axis);
  const auto columns = inside(context, region, view.column_axis);
  if (!fixed.empty()) rows.second = fmt::format("{} ? {} : 0", fmt::join(fixed, " && "), rows.second);
  return fmt::format("window{{{}, {}, {}, {}}}", rows.first, rows.second, columns.first, columns.second);
}

std::string rows_of(const ir::Region& region, const MatrixView& view, bool is_const) {
  return fmt::format("rows<{}{}>{{{}, {}}}", is_const ? "const " : "", c::stored_type(region.buffer->type), view.at,
                     view.stride);
}

}  // namespace tilepilot::targets::cpu
