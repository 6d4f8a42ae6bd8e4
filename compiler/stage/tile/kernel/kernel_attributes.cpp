// What scripts read of a compiled program beside its source: parameters, outputs, a profiler, and what they noted
// there.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text/text.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/script.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/library/jit.h"

namespace tilepilot::stage {
namespace {

// An extent: an integer, or the text of the symbols in it.
Value extent(const ir::Expr& expression) {
  auto constant = ir::constant_int(expression);
  return constant ? Value(*constant) : Value(ir::to_text(expression));
}

// A name of the part of `tilelang` that is written in Python.
Result<Value> library_function(Interpreter& interpreter, std::string_view parent, std::string_view module,
                               std::string_view name, Span span) {
  auto found = TRY(find_part(interpreter, parent, Name(module), span));
  if (!found)
    return make_error(DiagnosticKind::unsupported_tile_feature, span, "only scripts can look into kernels",
                      "time the program with the command `check`");
  return found->get_attribute(interpreter, Name(name), span);
}

Result<Value> parameter_list(Interpreter& interpreter, TileContext& context, const Launcher& launcher, Span span) {
  Value make = TRY(library_function(interpreter, "tilelang.engine", "param", "KernelParam", span));
  std::vector<Value> result;
  for (const auto& parameter : launcher.program().parameters) {
    std::vector<Value> shape;
    const auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer) std::transform((*buffer)->shape.begin(), (*buffer)->shape.end(), std::back_inserter(shape), extent);
    const ir::DType type = buffer ? (*buffer)->type : std::get<ir::Var>(parameter)->type;
    CallArgs args{{Value(std::make_shared<DTypeObject>(context, type)), make_list(std::move(shape))}, {}, span, {}};
    result.push_back(TRY(interpreter.call(make, std::move(args))));
  }
  return make_list(std::move(result));
}

Value output_list(const Launcher& launcher) {
  std::vector<Value> positions;
  for (size_t position : launcher.outputs()) positions.emplace_back(static_cast<int64_t>(position));
  return make_list(std::move(positions));
}

using KernelRef = std::shared_ptr<JitKernelObject>;

Value profiler_method(KernelRef kernel) {
  return make_builtin(
      "get_profiler", [kernel = std::move(kernel)](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
        Value make = TRY(library_function(interpreter, "tilelang", "profiler", "profiler_of", args.span));
        args.positional.insert(args.positional.begin(), Value(kernel));
        args.positional_spans.clear();
        return interpreter.call(make, std::move(args));
      });
}

}  // namespace

Result<std::optional<Value>> JitKernelObject::script_attribute(Interpreter& interpreter, Name name, Span span) {
  if (const Value* noted = attributes.find(name)) return std::optional<Value>(*noted);
  if (name.text() == "get_profiler")
    return std::optional<Value>(profiler_method(std::static_pointer_cast<JitKernelObject>(shared_from_this())));
  if (name.text() == "kernel_source") return std::optional<Value>(TRY(launcher.source(span)));
  if (name.text() == "out_idx") return std::optional<Value>(output_list(launcher));
  if (name.text() == "params")
    return std::optional<Value>(TRY(parameter_list(interpreter, launcher.context(), launcher, span)));
  return std::optional<Value>();
}

Status JitKernelObject::set_attribute(Interpreter&, Name name, Value value, Span) {
  attributes.set(name, std::move(value));
  return {};
}

}  // namespace tilepilot::stage
