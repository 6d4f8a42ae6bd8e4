#include "compiler/driver/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pipeline.h"
#include "compiler/runtime/cuda/disassemble.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/print.h"
#include "compiler/targets/cpu/codegen.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/cuda/prelude.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::driver {
namespace {

constexpr std::string_view kAfterPass = "ir:";

// The program after `pass`; the last state if the pass changed nothing.
Result<std::string> ir_after(const ir::Program& program, std::string_view pass) {
  std::string text = ir::to_text(program);
  bool reached = false;
  passes::PipelineOptions options{
      .verify_after_each = true, .observer = [&](std::string_view name, const ir::Program& state) {
        if (reached) return;
        // The observer hears only of passes that changed something: stop before a later one.
        const auto& table = passes::pipeline();
        auto position = [&](std::string_view wanted) {
          return std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == wanted; });
        };
        if (name != "stage" && position(name) > position(pass)) {
          reached = true;
          return;
        }
        text = ir::to_text(state);
      }};
  TRY(passes::run_pipeline(program, options));
  return text;
}

Result<std::string> generated_source(const ir::Program& program) {
  ir::Program lowered = TRY(passes::run_pipeline(program, {.verify_after_each = true, .observer = {}}));
  return TRY(targets::cpu::generate(lowered)).source;
}

// What became of loops over elements on a processor, and of what keeps one of them from vectors: a line each.
std::string loops_of(const ir::Kernel& kernel, const std::vector<targets::c::ScalarCode>& scalar,
                     const SourceMap& sources) {
  std::vector<std::string> lines;
  const auto add = [&](const Span& span, const std::string& text) {
    const Position at = sources.position(span.file, span.begin);
    std::string line = fmt::format("{}:{}:{}: {}\n", sources.name(span.file), at.line, at.column, text);
    if (span.valid() && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  };
  for (const targets::c::ScalarCode& code : scalar)
    add(code.span, fmt::format("{}: one element at a time: {}", code.what, code.why));
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto* loop = std::get_if<ir::For>(&stmt->node);
        if (!loop || (loop->kind != ir::LoopKind::parallel && loop->kind != ir::LoopKind::vectorized)) return;
        bool is_scalar = false;
        const auto note = [&](const Span& span) {
          for (const targets::c::ScalarCode& code : scalar)
            is_scalar |= code.span.file == span.file && code.span.begin == span.begin && code.span.end == span.end;
        };
        ir::walk(
            loop->body, [&](const ir::Stmt& part) { note(part->span); },
            [&](const ir::Expr& part) { note(part->span); });
        if (!is_scalar) add(stmt->span, fmt::format("loop over `{}`: vectors", loop->vars.back()->name));
      },
      [](const ir::Expr&) {});
  return fmt::format("{}", fmt::join(lines, ""));
}

Result<std::string> explained_loops(const ir::Program& program, const SourceMap& sources) {
  const ir::Program lowered = TRY(passes::run_pipeline(program, {.verify_after_each = true, .observer = {}}));
  const targets::cpu::GeneratedCode code = TRY(targets::cpu::generate(lowered));
  std::string text;
  for (size_t k = 0; k < lowered.kernels.size(); ++k)
    text += loops_of(lowered.kernels[k], code.scalar_code[k], sources);
  return text;
}

using targets::gpu::Architecture;

std::optional<Architecture> architecture_of(std::string_view target) {
  if (target == "cuda:sm_80") return Architecture::sm_80;
  if (target == "cuda:sm_90a") return Architecture::sm_90a;
  return std::nullopt;
}

constexpr std::string_view kForGpus[] = {"layouts", "explain", "ir:planned", "ir:lowered", "asm"};

// One program's text for a GPU.
class GpuEmitter {
 public:
  GpuEmitter(const SourceMap& sources, const CompileRequest& request, Architecture architecture, Emission& emission)
      : sources_(sources), request_(request), architecture_(architecture), emission_(emission) {}

  Result<std::string> run(const ir::Program& program, std::string_view what) {
    if (what == "source") return TRY(generated(program, nullptr)).source;
    if (what == "asm") return assembly(program);
    if (what == "explain") return targets::cuda::explanation(program, architecture_, sources_);
    if (what != "layouts") return targets::cuda::ir_text(program, architecture_, what == "ir:lowered");
    for (targets::cuda::Drawing& drawing : TRY(targets::cuda::layout_drawings(program, architecture_)))
      emission_.files.emplace_back(drawing.name + ".svg", std::move(drawing.svg));
    return targets::cuda::layouts_text(program, architecture_);
  }

