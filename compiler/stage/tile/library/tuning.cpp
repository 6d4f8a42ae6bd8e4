// What the tuner and the carver, which are written in Python, ask the compiler: kernels compiled side by side, their
// text, and the model of tile sizes.
#include <fmt/format.h>

#include "compiler/ir/text/text.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/tile/library/jit.h"
#include "compiler/stage/tile/library/prim_func.h"
#include "compiler/syntax/print.h"
#include "compiler/targets/gpu/estimate/kernel_estimate.h"

namespace tilepilot::stage {
namespace {

namespace gpu = targets::gpu;

// A dict from names to values, as Python gives and gets it.
class Fields {
 public:
  Fields(Interpreter& interpreter, Value dict, Span span)
      : interpreter_(interpreter), dict_(std::move(dict)), span_(span) {}

  Status set(std::string_view name, Value value) {
    return dict_.get_if<DictObject>()->table.set(interpreter_, Value(name), std::move(value), span_);
  }
  const Value& dict() const { return dict_; }

  // Null: there is none, or None.
  Result<const Value*> find(std::string_view name) const {
    auto* dict = dict_.get_if<DictObject>();
    if (dict == nullptr) return type_error(span_, fmt::format("a dict is wanted, not a `{}`", dict_.type_name()));
    const Value* value = TRY(dict->find(interpreter_, Value(name), span_));
    return value != nullptr && value->is_none() ? nullptr : value;
  }
  Result<int64_t> integer(std::string_view name, int64_t otherwise) const {
    const Value* value = TRY(find(name));
    if (value == nullptr) return otherwise;
    if (auto index = value->as_index()) return *index;
    return type_error(span_, fmt::format("`{}` must be an integer, not a `{}`", name, value->type_name()));
  }
  Result<ir::DType> dtype(std::string_view name, ir::DType otherwise) const {
    const Value* value = TRY(find(name));
    if (value == nullptr) return otherwise;
    const std::string text = TRY(interpreter_.str(*value));
    // A dtype of torch is known by its last part.
    if (auto type = ir::parse_dtype(text.substr(text.rfind('.') + 1))) return *type;
    return value_error(span_, fmt::format("`{}` is no element type that tiles are known for", text));
  }

 private:
  Interpreter& interpreter_;
  Value dict_;
  Span span_;
};

Result<JitKernelObject*> kernel_from(const Value& value, Span span) {
  if (auto* kernel = value.get_if<JitKernelObject>()) return kernel;
  return type_error(span, fmt::format("a compiled program is wanted, not a `{}`", value.type_name()));
}

// compile_all(kernels) -> for each None, or why it cannot be compiled.
Result<Value> compile_all(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"compile_all", {"kernels"}, 1};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Launcher*> launchers;
  for (const Value& value : TRY(interpreter.to_vector(*read[0], args.span))) {
    JitKernelObject* kernel = TRY(kernel_from(value, args.span));
    launchers.push_back(&kernel->launcher);
  }
  std::vector<Value> answers;
  for (const Status& status : Launcher::compile_all(launchers, args.span))
    answers.push_back(status.ok() ? Value() : Value(status.error().message));
  return make_list(std::move(answers));
}

Result<Value> program_text(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"program_text", {"kernel"}, 1};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  const JitKernelObject* kernel = TRY(kernel_from(*read[0], args.span));
  return Value(ir::to_text(kernel->launcher.program()));
}

// The function as it was written, comments left out.
Result<Value> source_text(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"source_text", {"function"}, 1};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  auto* jit = read[0]->get_if<JitFunctionObject>();
  auto* function = jit != nullptr ? &jit->function() : read[0]->get_if<FunctionObject>();
  std::string text;
  if (function == nullptr || function->definition == nullptr) return Value(text);
  for (const syntax::Stmt& stmt : function->definition->body) text += syntax::to_source(stmt);
  return Value(std::move(text));
}

