#include "eval/host/embedded_python.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/syntax/parser.h"

namespace tilepilot::embedded {
extern const char tilepilot_einops[];
extern const char tilepilot_numpy[];
extern const char tilepilot_torch_nn_transformer[];
}  // namespace tilepilot::embedded

namespace tilepilot::eval {

using stage::Interpreter;
using stage::ModuleObject;
using stage::Name;
using stage::Value;

namespace {

using ModuleRef = std::shared_ptr<ModuleObject>;

constexpr std::string_view kPythonLayers[] = {"Transformer", "TransformerDecoder", "TransformerDecoderLayer",
                                              "TransformerEncoder", "TransformerEncoderLayer"};

Result<ModuleRef> run_text(Interpreter& interpreter, const std::string& name, std::string text) {
  SourceMap& sources = interpreter.sources();
  const int32_t file = sources.add(fmt::format("<{}>", name), std::move(text));
  DiagnosticList errors;
  syntax::ModuleRef tree = syntax::parse(sources, file, errors);
  if (!tree) return make_error(errors.items().front());
  ModuleRef module = interpreter.make_module(tree, name);
  TRY(interpreter.run_module_in(tree, module));
  return module;
}

ModuleRef lazy_module(const std::string& name, std::string text) {
  auto made = std::make_shared<ModuleObject>(name);
  ModuleObject& self = *made;
  made->missing = [&self, text = std::move(text), has_run = false](Interpreter& interpreter, Name asked,
                                                                   Span) mutable -> Result<std::optional<Value>> {
    if (std::exchange(has_run, true)) return std::optional<Value>();
    ModuleRef module = TRY(run_text(interpreter, self.name, text));
    for (Name each : std::vector<Name>(module->members.names())) self.members.set(each, *module->members.find(each));
    const Value* found = self.members.find(asked);
    return found ? std::optional<Value>(*found) : std::nullopt;
  };
  return made;
}

}  // namespace

Result<std::optional<Value>> find_python_layer(Interpreter& interpreter, ModuleObject& nn, Name name) {
  const auto* end = std::end(kPythonLayers);
  if (std::find(std::begin(kPythonLayers), end, name.text()) == end) return std::optional<Value>();
  ModuleRef module =
      TRY(run_text(interpreter, "torch.nn.modules.transformer", embedded::tilepilot_torch_nn_transformer));
  for (std::string_view layer : kPythonLayers) {
    if (const Value* made = module->members.find(Name(layer))) nn.set(layer, *made);
  }
  return std::optional<Value>(*module->members.find(name));
}

void add_python_packages(Interpreter& interpreter) {
  for (auto& [name, text] : {std::pair("einops", embedded::tilepilot_einops), {"numpy", embedded::tilepilot_numpy}}) {
    interpreter.add_module(name, lazy_module(name, text));
  }
}

}  // namespace tilepilot::eval
