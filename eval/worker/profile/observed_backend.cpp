#include "eval/worker/profile/observed_backend.h"

#include <algorithm>
#include <map>

#include "compiler/ir/launch_work.h"
#include "compiler/runtime/arguments.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/cuda/instructions.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::eval {
namespace {

using runtime::LaunchFacts;

int line_of_span(const Profiled& profiled, Span span) {
  const bool known = profiled.sources && span.valid() && static_cast<size_t>(span.file) < profiled.sources->size();
  return known ? profiled.sources->position(span.file, span.begin).line : 0;
}

bool same_place(Span a, Span b) { return a.file == b.file && a.begin == b.begin; }

// The kernel of the program that a launch comes from: passes may make several launches of one.
size_t kernel_of(const ir::Program& program, const LaunchFacts& facts, size_t number) {
  for (size_t k = 0; k < program.kernels.size(); ++k)
    if (same_place(program.kernels[k].span, facts.kernel)) return k;
  return std::min(number, program.kernels.size() - 1);
}

GpuUse gpu_use_of(const LaunchFacts::Gpu& gpu) {
  GpuUse use;
  use.registers = gpu.registers;
  use.spilled_bytes = gpu.local_bytes;
  use.static_shared = gpu.static_shared;
  use.dynamic_shared = gpu.dynamic_shared;
  use.grid = gpu.grid;
  use.threads = gpu.threads;
  use.cluster = gpu.cluster[0] * gpu.cluster[1] * gpu.cluster[2];
  use.resident_blocks = gpu.resident_blocks;
  use.multiprocessors = gpu.multiprocessors;
  const int64_t threads = gpu.threads[0] * gpu.threads[1] * gpu.threads[2];
  if (gpu.most_threads > 0)
    use.occupancy = static_cast<double>(gpu.resident_blocks * threads) / static_cast<double>(gpu.most_threads);
  return use;
}

CpuUse cpu_use_of(const Profiled& profiled, const LaunchFacts& facts) {
  CpuUse use{facts.blocks, facts.threaded ? profiled.threads : 1, {}};
  for (const Span& check : facts.checks)
    if (const int line = line_of_span(profiled, check); line > 0) use.checked_lines.push_back(line);
  std::sort(use.checked_lines.begin(), use.checked_lines.end());
  use.checked_lines.erase(std::unique(use.checked_lines.begin(), use.checked_lines.end()), use.checked_lines.end());
  return use;
}

KernelWork work_of_launch(const ir::Kernel& kernel, const ir::VarRanges& values, double launches) {
  const ir::LaunchWork work = ir::launch_work(kernel, values);
  return {work.least_bytes / launches, work.requested_bytes / launches, work.product_flops / launches,
          work.other_flops / launches, work.functions / launches,       work.product_type,
          work.exact && launches == 1};
}

// On a processor: what is no vector code.
std::vector<Choice> scalar_choices_of(const Profiled& profiled, const LaunchFacts& facts) {
  std::vector<Choice> choices;
  for (const LaunchFacts::Scalar& code : facts.scalar)
    choices.push_back({line_of_span(profiled, code.span), code.what, "no vector code", {code.why}});
  return choices;
}

// By kernel of the program. Where the choices cannot be told, the program would not have compiled.
std::vector<std::vector<Choice>> choices_of(const ir::Program& program, const Profiled& profiled) {
  std::vector<std::vector<Choice>> all(program.kernels.size());
  if (profiled.target.place == runtime::Place::cpu) return all;
  const auto architecture =
      profiled.target.architecture == "sm_80" ? targets::gpu::Architecture::sm_80 : targets::gpu::Architecture::sm_90a;
  const auto decisions = targets::cuda::decisions_of(targets::gpu::for_usual_tensors(program), architecture);
  for (size_t k = 0; decisions.ok() && k < std::min(all.size(), decisions->size()); ++k)
    for (const auto& each : (*decisions)[k])
      all[k].push_back({line_of_span(profiled, each.span), each.what, each.chosen, each.obstacles});
  return all;
}

class ObservedKernel final : public runtime::CompiledKernel, public runtime::LaunchObserver {
 public:
  ObservedKernel(std::shared_ptr<runtime::CompiledKernel> kernel, const Profiled& profiled)
      : kernel_(std::move(kernel)), profiled_(profiled), has_values_(depends_on_values(kernel_->program())) {}

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor& parallel_for,
                Span span) override {
    if (!profiled_.recorder || !profiled_.recorder->is_watching())
      return kernel_->launch(arguments, parallel_for, span);
    if (recorder_ != profiled_.recorder) {
      recorder_ = profiled_.recorder;
      parts_.clear();
    }
    std::vector<int64_t> key;
    if (has_values_) key = TRY(runtime::bind_arguments(program(), arguments, span)).scalars;
    const auto [found, is_new] = parts_.try_emplace(std::move(key));
    now_ = &found->second;
    kernel_->set_observer(this);
    auto status = kernel_->launch(arguments, parallel_for, span);
    kernel_->set_observer(nullptr);
    if (status.ok() && is_new) TRY(describe(arguments, span));
    return status;
  }

