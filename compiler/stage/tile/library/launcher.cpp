#include "compiler/stage/tile/library/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "compiler/ir/effects.h"
#include "compiler/ir/one_symbol.h"
#include "compiler/ir/visit.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/arguments.h"
#include "compiler/stage/tile/kernel/fold.h"

namespace tilepilot::stage {
namespace {

std::string_view parameter_name(const ir::Program& program, size_t i) {
  return std::visit([](const auto& parameter) -> std::string_view { return parameter->name; }, program.parameters[i]);
}

// Tells the host that generated code runs, also when the launch fails.
class LaunchNotice {
 public:
  LaunchNotice(const TileOptions& options, const ir::Program& program) : options_(options), program_(program) {
    if (options_.on_launch) options_.on_launch(program_, true);
  }
  ~LaunchNotice() {
    if (options_.on_launch) options_.on_launch(program_, false);
  }
  LaunchNotice(const LaunchNotice&) = delete;

 private:
  const TileOptions& options_;
  const ir::Program& program_;
};

Error not_an_argument(const ir::Program& program, size_t parameter, const Value& value, Span span) {
  bool tensor = std::holds_alternative<ir::Buffer>(program.parameters[parameter]);
  return make_error(DiagnosticKind::bad_kernel_argument, span,
                    fmt::format("`{}` of `{}` must be a {}, not `{}`", parameter_name(program, parameter), program.name,
                                tensor ? "tensor" : "number", value.type_name()));
}

// The value of a symbol that one of the declared extents or strides determines.
std::optional<int64_t> symbol_in(const ir::Var& symbol, const std::vector<ir::Expr>& declared,
                                 const std::vector<int64_t>& actual) {
  for (size_t axis = 0; axis < declared.size(); ++axis) {
    const auto form = ir::one_symbol(declared[axis]);
    if (form && form->symbol == symbol) return form->solve(actual[axis]);
  }
  return std::nullopt;
}

// The value of an extent, given the arguments whose shapes bind its symbols.
std::optional<int64_t> extent_of(const ir::Program& program, const std::vector<runtime::Argument>& arguments,
                                 const ir::Expr& extent) {
  auto symbol_value = [&](const ir::Var& symbol) -> std::optional<int64_t> {
    for (size_t i = 0; i < arguments.size(); ++i) {
      auto* buffer = std::get_if<ir::Buffer>(&program.parameters[i]);
      auto* view = std::get_if<runtime::TensorView>(&arguments[i]);
      if (!buffer || !view || view->shape.size() != (*buffer)->rank()) continue;
      if (auto value = symbol_in(symbol, (*buffer)->shape, view->shape)) return value;
      if (auto value = symbol_in(symbol, (*buffer)->strides, view->strides)) return value;
    }
    return std::nullopt;
  };
  return evaluate_integer(extent, symbol_value);
}

// Whether a kernel of the program reads or writes the tensor.
bool is_touched(const ir::Program& program, const ir::Buffer& tensor) {
  return std::any_of(program.kernels.begin(), program.kernels.end(), [&](const ir::Kernel& kernel) {
    std::unordered_set<const ir::BufferData*> names{tensor.get()};
    for (const ir::Buffer& buffer : kernel.allocations)
      if (buffer->base == tensor) names.insert(buffer.get());
    return ir::accesses_any(kernel.body, names);
  });
}

}  // namespace

Launcher::Launcher(ContextRef context, ir::Program program, std::vector<size_t> outputs)
    : context_(std::move(context)), program_(std::move(program)), outputs_(std::move(outputs)) {}

bool Launcher::is_output(size_t parameter) const {
  return std::find(outputs_.begin(), outputs_.end(), parameter) != outputs_.end();
}

Result<std::shared_ptr<runtime::CompiledKernel>> Launcher::build(Span span, DiagnosticList& warnings) const {
  if (!context_->options.backend)
    return make_error(DiagnosticKind::forbidden, span,
                      fmt::format("the kernel `{}` cannot run here: tile programs are only staged", program_.name),
                      "run the program with the command `run`");
  return context_->options.backend->compile(program_, warnings);
}

void Launcher::adopt(std::shared_ptr<runtime::CompiledKernel> kernel, const DiagnosticList& warnings) {
  for (const Diagnostic& warning : warnings.items()) context_->interpreter.diagnostics().add(warning);
  if (!kernel_) kernel_ = std::move(kernel);
}

Status Launcher::compile(Span span) {
  if (kernel_) return {};
  DiagnosticList warnings;
  auto kernel = TRY(build(span, warnings));
  adopt(std::move(kernel), warnings);
  return {};
}

std::vector<Status> Launcher::compile_all(const std::vector<Launcher*>& launchers, Span span) {
  // What is no thread's own stays as it is while they run: results are put in place afterwards.
  struct Made {
    Result<std::shared_ptr<runtime::CompiledKernel>> kernel = std::shared_ptr<runtime::CompiledKernel>();
    DiagnosticList warnings;
  };
  std::vector<Made> made(launchers.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < launchers.size(); i = next++) {
      const Launcher& launcher = *launchers[i];
      if (launcher.kernel_ || !launcher.context_->options.backend) continue;
      made[i].kernel = launcher.context_->options.backend->compile(launcher.program_, made[i].warnings);
    }
  };
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(cores, launchers.size()); ++i) {
    try {
      threads.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the system allows no more: those that there are do it
    }
  }
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<Status> statuses;
  for (size_t i = 0; i < launchers.size(); ++i) {
    Launcher& launcher = *launchers[i];
    for (const Diagnostic& warning : made[i].warnings.items())
      launcher.context_->interpreter.diagnostics().add(warning);
    if (!made[i].kernel.ok()) {
      statuses.push_back(std::move(made[i].kernel).take_error());
      continue;
    }
    if (!launcher.kernel_) launcher.kernel_ = *std::move(made[i].kernel);
    statuses.push_back(launcher.compile(span));
  }
  return statuses;
}

