#include "eval/worker/tune.h"

#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/script.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/print.h"
#include "eval/worker/value_json.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;
using stage::Interpreter;
using stage::Value;

// A mistake in the call is one in how the command is used, whatever Python calls it.
Error misused(const Diagnostic& error) {
  Diagnostic usage = error;
  usage.kind = DiagnosticKind::bad_usage;
  return make_error(std::move(usage));
}

Error written_out(Span span) {
  return make_error(DiagnosticKind::bad_usage, span, "the call has arguments with `*`: write them out");
}

// A call's function and arguments, evaluated.
struct TakenApart {
  std::string name;
  Value function;
  std::vector<Value> positional;
  Value keywords = stage::make_dict();
};

Result<TakenApart> take_apart(Interpreter& interpreter, stage::ModuleObject& module, const syntax::ModuleRef& tree,
                              const syntax::CallExpr& call, Span span) {
  TakenApart parts;
  parts.name = syntax::to_source(*call.callee);
  parts.function = TRY(interpreter.evaluate(tree, *call.callee, module));
  for (const syntax::ExprPtr& argument : call.args) {
    if (std::holds_alternative<syntax::StarredExpr>(argument->node)) return written_out(span);
    parts.positional.push_back(TRY(interpreter.evaluate(tree, *argument, module)));
  }
  for (const syntax::Keyword& keyword : call.keywords) {
    if (keyword.name.id() == nullptr) return written_out(span);
    Value value = TRY(interpreter.evaluate(tree, *keyword.value, module));
    auto& table = parts.keywords.get_if<stage::DictObject>()->table;
    TRY(table.set(interpreter, Value(keyword.name.str()), std::move(value), span));
  }
  return parts;
}

}  // namespace

Result<json> tune_call(Interpreter& interpreter, stage::ModuleObject& module, const TuneRequest& request,
                       DiagnosticList& diagnostics) {
  const std::string& call = request.call;
  auto tree = syntax::parse(interpreter.sources(), interpreter.sources().add("--call", call + "\n"), diagnostics);
  if (!tree) return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` is no Python expression", call));
  const Span span{tree->file, 0, static_cast<uint32_t>(call.size())};
  auto* statement = tree->body.size() == 1 ? std::get_if<syntax::ExprStmt>(&tree->body[0].node) : nullptr;
  auto* expression = statement != nullptr ? std::get_if<syntax::CallExpr>(&statement->value->node) : nullptr;
  if (expression == nullptr)
    return make_error(DiagnosticKind::bad_usage, span, "what is tuned is a call of a function in the file",
                      "as in `--call \"matmul(1024, 1024, 1024)\"`");
  auto parts = take_apart(interpreter, module, tree, *expression, span);
  if (!parts.ok()) return misused(parts.error());
  auto search = TRY(stage::find_part(interpreter, "tilelang", stage::Name("_tune"), span));
  const Value tune = TRY(search->get_attribute(interpreter, stage::Name("tune_call"), span));
  stage::CallArgs args{{parts->function, Value(parts->name), stage::make_list(std::move(parts->positional)),
                        parts->keywords, Value(request.limit), Value(request.time_limit)},
                       {},
                       span,
                       {}};
  const Value answer = TRY(interpreter.call(tune, std::move(args)));
  json result = TRY(json_of(interpreter, answer));
  if (result.contains("unusable"))
    return make_error(DiagnosticKind::bad_usage, span, result["unusable"].get<std::string>(),
                      "leave out tile sizes, stages and threads: `block_M`, `block_N`, `block_K`, `num_stages`, "
                      "`threads`");
  result["call"] = call;
  return result;
}

}  // namespace tilepilot::eval