  void begin_kernel(size_t number) override {
    while (now_->size() <= number) now_->push_back(recorder_->add({program().name, 0}));
    recorder_->begin_part((*now_)[number]);
  }
  void end_kernel(size_t) override { recorder_->end_part(); }

  void set_block_order(runtime::BlockOrder order) override { kernel_->set_block_order(order); }
  std::string take_printed() override { return kernel_->take_printed(); }
  std::vector<LaunchFacts> facts() const override { return kernel_->facts(); }
  const ir::Program& program() const override { return kernel_->program(); }
  const std::string& source() const override { return kernel_->source(); }

 private:
  static bool depends_on_values(const ir::Program& program) {
    return !program.symbols.empty() ||
           std::any_of(program.parameters.begin(), program.parameters.end(),
                       [](const auto& parameter) { return std::holds_alternative<ir::Var>(parameter); });
  }

  // What the driver knows now; what must be worked out, when nobody is timed.
  Status describe(const std::vector<runtime::Argument>& arguments, Span span) {
    const std::vector<LaunchFacts> facts = kernel_->facts();
    const std::vector<size_t> parts = *now_;
    std::vector<size_t> kernels;
    for (size_t k = 0; k < parts.size(); ++k)
      kernels.push_back(k < facts.size() ? kernel_of(program(), facts[k], k)
                                         : std::min(k, program().kernels.size() - 1));
    for (size_t k = 0; k < parts.size(); ++k) {
      PartRecord& part = recorder_->part(parts[k]);
      part.kernel = static_cast<int>(kernels[k]);
      part.line = line_of_span(profiled_, program().kernels[kernels[k]].span);
      if (k >= facts.size()) continue;
      if (facts[k].gpu) part.gpu = gpu_use_of(*facts[k].gpu);
      if (profiled_.target.place == runtime::Place::cpu) part.cpu = cpu_use_of(profiled_, facts[k]);
      if (profiled_.target.place == runtime::Place::cpu) part.choices = scalar_choices_of(profiled_, facts[k]);
      if (facts[k].function.empty()) continue;
      part.instructions = targets::cuda::instructions_of(source(), facts[k].function);
      recorder_->set_function(parts[k], facts[k].function);
    }
    auto values = TRY(runtime::bind_arguments(program(), arguments, span)).values;
    recorder_->later(
        [kernel = kernel_, recorder = recorder_, &profiled = profiled_, parts, kernels, values = std::move(values)] {
          const auto choices = choices_of(kernel->program(), profiled);
          for (size_t k = 0; k < parts.size(); ++k) {
            const auto launches = static_cast<double>(std::count(kernels.begin(), kernels.end(), kernels[k]));
            recorder->part(parts[k]).work = work_of_launch(kernel->program().kernels[kernels[k]], values, launches);
            if (profiled.target.place != runtime::Place::cpu) recorder->part(parts[k]).choices = choices[kernels[k]];
          }
        });
    return {};
  }

  std::shared_ptr<runtime::CompiledKernel> kernel_;
  const Profiled& profiled_;
  const bool has_values_;
  PartRecorder* recorder_ = nullptr;                           // that `parts_` are of
  std::map<std::vector<int64_t>, std::vector<size_t>> parts_;  // by scalars and symbols
  std::vector<size_t>* now_ = nullptr;                         // of the launch under way, by kernel
};

class ObservedBackend final : public runtime::KernelBackend {
 public:
  ObservedBackend(std::unique_ptr<runtime::KernelBackend> backend, const Profiled& profiled)
      : backend_(std::move(backend)), profiled_(profiled) {}

  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override {
    auto kernel = TRY(backend_->compile(program, warnings));
    return std::shared_ptr<runtime::CompiledKernel>(std::make_shared<ObservedKernel>(std::move(kernel), profiled_));
  }

 private:
  std::unique_ptr<runtime::KernelBackend> backend_;
  const Profiled& profiled_;
};

}  // namespace

std::unique_ptr<runtime::KernelBackend> observe(std::unique_ptr<runtime::KernelBackend> backend,
                                                const Profiled& profiled) {
  return std::make_unique<ObservedBackend>(std::move(backend), profiled);
}

}  // namespace tilepilot::eval
