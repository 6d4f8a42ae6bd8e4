// `tilelang.language.fp8`. The types are those of the Open Compute Project's specification: all targets here have them.
#include <fmt/format.h>

#include "compiler/stage/tile/library/dtypes.h"

namespace tilepilot::stage {
namespace {

Result<ir::DType> chosen_type(const CallArgs& args) {
  const Value* given = args.positional.empty() ? args.keyword("fp8_format") : &args.positional[0];
  const std::string* format = given ? given->if_string() : nullptr;
  if (!given || (format && *format == "e4m3")) return ir::kFloat8E4M3;
  if (format && *format == "e5m2") return ir::kFloat8E5M2;
  return make_error(DiagnosticKind::value_error, args.span, "this is no format of 8 bits",
                    "it is \"e4m3\" or \"e5m2\"");
}

}  // namespace

std::shared_ptr<ModuleObject> make_fp8(TileContext& context) {
  auto fp8 = std::make_shared<ModuleObject>("tilelang.language.fp8");
  fp8->function("determine_fp8_type", [&context](Interpreter&, CallArgs& args) -> Result<Value> {
    return Value(std::make_shared<DTypeObject>(context, TRY(chosen_type(args))));
  });
  fp8->function("determine_torch_fp8_type", [](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    return torch_dtype(interpreter, TRY(chosen_type(args)), args.span);
  });
  return fp8;
}

}  // namespace tilepilot::stage
