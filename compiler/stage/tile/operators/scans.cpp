// cumsum and cummax: running combinations along an axis of a tile.
#include <fmt/format.h>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Error mismatch(const TileArguments& arguments, DiagnosticKind kind, const ir::Scan& node, std::string message) {
  Error error = make_error(kind, arguments.span(), std::move(message));
  error->notes.push_back(declaration_note(*node.source.buffer));
  error->notes.push_back(declaration_note(*node.destination.buffer));
  return error;
}

Status check(const TileArguments& arguments, const ir::Scan& node) {
  TRY(require_on_chip(arguments, node.source, "the source"));
  TRY(require_on_chip(arguments, node.destination, "the result"));
  if (node.source.extent != node.destination.extent)
    return mismatch(arguments, DiagnosticKind::shape_mismatch, node,
                    fmt::format("`{}` of {} does not fit its result: {}", arguments.function(), describe(node.source),
                                describe(node.destination)));
  const ir::DType from = node.source.buffer->type, to = node.destination.buffer->type;
  if (from == to && !from.is_bool()) return {};
  return mismatch(arguments, DiagnosticKind::dtype_mismatch, node,
                  fmt::format("`{}` of {} into {}", arguments.function(), ir::to_string(from), ir::to_string(to)));
}

// T.cumsum(src, dst=None, dim=0, reverse=False): without dst in place.
template <ir::ScanOp op>
Result<Value> scan(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::Scan node{op, TRY(tile_region(arguments, 0))};
  node.reverse = TRY(arguments.flag_or(3, false));
  node.destination = arguments.has(1) ? TRY(tile_region(arguments, 1)) : node.source;
  const auto rank = static_cast<int64_t>(node.source.extent.size());
  const int64_t given = TRY(arguments.integer_or(2, 0)), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    return make_error(
        DiagnosticKind::out_of_bounds, arguments.span(),
        fmt::format("`dim={}` of `{}`: `{}` has {} axes", given, arguments.function(), node.source.buffer->name, rank));
  node.axis = static_cast<int>(axis);
  TRY(check(arguments, node));
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

}  // namespace

const std::vector<TileFunction>& scan_functions() {
  static constexpr std::string_view kParameters = "src, dst=, dim=, reverse=, annotations?";
  static const std::vector<TileFunction> kFunctions = {
      {"cumsum", kParameters, "running sums along `dim`; `reverse=True` from the end; in place without `dst`",
       scan<ir::ScanOp::sum>},
      {"cummax", kParameters, "running maxima along `dim`, likewise", scan<ir::ScanOp::max>},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
