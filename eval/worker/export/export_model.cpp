#include "eval/worker/export/export_model.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler/diagnostics/render.h"
#include "compiler/export/folder.h"
#include "compiler/export/kernel_list.h"
#include "compiler/export/package.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/source/file.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/script.h"
#include "compiler/syntax/parser.h"
#include "eval/graph/reference.h"
#include "eval/host/edge.h"
#include "eval/host/tensors/tensor_object.h"
#include "eval/torch/element_type.h"
#include "eval/worker/candidate/aten_policy.h"
#include "eval/worker/candidate/graph_value.h"
#include "eval/worker/export/launch_trace.h"
#include "eval/worker/export/model_plan.h"

namespace tilepilot::eval {
namespace {

using exporting::KernelList;
using exporting::Library;
using stage::Name;
using stage::Value;

Span export_start() { return {0, 0, 0}; }

// Inputs that have the form of the reference's; what they hold does not matter.
Result<std::vector<at::Tensor>> zeros_for(const Graph& graph) {
  std::vector<at::Tensor> tensors(graph.values.size());
  return guarded("get_inputs", export_start(), [&] {
    for_each_value(graph.outputs, [&](int id) {
      const GraphValue& value = graph.values[static_cast<size_t>(id)];
      const auto type = parse_element_type(value.dtype).value_or(at::kFloat);
      at::Tensor& tensor = tensors[static_cast<size_t>(id)];
      tensor = at::empty_strided(value.shape, value.strides, at::dtype(type)).zero_();
    });
    return tensors;
  });
}

// The names of the parameters of ModelNew.forward, without `self`.
std::vector<std::string> parameter_names(const syntax::Module& tree) {
  std::vector<std::string> names;
  for (const syntax::Stmt& statement : tree.body) {
    const auto* model = std::get_if<syntax::ClassDef>(&statement.node);
    if (!model || model->name.text() != "ModelNew") continue;
    for (const syntax::Stmt& inner : model->body) {
      const auto* method = std::get_if<syntax::FunctionDef>(&inner.node);
      if (!method || method->name.text() != "forward") continue;
      for (size_t k = 1; k < method->parameters.size(); ++k) names.emplace_back(method->parameters[k].name.text());
    }
  }
  return names;
}

class ModelExport {
 public:
  explicit ModelExport(const ExportRequest& request) : request_(request), interpreter_(sources_) {
    library_ = {request.name, std::filesystem::path(request.file).filename().string(), request.target, {}};
  }

