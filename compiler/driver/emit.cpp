#include "compiler/driver/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/print.h"
#include "compiler/targets/cpu/codegen.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/explain.h"

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

using targets::cuda::Architecture;

std::optional<Architecture> architecture_of(std::string_view target) {
  if (target == "cuda:sm_80") return Architecture::sm_80;
  if (target == "cuda:sm_90a") return Architecture::sm_90a;
  return std::nullopt;
}

constexpr std::string_view kForGpus[] = {"layouts", "ir:planned", "ir:lowered"};

Result<std::string> emit_for_gpu(const ir::Program& program, std::string_view what, Architecture architecture,
                                 DiagnosticList& warnings) {
  if (what == "source") {
    targets::cuda::GeneratedCode code = TRY(targets::cuda::generate(program, architecture));
    for (Diagnostic& warning : code.warnings) warnings.add(std::move(warning));
    return std::move(code.source);
  }
  if (what == "layouts") return targets::cuda::layouts_text(program, architecture);
  return targets::cuda::ir_text(program, architecture, what == "ir:lowered");
}

Result<std::string> emit_program(const ir::Program& program, std::string_view what, std::string_view target,
                                 DiagnosticList& warnings) {
  if (what == "ir") return ir::to_text(program);
  if (const auto architecture = architecture_of(target)) return emit_for_gpu(program, what, *architecture, warnings);
  if (std::find(std::begin(kForGpus), std::end(kForGpus), what) != std::end(kForGpus))
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` is about targets with a GPU", what),
                      "choose one: `--target cuda:sm_90a`");
  if (what == "source") return generated_source(program);
  return ir_after(program, what.substr(kAfterPass.size()));
}

Emission emit_programs(SourceMap& sources, const CompileRequest& request, std::string_view what) {
  CompileResult compiled = compile(sources, request);
  Emission emission{std::nullopt, std::move(compiled.diagnostics)};
  if (emission.diagnostics.has_errors()) return emission;
  std::string text;
  for (const ir::Program& program : compiled.programs) {
    auto part = emit_program(program, what, request.target, emission.diagnostics);
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
