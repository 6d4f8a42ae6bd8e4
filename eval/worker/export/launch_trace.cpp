#include "eval/worker/export/launch_trace.h"

#include <cstring>

#include "compiler/ir/effects.h"
#include "compiler/runtime/arguments.h"
#include "eval/worker/staged_backend.h"

namespace tilepilot::eval {
namespace {

class TracedKernel final : public runtime::CompiledKernel {
 public:
  TracedKernel(const ir::Program& program, LaunchTrace& trace)
      : program_(std::make_shared<ir::Program>(program)), trace_(trace) {
    for (const ir::Kernel& kernel : program.kernels) effects_.add(ir::memory_effects_of(kernel.body));
  }

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor&, Span span) override {
    const runtime::BoundArguments bound = TRY(runtime::bind_arguments(*program_, arguments, span));
    for (size_t k = 0; k < arguments.size(); ++k) clear_if_written(program_->parameters[k], arguments[k]);
    if (!trace_.is_on) return {};
    std::vector<int64_t> symbols;
    for (const ir::Var& symbol : program_->symbols) symbols.push_back(bound.values.at(symbol.get()).lo);
    trace_.launches.push_back({program_, arguments, std::move(symbols), span});
    return {};
  }
  const ir::Program& program() const override { return *program_; }
  const std::string& source() const override { return no_source_; }

 private:
  const std::shared_ptr<const ir::Program> program_;
  LaunchTrace& trace_;
  ir::Effects effects_;
  const std::string no_source_;

  // Whatever the program does with the values then, they are in range. Gaps between rows belong to others.
  void clear_if_written(const std::variant<ir::Buffer, ir::Var>& parameter, const runtime::Argument& argument) const {
    const auto* buffer = std::get_if<ir::Buffer>(&parameter);
    const auto* view = std::get_if<runtime::TensorView>(&argument);
    if (!buffer || !view || !effects_.writes.contains(buffer->get())) return;
    int64_t bytes = view->type.bytes();
    for (const int64_t extent : view->shape) bytes *= extent;
    if (bytes > 0 && bytes == bytes_spanned(*view)) std::memset(view->data, 0, static_cast<size_t>(bytes));
  }
};

class TracingBackend final : public runtime::KernelBackend {
 public:
  explicit TracingBackend(LaunchTrace& trace) : trace_(trace) {}

  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program, DiagnosticList&) override {
    return std::shared_ptr<runtime::CompiledKernel>(std::make_shared<TracedKernel>(program, trace_));
  }

 private:
  LaunchTrace& trace_;
};

class KeepingHost final : public stage::TensorHost {
 public:
  KeepingHost(stage::TensorHost& host, LaunchTrace& trace) : host_(host), trace_(trace) {}

  std::optional<runtime::TensorView> view(const stage::Value& value) override {
    auto view = host_.view(value);
    if (view && trace_.is_on) trace_.kept.push_back(value);
    return view;
  }
  Result<stage::Value> allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) override {
    return host_.allocate(type, shape, span);
  }
  const runtime::ParallelFor& parallel_for() override { return host_.parallel_for(); }
  std::optional<ir::DType> dtype(const stage::Value& value) override { return host_.dtype(value); }

 private:
  stage::TensorHost& host_;
  LaunchTrace& trace_;
};

}  // namespace

std::unique_ptr<runtime::KernelBackend> tracing_backend(LaunchTrace& trace) {
  return std::make_unique<TracingBackend>(trace);
}

std::unique_ptr<stage::TensorHost> keeping_host(stage::TensorHost& host, LaunchTrace& trace) {
  return std::make_unique<KeepingHost>(host, trace);
}

}  // namespace tilepilot::eval