Result<Launcher::Call> Launcher::bind_inputs(const std::vector<Value>& inputs, Span span) const {
  size_t expected = program_.parameters.size() - outputs_.size();
  if (inputs.size() != expected)
    return make_error(DiagnosticKind::wrong_arguments, span,
                      fmt::format("the kernel `{}` takes {} argument{}, got {}", program_.name, expected,
                                  expected == 1 ? "" : "s", inputs.size()),
                      outputs_.empty() ? "" : "outputs named by `out_idx` are allocated and returned, not passed");
  Call call{std::vector<runtime::Argument>(program_.parameters.size(), runtime::TensorView{}), {}};
  size_t next = 0;
  std::vector<size_t> absent;
  for (size_t i = 0; i < program_.parameters.size(); ++i) {
    if (is_output(i)) continue;
    const Value& value = inputs[next++];
    auto* buffer = std::get_if<ir::Buffer>(&program_.parameters[i]);
    if (buffer && value.is_none() && !is_touched(program_, *buffer)) {
      absent.push_back(i);
      continue;
    }
    auto argument = as_argument(i, value);
    if (!argument) return not_an_argument(program_, i, value, span);
    call.arguments[i] = *std::move(argument);
  }
  TRY(lend_absent(call, absent, span));
  return call;
}

std::optional<runtime::Argument> Launcher::as_argument(size_t parameter, const Value& value) const {
  if (auto* buffer = std::get_if<ir::Buffer>(&program_.parameters[parameter])) {
    auto view = context_->options.host->view(value);
    return view ? std::optional<runtime::Argument>(runtime::as_parameter(std::move(*view), (*buffer)->type))
                : std::nullopt;
  }
  if (auto integer = value.as_index()) return *integer;
  if (auto* real = value.if_float()) return *real;
  // A tensor for a `T.ptr` stands for its address.
  const bool takes_address = std::get<ir::Var>(program_.parameters[parameter])->type == ir::kInt64;
  if (!context_->options.raw_memory || !takes_address || !value.if_object()) return std::nullopt;
  auto view = context_->options.host->view(value);
  return view ? std::optional<runtime::Argument>(static_cast<int64_t>(reinterpret_cast<intptr_t>(view->data)))
              : std::nullopt;
}

// `None` for tensors that no kernel touches: they get memory that nobody reads. Symbols that only they would determine
// are 0.
Status Launcher::lend_absent(Call& call, const std::vector<size_t>& absent, Span span) const {
  for (const size_t i : absent) {
    const ir::BufferData& buffer = *std::get<ir::Buffer>(program_.parameters[i]);
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : buffer.shape)
      shape.push_back(extent_of(program_, call.arguments, extent).value_or(0));
    call.lent.push_back(TRY(context_->options.host->allocate(buffer.type, shape, span)));
    call.arguments[i] = runtime::as_parameter(*context_->options.host->view(call.lent.back()), buffer.type);
  }
  return {};
}