  int run() {
    const Status status = exported();
    for (const Diagnostic& warning : interpreter_.diagnostics().items())
      if (warning.severity() == Severity::warning) diagnostics_.add(warning);
    if (!status) diagnostics_.add(stage::seen_from_script(sources_, status.error()));
    fmt::print(stderr, "{}", render(sources_, diagnostics_));
    const auto shown = nlohmann::json::parse(render_json(sources_, diagnostics_));
    nlohmann::json answer = {{"ok", false}, {"errors", shown}};
    if (status) {
      answer = exporting::description_of(library_, request_.folder);
      answer["diagnostics"] = shown;
      answer["text"] = exporting::summary_of(library_, request_.folder);
    }
    if (request_.json)
      fmt::print("{}\n", answer.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    else if (status)
      fmt::print("{}\n", exporting::summary_of(library_, request_.folder));
    return status ? 0 : exit_code(status.error().kind);
  }

 private:
  const ExportRequest& request_;
  SourceMap sources_;
  DiagnosticList diagnostics_;
  Library library_;
  LaunchTrace trace_;
  std::unique_ptr<runtime::KernelBackend> backend_ = tracing_backend(trace_);
  TorchHost host_{{.device = "cpu", .shows_cuda = true, .is_script = true}};
  std::unique_ptr<stage::TensorHost> tensors_ = keeping_host(host_.tensors(), trace_);
  stage::StatementMarker place_;
  stage::Interpreter interpreter_;
  std::vector<Value> kept_;  // of the first call, until the second one has ended
  std::vector<std::string> constants_;

  // As the command's other errors.
  static int exit_code(DiagnosticKind kind) {
    using Kind = DiagnosticKind;
    if (kind == Kind::compiler_missing || kind == Kind::nvrtc_missing || kind == Kind::out_of_memory) return 3;
    return kind == Kind::output_unwritable || kind == Kind::bad_usage || kind == Kind::reference_invalid ||
                   kind == Kind::file_not_found
               ? 2
               : 1;
  }

  void install() {
    interpreter_.set_print([](const std::string&) {});
    interpreter_.set_print_error([](const std::string&) {});
    interpreter_.set_statement_marker(&place_);
    host_.install(interpreter_);
    stage::Script script{request_.file, {}, torch_modules()};
    for (const stage::EmbeddedModule& module : stage::tile_modules()) script.modules.push_back(module);
    stage::install_script(interpreter_, script);
    // Of programs that would be tuned the first configuration counts.
    auto limits = std::make_shared<stage::ModuleObject>("_tilepilot_limits");
    limits->set("stages_only", Value(true));
    limits->set("architecture", Value(""));
    interpreter_.add_module(limits->name, limits);
    stage::install_tuning(interpreter_);
    stage::TileOptions tile;
    tile.backend = backend_.get();
    tile.host = tensors_.get();
    stage::install_tile_language(interpreter_, std::move(tile));
  }

  Status exported() {
    const at::NoGradGuard no_grad;
    install();
    std::string text;
    if (!read_file(request_.file, text))
      return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", request_.file));
    const auto tree = syntax::parse(sources_, sources_.add(request_.file, std::move(text)), diagnostics_);
    if (!tree) return parse_failure();
    auto module = interpreter_.make_module(tree, "exported");
    interpreter_.add_module(module->name, module);
    TRY(interpreter_.run_module_in(tree, module));
    KernelList kernels(sources_);
    TRY(trace_model(*module, parameter_names(*tree), kernels));
    for (const std::string& call : request_.calls) TRY(add_call(*module, call, kernels));
    library_.kernels = kernels.take();
    exporting::PackageOptions options;
    options.toolchain.cache = runtime::default_cache_directory();
    options.nvrtc.cache = runtime::default_cache_directory();
    options.nvrtc.folders = runtime::cuda::default_cuda_folders();
    return exporting::write_folder(request_.folder,
                                   TRY(exporting::package_files(library_, sources_, options, diagnostics_)));
  }

  // The first error is the answer's, so that it does not come twice.
  Status parse_failure() {
    const DiagnosticList errors = std::exchange(diagnostics_, {});
    Status status;
    for (const Diagnostic& error : errors.items())
      if (status.ok() && error.severity() == Severity::error)
        status = make_error(error);
      else
        diagnostics_.add(error);
    return status;
  }

  // What the file's function gives, or nothing.
  Result<Value> called(stage::ModuleObject& module, const char* function) {
    Value* found = module.members.find(Name(function));
    if (!found)
      return make_error(DiagnosticKind::unknown_name, export_start(), fmt::format("the file defines no `{}`", function),
                        "name the model's file: `-r MODEL.py`");
    return interpreter_.call(*found, {{}, {}, export_start(), {}});
  }

  struct Inputs {
    std::vector<Value> init, forward;
    bool training = true;
    std::optional<at::ScalarType> type = {};  // as model.to(type)
  };
  Result<Inputs> inputs_of(stage::ModuleObject& module) {
    Inputs inputs;
    if (request_.reference.empty()) {
      inputs.forward = TRY(interpreter_.to_vector(TRY(called(module, "get_inputs")), export_start()));
      if (module.members.find(Name("get_init_inputs")))
        inputs.init = TRY(interpreter_.to_vector(TRY(called(module, "get_init_inputs")), export_start()));
      return inputs;
    }
    const Reference reference = TRY(load_reference(request_.reference));
    inputs.training = reference.training;
    inputs.type = type_of_option(reference.dtype);
    const auto items = [&](const GraphArgument& argument, const std::vector<at::Tensor>& tensors) {
      return interpreter_.to_vector(graph_value(host_, interpreter_, argument, tensors), export_start());
    };
    inputs.init = TRY(items(reference.init_inputs, {}));
    inputs.forward = TRY(items(reference.inputs.outputs, TRY(zeros_for(reference.inputs))));
    return inputs;
  }

  // The tensors of a value, those of lists, tuples and dictionaries included. Other values are what they are in this
  // run, which is noted.
  Status add_views(const Value& value, const std::string& name, std::vector<NamedView>& views) {
    if (const auto view = host_.tensors().view(value)) {
      views.push_back({name, *view});
      return {};
    }
    if (const auto* items = stage::sequence_items(value)) {
      for (size_t k = 0; k < items->size(); ++k) TRY(add_views((*items)[k], fmt::format("{}_{}", name, k), views));
      return {};
    }
    if (value.type_name() != "dict") {
      constants_.push_back(
          fmt::format("`{}` is `{}`, as it was in the run that was exported", name, TRY(interpreter_.repr(value))));
      return {};
    }
    for (const Value& key : TRY(interpreter_.to_vector(value, export_start())))
      TRY(add_views(TRY(interpreter_.get_item(value, key, export_start())),
                    fmt::format("{}_{}", name, TRY(interpreter_.str(key))), views));
    return {};
  }

  struct Call {
    LaunchTrace trace;
    std::vector<NamedView> outputs;
    std::string operator_outside;  // of kernels: the first one
    Span place;
  };
  Result<Call> traced_call(const Value& model, const std::vector<Value>& inputs) {
    Call call;
    trace_ = {true, {}, {}};
    const AtenWatch watch(AtenPolicy::none, place_);
    auto value = interpreter_.call(model, {inputs, {}, export_start(), {}});
    call.operator_outside = watch.offender();
    call.place = watch.place();
    call.trace = std::exchange(trace_, {});
    const Value result = TRY(std::move(value));
    kept_.push_back(result);
    TRY(add_views(result, "output", call.outputs));
    if (call.outputs.size() == 1) call.outputs[0].name = "output";
    return call;
  }

  Status trace_model(stage::ModuleObject& module, const std::vector<std::string>& names, KernelList& kernels) {
    Value* model_class = module.members.find(Name("ModelNew"));
    if (!model_class)
      return make_error(DiagnosticKind::unknown_name, export_start(), "the program defines no `ModelNew`",
                        "name kernels to export: `--call \"matmul(1024, 1024)\"`");
    const Inputs inputs = TRY(inputs_of(module));
    const Value model = TRY(interpreter_.call(*model_class, {inputs.init, {}, export_start(), {}}));
    set_training(model, inputs.training);
    TRY(guarded("to", export_start(), [&] {
      for (NamedTensor& weight : named_tensors(model))
        if (inputs.type && weight.tensor.is_floating_point()) weight.tensor.set_data(weight.tensor.to(*inputs.type));
    }));
    const Call first = TRY(traced_call(model, inputs.forward));
    for (const TracedLaunch& launch : first.trace.launches) TRY(kernels.add(*launch.program, "", launch.call));
    if (kernels.kernels().empty())
      return make_error(DiagnosticKind::invalid_jit, export_start(), "`ModelNew.forward` launches no kernel");
    constants_.clear();  // of the first call's result, which the second one's has again
    const Call second = TRY(traced_call(model, inputs.forward));
    for (const TracedLaunch& launch : second.trace.launches) TRY(kernels.add(*launch.program, "", launch.call));
    TracedModel traced;
    for (size_t k = 0; k < inputs.forward.size(); ++k)
      TRY(add_views(inputs.forward[k], k < names.size() ? names[k] : fmt::format("input_{}", k), traced.inputs));
    for (const NamedTensor& weight : named_tensors(model))
      TRY(add_views(wrap_tensor(host_, weight.tensor), weight.name, traced.weights));
    plan(traced, first, second, kernels);
    return {};
  }

  void plan(TracedModel& traced, const Call& first, const Call& second, KernelList& kernels) {
    const auto line_of = [this](Span span) {
      const bool known = span.valid() && static_cast<size_t>(span.file) < sources_.size();
      return known ? sources_.position(span.file, span.begin).line : 0;
    };
    for (const Call* call : {&first, &second})
      if (!call->operator_outside.empty())
        return leave_out(line_of(call->place),
                         fmt::format("`{}` runs there, outside of kernels", call->operator_outside));
    traced.first = {first.outputs, &first.trace};
    traced.second = {second.outputs, &second.trace};
    traced.kernels = &kernels.kernels();
    traced.kernel_of = [&](const ir::Program& program) {
      return kernels.add(program).ok() ? *kernels.add(program) : 0;
    };
    traced.line_of = line_of;
    auto model = plan_model(traced);
    if (model) {
      library_.model = *std::move(model);
      for (const std::string& constant : constants_)
        library_.notes.push_back(fmt::format("`{}_run_model`: {}", library_.name, constant));
    } else {
      leave_out(line_of(model.error().span), model.error().message);
    }
  }

  void leave_out(int line, const std::string& why) {
    const std::string place = line > 0 ? fmt::format("line {} of {}: ", line, library_.file) : "";
    library_.notes.push_back(fmt::format("`{}_run_model`: {}{}", library_.name, place, why));
  }

  Status add_call(stage::ModuleObject& module, const std::string& call, KernelList& kernels) {
    const auto tree = syntax::parse(sources_, sources_.add("--call", call + "\n"), diagnostics_);
    if (!tree) return parse_failure();
    const Span span{tree->file, 0, static_cast<uint32_t>(call.size())};
    const auto* statement = tree->body.size() == 1 ? std::get_if<syntax::ExprStmt>(&tree->body[0].node) : nullptr;
    if (!statement) return make_error(DiagnosticKind::bad_usage, span, "the call is not one expression");
    const Value value = TRY(interpreter_.evaluate(tree, *statement->value, module));
    const ir::Program* program = stage::program_of(value);
    if (!program)
      return make_error(DiagnosticKind::invalid_jit, span, "the call stages no tile program",
                        "call a factory, as in `matmul(1024, 1024, 1024)`");
    TRY(kernels.add(*program, call));
    return {};
  }
};

}  // namespace

int export_model(const ExportRequest& request) { return ModelExport(request).run(); }

}  // namespace tilepilot::eval
