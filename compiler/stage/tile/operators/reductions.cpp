// reduce_sum and its family: a tile reduced along one axis.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

struct Options {
  ir::ReduceOp op;
  int64_t axis;
  bool clear;
  bool nan_propagate = false;
};

// The two shapes a result may have: without the axis, or with extent 1 there.
bool fits_reduction(const ir::Region& source, const ir::Region& destination, size_t axis) {
  std::vector<int64_t> kept = source.extent;
  kept[axis] = 1;
  std::vector<int64_t> dropped = source.extent;
  dropped.erase(dropped.begin() + static_cast<ptrdiff_t>(axis));
  if (dropped.empty()) dropped.push_back(1);
  return destination.extent == kept || destination.extent == dropped;
}

Error with_declarations(Error error, const ir::Region& source, const ir::Region& destination) {
  error->notes.push_back(declaration_note(*source.buffer));
  error->notes.push_back(declaration_note(*destination.buffer));
  return error;
}

Status check_reduction(const TileArguments& arguments, const ir::Reduce& node) {
  TRY(require_on_chip(arguments, node.source, "the source"));
  TRY(require_on_chip(arguments, node.destination, "the result"));
  if (!fits_reduction(node.source, node.destination, static_cast<size_t>(node.axis)))
    return with_declarations(
        make_error(DiagnosticKind::shape_mismatch, arguments.span(),
                   fmt::format("`{}` over axis {} of {} does not fit its result: {}", arguments.function(), node.axis,
                               describe(node.source), describe(node.destination)),
                   "the result has the source's shape without that axis, or with extent 1 there"),
        node.source, node.destination);
  ir::DType from = node.source.buffer->type, to = node.destination.buffer->type;
  const bool of_bits =
      node.op == ir::ReduceOp::bit_and || node.op == ir::ReduceOp::bit_or || node.op == ir::ReduceOp::bit_xor;
  if (of_bits && (!from.is_int() || !to.is_int()))
    return with_declarations(make_error(DiagnosticKind::dtype_mismatch, arguments.span(),
                                        fmt::format("`{}` combines bits of {} into {}", arguments.function(),
                                                    ir::to_string(from), ir::to_string(to)),
                                        "both buffers hold integers"),
                             node.source, node.destination);
  if (!from.is_bool() && !to.is_bool() && from.is_float() == to.is_float()) return {};
  return with_declarations(
      make_error(DiagnosticKind::dtype_mismatch, arguments.span(),
                 fmt::format("`{}` reduces {} into {}", arguments.function(), ir::to_string(from), ir::to_string(to)),
                 "both buffers hold floating-point numbers, or both integers"),
      node.source, node.destination);
}

Result<Value> emit_reduction(const TileArguments& arguments, const Options& options) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const ir::Region source = TRY(tile_region(arguments, 0)), destination = TRY(tile_region(arguments, 1));
  ir::Reduce node{options.op, source, destination, 0, options.clear, options.nan_propagate};
  int64_t rank = static_cast<int64_t>(node.source.extent.size());
  int64_t axis = options.axis < 0 ? options.axis + rank : options.axis;
  if (axis < 0 || axis >= rank)
    return make_error(DiagnosticKind::out_of_bounds, arguments.span(),
                      fmt::format("`dim={}` of `{}`: `{}` has {} axes", options.axis, arguments.function(),
                                  node.source.buffer->name, rank));
  node.axis = static_cast<int>(axis);
  TRY(check_reduction(arguments, node));
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

template <ir::ReduceOp op>
Result<Value> reduce_with(TileArguments& arguments) {
  return emit_reduction(arguments, {op, TRY(arguments.integer_or(2, -1)), TRY(arguments.flag_or(3, true)),
                                    TRY(arguments.flag_or(5, false))});
}

struct NamedReduction {
  std::string_view name;
  ir::ReduceOp op;
};
constexpr NamedReduction kReductions[] = {{"sum", ir::ReduceOp::sum},        {"max", ir::ReduceOp::max},
                                          {"min", ir::ReduceOp::min},        {"abssum", ir::ReduceOp::abs_sum},
                                          {"absmax", ir::ReduceOp::abs_max}, {"bitand", ir::ReduceOp::bit_and},
                                          {"bitor", ir::ReduceOp::bit_or},   {"bitxor", ir::ReduceOp::bit_xor}};

// T.reduce(buffer, out, reduce_type, dim=, clear=)
Result<Value> reduce(TileArguments& arguments) {
  std::string name = TRY(arguments.text(2));
  for (const NamedReduction& row : kReductions)
    if (row.name == name)
      return emit_reduction(arguments, {row.op, TRY(arguments.integer_or(3, -1)), TRY(arguments.flag_or(4, true)),
                                        TRY(arguments.flag_or(6, false))});
  return make_error(DiagnosticKind::value_error, arguments.span(2), fmt::format("there is no reduction `{}`", name),
                    "use sum, max, min, abssum, absmax, bitand, bitor or bitxor");
}

}  // namespace

const std::vector<TileFunction>& reduction_functions() {
  static constexpr std::string_view kParameters = "buffer, out, dim=, clear=, batch?=1, nan_propagate=, annotations?";
  static const std::vector<TileFunction> kFunctions = {
      {"reduce_sum", kParameters, "sums a tile along `dim`; `clear=False` adds to the old content",
       reduce_with<ir::ReduceOp::sum>},
      {"reduce_max", kParameters, "the maximum along `dim`; `clear=False` combines with the old content",
       reduce_with<ir::ReduceOp::max>},
      {"reduce_min", kParameters, "the minimum along `dim`; `clear=False` combines with the old content",
       reduce_with<ir::ReduceOp::min>},
      {"reduce_abssum", kParameters, "sums absolute values along `dim`", reduce_with<ir::ReduceOp::abs_sum>},
      {"reduce_absmax", kParameters, "the largest absolute value along `dim`", reduce_with<ir::ReduceOp::abs_max>},
      {"reduce_bitand", kParameters, "the bits that all have along `dim`", reduce_with<ir::ReduceOp::bit_and>},
      {"reduce_bitor", kParameters, "the bits that any has along `dim`", reduce_with<ir::ReduceOp::bit_or>},
      {"reduce_bitxor", kParameters, "the bits that an odd number has along `dim`", reduce_with<ir::ReduceOp::bit_xor>},
      {"reduce", "buffer, out, reduce_type, dim=, clear=, batch?=1, nan_propagate=", "any of the reductions, by name",
       reduce},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
