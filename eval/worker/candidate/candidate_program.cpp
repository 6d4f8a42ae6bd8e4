#include "eval/worker/candidate/candidate_program.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>

#include "compiler/syntax/parser.h"
#include "compiler/untrusted/compiler_socket.h"
#include "eval/host/edge.h"
#include "eval/host/host_state.h"
#include "eval/host/layers/module.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/candidate/graph_value.h"
#include "eval/worker/target_backend.h"

namespace tilepilot::eval {

using nlohmann::json;
using stage::Name;
using stage::Value;

namespace {

constexpr int kMaxOutputDepth = 16;

Span start_of_file() { return {0, 0, 0}; }

// While it lives, new tensors are in the host's memory.
class OnProcessor {
 public:
  OnProcessor(TorchHost& host, HostMemoryUse& use)
      : host_(host),
        use_(use),
        device_(host.use_device("cpu")),
        used_(std::exchange(use.used, device_ != "cpu" || use.used)) {}
  ~OnProcessor() {
    host_.use_device(device_);
    use_.used = used_;
  }
  OnProcessor(const OnProcessor&) = delete;

 private:
  TorchHost& host_;
  HostMemoryUse& use_;
  std::string device_;
  bool used_;
};

}  // namespace

CandidateProgram::CandidateProgram(CandidateOptions options, CrashMarker& marker)
    : options_(std::move(options)), marker_(marker), interpreter_(sources_) {}

// Waiting for the driver and for libraries to be loaded is not the candidate's time.
Status CandidateProgram::open() {
  marker_.compiling_since = monotonic_seconds();
  auto opened = open_backend();
  marker_.compiled = marker_.compiled + monotonic_seconds() - marker_.compiling_since.exchange(0);
  return opened;
}

Status CandidateProgram::open_backend() {
  auto target = TRY(open_target(
      options_.target, {.cache = options_.cache, .sources = &sources_, .compiler_socket = options_.compiler_socket}));
  if (target.gpu) {
    gpu_ = target.gpu;
    device_ = TRY(guarded("the GPU", {}, [] { return gpu_device(); }));
    // Before the process is confined: the driver may need libraries for it.
    if (auto fresh = FreshSharedMemory::make(gpu_); fresh.ok()) shared_memory_ = *std::move(fresh);
    target.kernels = stage_host_memory(std::move(target.kernels), gpu_, host_memory_);
    host_memory_.used = true;  // until the model is built
    log_.wait = [this] { return finish(); };
    log_.before_launch = [this] { fill_shared_memory(); };
    host_.gather();
  }
  log_.admits_foreign = options_.allow_foreign;
  if (const auto socket = options_.compiler_socket)
    log_.tell_foreign = [socket] { untrusted::tell_foreign_source(*socket); };
  profiled_ = {nullptr, target.target, &sources_, at::get_num_threads()};
  backend_ = observe(watch(std::move(target.kernels), log_, marker_), profiled_);
  host_.install(interpreter_);
  stage::TileOptions tile;
  tile.backend = backend_.get();
  tile.host = &host_.tensors();
  stage::install_tile_language(interpreter_, std::move(tile));
  interpreter_.set_statement_marker(&marker_.at);
  interpreter_.set_print([](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  return {};
}

PartRecorder& CandidateProgram::recorder() {
  if (!recorder_) {
    recorder_ = std::make_unique<PartRecorder>(device_);
    recorder_->knows_lines(sources_, marker_.at);
    profiled_.recorder = recorder_.get();
  }
  return *recorder_;
}

void CandidateProgram::renew_shared_memory(uint64_t seed) {
  shared_seed_ = seed;
  fill_shared_memory();
}

void CandidateProgram::fill_shared_memory() const {
  // Where that fails a later launch says why.
  if (shared_memory_) (void)shared_memory_->renew(shared_seed_, current_stream());
}

Status CandidateProgram::finish() {
  if (!gpu_) return {};
  TRY(gpu_->use());
  return guarded("", {}, [] { synchronize_gpu(); });
}

Status CandidateProgram::load() {
  int32_t file = sources_.add(options_.name, options_.source);
  auto tree = syntax::parse(sources_, file, parse_errors_);
  if (!tree) {
    for (auto& error : parse_errors_.items()) {
      if (error.severity() == Severity::error) return Status(make_error(error));
    }
  }
  at::NoGradGuard no_grad;
  module_ = TRY(interpreter_.run_module(tree, "candidate"));
  return {};
}

Status CandidateProgram::construct(const GraphArgument& init_inputs, std::vector<ModelWeight> weights) {
  auto numbers = recognisable_numbers(weights);
  for (const ModelWeight& weight : weights)
    if (weight.is_attribute) attributes_.push_back(weight.name);
  Construction first;
  ConstructionRecord record(numbers);
  model_ = TRY([&] {
    ConstructionWatch watch(record);
    return build(init_inputs, first);
  }());
  auto rebuild = [this, init_inputs]() -> Result<Construction> {
    Construction again;
    TRY(build(init_inputs, again));
    return again;
  };
  TRY(guarded("weights", start_of_file(), [&] {
    transfer_.emplace(std::move(first), record, std::move(weights), std::move(rebuild));
    kept_.emplace(model_, module_);
  }));
  if (!device_.is_cpu()) {
    host_memory_.used = false;
    TRY(host_.move_to(device_.str()));
  }
  return guarded("weights", start_of_file(), [&] { transfer_->remember_memory(); });
}

Result<std::vector<std::string>> CandidateProgram::load_weights(int set, const std::vector<at::Tensor>& values) {
  kept_->restore_registered();
  std::vector<std::string> dropped;
  if (set != loaded_set_) dropped = kept_->drop();
  loaded_set_ = set;
  TRY(transfer_->load(set, values));
  return dropped;
}

// Fresh memory holds the same each time, so that what is never written is no difference.
Result<Value> CandidateProgram::build(const GraphArgument& init_inputs, Construction& construction) {
  at::NoGradGuard no_grad;
  Value* model_class = module_->members.find(Name("ModelNew"));
  if (!model_class) {
    return make_error(DiagnosticKind::unknown_name, start_of_file(), "the program defines no `ModelNew`",
                      "define `class ModelNew(nn.Module)` with the arguments of `Model`");
  }
  OnProcessor on_processor(host_, host_memory_);
  host_.seed(options_.seed);
  auto call = arguments(init_inputs, {});
  const FreshMemory before = set_fresh_memory(FreshMemory::repeatable);
  auto made = interpreter_.call(*model_class, std::move(call));
  set_fresh_memory(before);
  Value model = TRY(std::move(made));
  for (const std::string& name : attributes_) register_as_buffer(model, name);
  // Layers keep the mode in which the constructor leaves them, as the model's do: nobody calls `train()` afterwards.
  if (!options_.training) set_training(model, false);
  construction.held = held_tensors(model);
  TRY(guarded("to", start_of_file(), [&] {
    for (auto& each : construction.held) construction.unconverted.push_back(each.tensor.detach());
    if (!options_.type) return;
    for (auto& weight : named_tensors(model)) {
      if (weight.tensor.is_floating_point()) weight.tensor.set_data(weight.tensor.to(*options_.type));
    }
  }));
  return model;
}

stage::CallArgs CandidateProgram::arguments(const GraphArgument& arguments, const std::vector<at::Tensor>& tensors) {
  stage::CallArgs call;
  call.span = start_of_file();
  if (auto* list = std::get_if<GraphList>(&arguments.data)) {
    for (auto& item : *list) call.positional.push_back(graph_value(host_, interpreter_, item, tensors));
  }
  return call;
}

Result<Value> CandidateProgram::call(const stage::CallArgs& arguments) {
  AtenWatch watch(options_.aten, marker_.at);
  // Where launches are looked at, too: what one writes may stand there already, of an operator that was undone.
  const bool fills = log_.ghost != Ghost::none || log_.looks || log_.fills;
  if (auto* memory = host_.state().call_memory()) memory->begin(fills ? fill_with_random_bytes : CallMemory::Fill());
  auto value = interpreter_.call(model_, arguments);
  auto kept_to_it = watch.status();
  broke_aten_policy_ = !kept_to_it.ok();
  TRY(std::move(kept_to_it));
  return value;
}

Result<ForwardResult> CandidateProgram::flatten(const stage::Value& value) {
  ForwardResult result;
  result.structure = TRY(flatten(value, result.tensors, 0));
  return result;
}

Result<json> CandidateProgram::flatten_dict(const Value& value, std::vector<at::Tensor>& tensors, int depth) {
  json entries = json::array();
  for (auto& key : TRY(interpreter_.to_vector(value, start_of_file()))) {
    std::string name = TRY(interpreter_.str(key));
    Value item = TRY(interpreter_.get_item(value, key, start_of_file()));
    json flat = TRY(flatten(item, tensors, depth + 1));
    entries.push_back(json::array({json(name), std::move(flat)}));
  }
  return json{{"dict", entries}};
}

Result<json> CandidateProgram::flatten(const Value& value, std::vector<at::Tensor>& tensors, int depth) {
  if (auto* tensor = tensor_of(value)) {
    tensors.push_back(*tensor);
    return json{{"tensor", tensors.size() - 1}};
  }
  if (value.is_none()) return json(nullptr);
  if (auto* flag = value.if_bool()) return json(*flag);
  if (auto* integer = value.if_int()) return json(*integer);
  if (auto* real = value.if_float()) return json(*real);
  if (auto* text = value.if_string()) return json(*text);
  if (depth > kMaxOutputDepth) {
    return make_error(DiagnosticKind::type_error, start_of_file(), "`forward` returns a structure nested too deeply");
  }
  if (auto* items = stage::sequence_items(value)) {
    json list = json::array();
    for (auto& item : *items) list.push_back(TRY(flatten(item, tensors, depth + 1)));
    return list;
  }
  if (value.type_name() == "dict") return flatten_dict(value, tensors, depth);
  return make_error(DiagnosticKind::type_error, start_of_file(),
                    fmt::format("`forward` returns a value of type `{}`", value.type_name()),
                    "return a tensor, or a tuple, list or dictionary of tensors");
}

}  // namespace tilepilot::eval