// {"architecture": "sm_90a", "multiprocessors": 132}, of which the second may be missing.
Result<gpu::Machine> hardware_from(Interpreter& interpreter, const Value& device, Span span) {
  const Fields fields(interpreter, device, span);
  const Value* name = TRY(fields.find("architecture"));
  const std::string* text = name != nullptr ? name->if_string() : nullptr;
  if (text == nullptr || (*text != "sm_80" && *text != "sm_90a"))
    return value_error(span, "tile sizes are known for \"sm_80\" and \"sm_90a\"");
  gpu::Machine hardware = gpu::machine_of(*text == "sm_80" ? gpu::Architecture::sm_80 : gpu::Architecture::sm_90a);
  hardware.multiprocessors = TRY(fields.integer("multiprocessors", hardware.multiprocessors));
  if (hardware.multiprocessors <= 0) return value_error(span, "a GPU has at least one multiprocessor");
  return hardware;
}

Result<Value> hardware(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"hardware", {"device"}, 1};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  const gpu::Machine known = TRY(hardware_from(interpreter, *read[0], args.span));
  Fields facts(interpreter, make_dict(), args.span);
  TRY(facts.set("name", Value(known.name)));
  TRY(facts.set("multiprocessors", Value(known.multiprocessors)));
  TRY(facts.set("block_shared_bytes", Value(known.block_shared_bytes)));
  TRY(facts.set("shared_bytes", Value(known.shared_bytes)));
  TRY(facts.set("cache_bytes", Value(known.cache_bytes)));
  TRY(facts.set("memory_rate", Value(known.memory_rate)));
  const double processors = static_cast<double>(known.multiprocessors);
  TRY(facts.set("half_rate", Value(processors * known.clock * known.half_rate)));
  return facts.dict();
}

Status add_estimate(Fields& fields, const gpu::Estimate& estimate) {
  TRY(fields.set("ms", Value(estimate.seconds * 1e3)));
  TRY(fields.set("bound", Value(estimate.bound)));
  TRY(fields.set("resident", Value(estimate.resident)));
  return fields.set("waves", Value(estimate.waves));
}

// workload(program, device) -> {"operations", "bytes"}, or None where only the call decides.
Result<Value> workload(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"workload", {"program", "device"}, 2};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  const ir::Program* program = program_of(*read[0]);
  if (program == nullptr)
    return type_error(args.span, fmt::format("a tile program is wanted, not a `{}`", read[0]->type_name()));
  const gpu::Machine known = TRY(hardware_from(interpreter, *read[1], args.span));
  const auto made = gpu::workload_of(*program, known);
  if (!made) return Value();
  Fields fields(interpreter, make_dict(), args.span);
  TRY(fields.set("operations", Value(made->operations)));
  TRY(fields.set("bytes", Value(made->bytes)));
  return fields.dict();
}

// estimate(program, device) -> {"ms", "bound", "resident", "waves"}, {"refusal"}, or None where the model cannot say.
Result<Value> estimate(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"estimate", {"program", "device"}, 2};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  const ir::Program* program = program_of(*read[0]);
  if (program == nullptr)
    return type_error(args.span, fmt::format("a tile program is wanted, not a `{}`", read[0]->type_name()));
  const gpu::Machine known = TRY(hardware_from(interpreter, *read[1], args.span));
  const auto made = gpu::estimate(*program, known);
  if (!made) return Value();
  Fields fields(interpreter, make_dict(), args.span);
  if (auto* refusal = std::get_if<gpu::Refusal>(&*made))
    TRY(fields.set("refusal", Value(refusal->reason)));
  else
    TRY(add_estimate(fields, std::get<gpu::Estimate>(*made)));
  return fields.dict();
}

