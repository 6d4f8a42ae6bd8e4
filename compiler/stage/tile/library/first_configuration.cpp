#include "compiler/stage/tile/library/first_configuration.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/tile/library/jit.h"

namespace tilepilot::stage {
namespace {

// A decorated function whose missing arguments are those of the first configuration.
class FirstConfiguration final : public TypedObject<FirstConfiguration> {
 public:
  static constexpr Type kType{"AutoTuneImpl"};
  FirstConfiguration(Value function, Value configs) : function_(std::move(function)), configs_(std::move(configs)) {}

  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    TRY(complete(interpreter, args));
    return interpreter.call(function_, std::move(args));
  }

  Result<Value> get_attribute(Interpreter& interpreter, Name name, Span span) override {
    const Value method = TRY(interpreter.get_attribute(function_, name, span));
    if (name.text() != "compile" && name.text() != "get_kernel_source") return method;
    auto self = std::static_pointer_cast<FirstConfiguration>(shared_from_this());
    return make_builtin(name.str(), [self, method](Interpreter& run, CallArgs& args) -> Result<Value> {
      TRY(self->complete(run, args));
      return run.call(method, std::move(args));
    });
  }

 private:
  // What the call gives itself is not tuned.
  Status complete(Interpreter& interpreter, CallArgs& args) {
    Value configs = configs_;
    if (configs.if_object() && (*configs.if_object())->is_callable()) configs = TRY(interpreter.call(configs, args));
    const std::vector<Value> list = TRY(interpreter.to_vector(configs, args.span));
    auto* first = list.empty() ? nullptr : list[0].get_if<DictObject>();
    if (!first) return value_error(args.span, "no configurations to tune: `configs` is a list of dicts of arguments");
    const size_t given = args.positional.size();
    for (const HashTable::Entry& entry : first->table.entries()) {
      const std::string* name = entry.live ? entry.key.if_string() : nullptr;
      if (!name || *name == "pass_configs" || args.keyword(*name) || is_positional(*name, given)) continue;
      args.keywords.emplace_back(Name(*name), entry.value);
    }
    return {};
  }

  bool is_positional(const std::string& name, size_t given) const {
    auto* jit = function_.get_if<JitFunctionObject>();
    for (size_t i = 0; jit && i < std::min(given, jit->function().parameters->size()); ++i)
      if ((*jit->function().parameters)[i].name.text() == name) return true;
    return false;
  }

  Value function_, configs_;
};

Result<Value> decorate(const ContextRef& context, const Value& configs, CallArgs& args) {
  const Value function = args.positional.empty() ? Value() : args.positional[0];
  if (!function.get_if<JitFunctionObject>())
    return make_error(DiagnosticKind::invalid_jit, args.span,
                      fmt::format("`tilelang.autotune` cannot decorate a `{}`", function.type_name()),
                      "it stands above `@tilelang.jit`");
  context->interpreter.diagnostics().add(
      {DiagnosticKind::ignored_request, args.span, "nothing is tuned here: the first configuration is taken"});
  return Value(std::make_shared<FirstConfiguration>(function, configs));
}

}  // namespace

Value make_first_configuration_tuner(const ContextRef& context) {
  return make_builtin("autotune", [context](Interpreter&, CallArgs& call) -> Result<Value> {
    const Value* configs = call.keyword("configs");
    if (!call.positional.empty() || !configs)
      return value_error(call.span, "`tilelang.autotune` needs its configurations: `@tilelang.autotune(configs=...)`");
    return make_builtin("autotune", [context, configs = *configs](Interpreter&, CallArgs& args) {
      return decorate(context, configs, args);
    });
  });
}

}  // namespace tilepilot::stage
