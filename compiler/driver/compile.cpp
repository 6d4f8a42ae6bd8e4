#include "compiler/driver/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/script.h"
#include "compiler/stage/tile/tile.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::driver {
namespace {

using stage::FunctionObject;
using stage::Interpreter;
using stage::ModuleObject;
using stage::Value;

constexpr std::string_view kModuleName = "candidate";

class Session {
 public:
  Session(SourceMap& sources, const CompileRequest& request)
      : sources_(sources), request_(request), interpreter_(sources) {
    stage::TileOptions options;
    options.raw_memory = true;  // nothing runs here
    options.on_program = [this](const ir::Program& program) { result_.programs.push_back(program); };
    stage::install_tile_language(interpreter_, std::move(options));
    stage::install_torch_stub(interpreter_);
    if (request.is_script) install_script();
    interpreter_.set_print([](const std::string&) {});
  }

  CompileResult run() {
    if (auto tree = syntax::parse(sources_, sources_.add(request_.name, request_.text), result_.diagnostics)) {
      Status status = evaluate(tree);
      add_diagnostics(status);
    }
    return std::move(result_);
  }

 private:
  // Of programs that would be tuned the first configuration is staged.
  void install_script() {
    stage::install_script(interpreter_, {request_.name, {}, stage::tile_modules()});
    auto limits = std::make_shared<ModuleObject>("_tilepilot_limits");
    limits->set("stages_only", Value(true));
    const size_t colon = request_.target.find(':');
    limits->set("architecture", Value(colon == std::string::npos ? "" : request_.target.substr(colon + 1)));
    interpreter_.add_module(limits->name, limits);
    stage::install_tuning(interpreter_);
    auto device = std::make_shared<ModuleObject>("_tilepilot_device");
    device->set("is_gpu", Value(false));
    device->set("torch_device", Value("cpu"));
    device->set("major", Value(int64_t{9}));
    device->set("minor", Value(int64_t{0}));
    interpreter_.add_module(device->name, device);
  }

  // Errors beside the one that ended the run come after it.
  void add_diagnostics(const Status& status) {
    const auto& others = interpreter_.diagnostics().items();
    auto add = [&](Severity severity) {
      for (const Diagnostic& diagnostic : others)
        if (diagnostic.severity() == severity) result_.diagnostics.add(diagnostic);
    };
    add(Severity::warning);
    if (!status.ok()) result_.diagnostics.add(status.error());
    add(Severity::error);
  }

  Status evaluate(const syntax::ModuleRef& tree) {
    auto module = TRY(interpreter_.run_module(tree, std::string(kModuleName)));
    return request_.call.empty() ? stage_defaults(*module) : evaluate_call(*module);
  }

  Status evaluate_call(ModuleObject& module) {
    auto tree = syntax::parse(sources_, sources_.add("<call>", request_.call + "\n"), result_.diagnostics);
    if (!tree) return {};
    auto* statement = tree->body.size() == 1 ? std::get_if<syntax::ExprStmt>(&tree->body[0].node) : nullptr;
    Span span{tree->file, 0, static_cast<uint32_t>(request_.call.size())};
    if (!statement) return make_error(DiagnosticKind::syntax_error, span, "the call is not one expression");
    result_.programs.clear();
    Value value = TRY(interpreter_.evaluate(tree, *statement->value, module));
    // Of several that the call stages it gives one; it may also name one that was staged while the module ran.
    if (const ir::Program* program = stage::program_of(value)) result_.programs = {*program};
    if (!result_.programs.empty()) return {};
    return make_error(DiagnosticKind::invalid_jit, span, "the call stages no tile program",
                      "call a factory, as in `matmul(1024, 1024, 1024)`");
  }

  Status stage_defaults(ModuleObject& module) {
    std::vector<std::string> with_parameters;
    for (stage::Name name : std::vector<stage::Name>(module.members.names())) {
      Value value = *module.members.find(name);
      const FunctionObject* factory = stage::factory_of(value);
      if (!factory || factory->parameters == nullptr) continue;
      bool callable = std::all_of(factory->defaults.begin(), factory->defaults.end(),
                                  [](const auto& value) { return value.has_value(); });
      if (!callable) {
        with_parameters.push_back(fmt::format("{}(...)", name.text()));
        continue;
      }
      stage::CallArgs args;
      args.span = factory->span;
      TRY(interpreter_.call(value, std::move(args)));
    }
    if (!result_.programs.empty()) return {};
    std::string hint = with_parameters.empty()
                           ? "decorate a function with `@T.prim_func` or `@tilelang.jit`"
                           : fmt::format("name the sizes with a call: `{}`", fmt::join(with_parameters, "`, `"));
    return make_error(DiagnosticKind::invalid_jit, {}, fmt::format("`{}` stages no tile program", request_.name),
                      std::move(hint));
  }

  SourceMap& sources_;
  const CompileRequest& request_;
  CompileResult result_;
  Interpreter interpreter_;
};

}  // namespace

CompileResult compile(SourceMap& sources, const CompileRequest& request) { return Session(sources, request).run(); }

}  // namespace tilepilot::driver