Result<std::vector<gpu::Tiles>> tiles_for(std::string_view kind, const Fields& problem, const gpu::Machine& known,
                                          size_t count, Span span) {
  if (kind == "gemm") {
    gpu::GemmProblem gemm;
    gemm.m = TRY(problem.integer("m", 0));
    gemm.n = TRY(problem.integer("n", 0));
    gemm.k = TRY(problem.integer("k", 0));
    gemm.batch = TRY(problem.integer("batch", 1));
    gemm.element = TRY(problem.dtype("element", ir::kFloat16));
    gemm.output = TRY(problem.dtype("output", gemm.element));
    gemm.transpose_a = TRY(problem.integer("transpose_a", 0)) != 0;
    gemm.transpose_b = TRY(problem.integer("transpose_b", 1)) != 0;
    gemm.may_split = TRY(problem.integer("may_split", 0)) != 0;
    return gpu::recommend(gemm, known, count);
  }
  if (kind == "attention") {
    gpu::AttentionProblem attention;
    attention.batch = TRY(problem.integer("batch", 1));
    attention.heads = TRY(problem.integer("heads", 1));
    attention.queries = TRY(problem.integer("queries", 0));
    attention.keys = TRY(problem.integer("keys", attention.queries));
    attention.dim = TRY(problem.integer("dim", 0));
    attention.element = TRY(problem.dtype("element", ir::kFloat16));
    attention.causal = TRY(problem.integer("causal", 0)) != 0;
    return gpu::recommend(attention, known, count);
  }
  const int64_t rows = TRY(problem.integer("rows", 1)), columns = TRY(problem.integer("columns", 0));
  const ir::DType element = TRY(problem.dtype("element", ir::kFloat16));
  if (kind == "reduction") {
    const bool writes_rows = TRY(problem.integer("writes_rows", 1)) != 0;
    return gpu::recommend(gpu::ReductionProblem{rows, columns, element, writes_rows}, known, count);
  }
  if (kind == "elementwise") {
    const int64_t inputs = TRY(problem.integer("inputs", 1));
    return gpu::recommend(gpu::ElementwiseProblem{rows, columns, element, inputs}, known, count);
  }
  return value_error(span, fmt::format("there is no model of `{}`: gemm, attention, reduction, elementwise", kind));
}

// recommend(kind, problem, device, count) -> a list of dicts, the best first.
Result<Value> recommend(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"recommend", {"kind", "problem", "device", "count"}, 4};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  const gpu::Machine known = TRY(hardware_from(interpreter, *read[2], args.span));
  const auto count = static_cast<size_t>(std::max<int64_t>(0, TRY(read.integer(3))));
  const Fields problem(interpreter, *read[1], args.span);
  std::vector<Value> answers;
  const std::string kind = TRY(read.text(0));
  for (const gpu::Tiles& tiles : TRY(tiles_for(kind, problem, known, count, args.span))) {
    Fields fields(interpreter, make_dict(), args.span);
    TRY(fields.set("block_M", Value(tiles.block_m)));
    TRY(fields.set("block_N", Value(tiles.block_n)));
    TRY(fields.set("block_K", Value(tiles.block_k)));
    TRY(fields.set("num_stages", Value(tiles.stages)));
    TRY(fields.set("threads", Value(tiles.threads)));
    TRY(fields.set("panel_size", Value(tiles.panel)));
    TRY(fields.set("split_k", Value(tiles.split_k)));
    TRY(fields.set("blocks", Value(tiles.work.blocks)));
    TRY(fields.set("shared_bytes", Value(tiles.work.shared_bytes)));
    TRY(fields.set("registers", Value(tiles.work.registers)));
    TRY(add_estimate(fields, tiles.estimate));
    answers.push_back(fields.dict());
  }
  return make_list(std::move(answers));
}

}  // namespace

void install_tuning(Interpreter& interpreter) {
  auto module = std::make_shared<ModuleObject>("_tilepilot_tuning");
  module->function("compile_all", compile_all);
  module->function("program_text", program_text);
  module->function("source_text", source_text);
  module->function("hardware", hardware);
  module->function("estimate", estimate);
  module->function("workload", workload);
  module->function("recommend", recommend);
  interpreter.add_module(module->name, module);
}

}  // namespace tilepilot::stage