Result<std::vector<Value>> Launcher::arrange(const CallArgs& args) const {
  std::vector<Value> inputs = args.positional;
  if (args.keywords.empty()) return inputs;
  std::vector<std::string_view> names;
  for (size_t i = 0; i < program_.parameters.size(); ++i)
    if (!is_output(i)) names.push_back(parameter_name(program_, i));
  for (size_t i = inputs.size(); i < names.size(); ++i) {
    const Value* value = args.keyword(names[i]);
    if (!value)
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("the kernel `{}` lacks its argument `{}`", program_.name, names[i]));
    inputs.push_back(*value);
  }
  if (inputs.size() == args.positional.size() + args.keywords.size()) return inputs;
  return make_error(
      DiagnosticKind::wrong_arguments, args.span,
      fmt::format("the kernel `{}` is called with names that are not its own, or given twice", program_.name),
      fmt::format("its arguments are `{}`", fmt::join(names, "`, `")));
}

Result<Value> Launcher::allocate_output(const Call& call, const ir::BufferData& buffer, Span span) const {
  std::vector<int64_t> shape;
  for (const ir::Expr& extent : buffer.shape) {
    auto size = extent_of(program_, call.arguments, extent);
    if (!size)
      return make_error(DiagnosticKind::non_constant_shape, span,
                        fmt::format("the shape of the output `{}` does not follow from the inputs", buffer.name));
    shape.push_back(*size);
  }
  return context_->options.host->allocate(buffer.type, shape, span);
}

Result<Value> Launcher::run(const std::vector<Value>& inputs, Span span) {
  TRY(compile(span));
  if (!context_->options.host)
    return make_error(DiagnosticKind::forbidden, span, "there are no tensors here to run a kernel on");
  Call call = TRY(bind_inputs(inputs, span));
  std::vector<Value> results;
  for (size_t position : outputs_) {
    const ir::BufferData& buffer = *std::get<ir::Buffer>(program_.parameters[position]);
    results.push_back(TRY(allocate_output(call, buffer, span)));
    call.arguments[position] = runtime::as_parameter(*context_->options.host->view(results.back()), buffer.type);
  }
  TRY(launch(call, span));
  if (results.empty()) return Value();
  return results.size() == 1 ? results[0] : make_list(std::move(results));
}

Status Launcher::launch(const Call& call, Span span) const {
  std::string printed;
  Status status;
  {
    LaunchNotice notice(context_->options, program_);
    status = kernel_->launch(call.arguments, context_->options.host->parallel_for(), span);
    printed = kernel_->take_printed();
  }
  if (!printed.empty()) context_->interpreter.print(printed);
  return status;
}

Result<std::string> Launcher::source(Span span) {
  TRY(compile(span));
  return kernel_->source();
}

Result<std::vector<size_t>> output_positions(const Value& out_idx, const ir::Program& program, Span span) {
  std::vector<size_t> positions;
  if (out_idx.is_none()) return positions;
  std::vector<Value> items{out_idx};
  if (auto* sequence = sequence_items(out_idx)) items = *sequence;
  auto count = static_cast<int64_t>(program.parameters.size());
  for (const Value& item : items) {
    int64_t index = TRY(meta_integer(item, "`out_idx`", span));
    int64_t position = index < 0 ? index + count : index;
    if (position < 0 || position >= count)
      return make_error(DiagnosticKind::invalid_jit, span,
                        fmt::format("`out_idx` {} is out of range: `{}` has {} parameter{}", index, program.name, count,
                                    count == 1 ? "" : "s"));
    if (!std::holds_alternative<ir::Buffer>(program.parameters[static_cast<size_t>(position)]))
      return make_error(DiagnosticKind::invalid_jit, span,
                        fmt::format("`out_idx` {} names the scalar `{}`; outputs are tensors", index,
                                    parameter_name(program, static_cast<size_t>(position))));
    positions.push_back(static_cast<size_t>(position));
  }
  return positions;
}

}  // namespace tilepilot::stage