 private:
  const SourceMap& sources_;
  const CompileRequest& request_;
  const Architecture architecture_;
  Emission& emission_;

  Result<targets::cuda::GeneratedCode> generated(const ir::Program& program, const SourceMap* sources) {
    targets::cuda::GeneratedCode code = TRY(targets::cuda::generate(program, architecture_, {sources}));
    for (Diagnostic& warning : code.warnings) emission_.diagnostics.add(std::move(warning));
    return code;
  }

  // PTX, then what the assembler makes of it, if a tool here can show that.
  Result<std::string> assembly(const ir::Program& program) {
    const std::string source = targets::cuda::prelude() + TRY(generated(program, &sources_)).source;
    const std::string name = architecture_ == Architecture::sm_80 ? "sm_80" : "sm_90a";
    runtime::cuda::Nvrtc nvrtc({.folders = request_.cuda_folders});
    std::string text = TRY(nvrtc.ptx(source, name));
    const auto module = TRY(nvrtc.compile(source, name, emission_.diagnostics));
    auto machine_code = runtime::cuda::disassembled(module.cubin, request_.cuda_folders);
    if (machine_code) return text + "\n" + *machine_code;
    if (machine_code.error().kind != DiagnosticKind::not_installed) return std::move(machine_code).take_error();
    return text + fmt::format("\n// {}; {}\n", machine_code.error().message, machine_code.error().hint);
  }
};

Result<std::string> emit_program(const SourceMap& sources, const CompileRequest& request, const ir::Program& program,
                                 std::string_view what, Emission& emission) {
  if (what == "ir") return ir::to_text(program);
  if (const auto architecture = architecture_of(request.target))
    return GpuEmitter(sources, request, *architecture, emission).run(targets::gpu::for_usual_tensors(program), what);
  if (what == "explain") return explained_loops(program, sources);
  if (std::find(std::begin(kForGpus), std::end(kForGpus), what) != std::end(kForGpus))
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` is about targets with a GPU", what),
                      "choose one: `--target cuda:sm_90a`");
  if (what == "source") return generated_source(program);
  return ir_after(program, what.substr(kAfterPass.size()));
}

Emission emit_programs(SourceMap& sources, const CompileRequest& request, std::string_view what) {
  CompileResult compiled = compile(sources, request);
  Emission emission{std::nullopt, {}, std::move(compiled.diagnostics)};
  if (emission.diagnostics.has_errors()) return emission;
  std::string text;
  for (const ir::Program& program : compiled.programs) {
    auto part = emit_program(sources, request, program, what, emission);
    if (!part) {
      emission.diagnostics.add(part.error());
      return emission;
    }
    text += (text.empty() ? "" : "\n") + *part;
  }
  emission.text = std::move(text);
  return emission;
}

Emission emit_syntax(SourceMap& sources, const CompileRequest& request, std::string_view what) {
  Emission emission;
  int32_t file = sources.add(request.name, request.text);
  if (what == "tokens") {
    emission.text = syntax::dump_tokens(sources, file);
    return emission;
  }
  if (auto module = syntax::parse(sources, file, emission.diagnostics))
    emission.text = syntax::dump_tree(*module, {&sources});
  return emission;
}

}  // namespace

std::vector<std::string> emission_names() {
  std::vector<std::string> names = {"tokens", "tree", "ir"};
  for (const passes::Pass& pass : passes::pipeline()) names.push_back(fmt::format("{}{}", kAfterPass, pass.name));
  names.insert(names.end(), std::begin(kForGpus), std::end(kForGpus));
  names.push_back("source");
  return names;
}

Emission emit(SourceMap& sources, const CompileRequest& request, std::string_view what) {
  auto names = emission_names();
  if (std::find(names.begin(), names.end(), what) == names.end()) {
    Emission emission;
    emission.diagnostics.add({DiagnosticKind::bad_usage,
                              {},
                              fmt::format("nothing called `{}` can be emitted", what),
                              {},
                              fmt::format("one of {}", fmt::join(names, ", "))});
    return emission;
  }
  return what == "tokens" || what == "tree" ? emit_syntax(sources, request, what)
                                            : emit_programs(sources, request, what);
}

}  // namespace tilepilot::driver
