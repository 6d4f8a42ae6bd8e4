#include "eval/host/python_layers.h"

#include <algorithm>

#include "compiler/syntax/parser.h"

namespace tilepilot::embedded {
extern const char tilepilot_torch_nn_transformer[];
}

namespace tilepilot::eval {

namespace {

constexpr std::string_view kPythonLayers[] = {"Transformer", "TransformerDecoder", "TransformerDecoderLayer",
                                              "TransformerEncoder", "TransformerEncoderLayer"};

}  // namespace

Result<std::optional<stage::Value>> find_python_layer(stage::Interpreter& interpreter, stage::ModuleObject& nn,
                                                      stage::Name name) {
  const auto* end = std::end(kPythonLayers);
  if (std::find(std::begin(kPythonLayers), end, name.text()) == end) return std::optional<stage::Value>();
  SourceMap& sources = interpreter.sources();
  const int32_t file = sources.add("<torch.nn.modules.transformer>", embedded::tilepilot_torch_nn_transformer);
  DiagnosticList errors;
  syntax::ModuleRef tree = syntax::parse(sources, file, errors);
  if (!tree) return make_error(errors.items().front());
  auto module = interpreter.make_module(tree, "torch.nn.modules.transformer");
  TRY(interpreter.run_module_in(tree, module));
  for (std::string_view layer : kPythonLayers) {
    if (const stage::Value* made = module->members.find(stage::Name(layer))) nn.set(layer, *made);
  }
  return std::optional<stage::Value>(*module->members.find(name));
}

}  // namespace tilepilot::eval
