#include "eval/worker/run_limits.h"

#include <algorithm>
#include <chrono>

#include "compiler/stage/python/native.h"
#include "compiler/stage/python/script.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::Value;

Result<std::shared_ptr<runtime::CompiledKernel>> CompileClock::compile(const ir::Program& program,
                                                                       DiagnosticList& warnings) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto kernel = backend_->compile(program, warnings);
  if (kernel.ok()) ++kernels_;
  seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
  return kernel;
}

namespace {

// One warning for each place: a benchmark in a loop says it once.
Result<Value> announce(Interpreter& interpreter, CallArgs& args) {
  static constexpr stage::Signature kSignature{"announce", {"message", "hint"}, 1};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  Diagnostic warning{DiagnosticKind::ignored_request,
                     stage::script_position(interpreter, args.span),
                     TRY(read.text(0)),
                     {},
                     TRY(read.text(1))};
  const auto& known = interpreter.diagnostics().items();
  bool said = std::any_of(known.begin(), known.end(), [&](const Diagnostic& each) {
    return each.kind == warning.kind && each.span.file == warning.span.file && each.span.begin == warning.span.begin;
  });
  if (!said) interpreter.diagnostics().add(std::move(warning));
  return Value();
}

}  // namespace

void add_run_limits(Interpreter& interpreter, const RunLimits& limits, const CompileClock& clock) {
  auto module = std::make_shared<stage::ModuleObject>("_tilepilot_limits");
  module->set("stages_only", Value(false));
  module->set("bench_ms", Value(limits.bench_ms));
  module->set("autotune_limit", Value(limits.autotune_limit));
  module->function("compile_seconds",
                   [&clock](Interpreter&, CallArgs&) -> Result<Value> { return Value(clock.seconds()); });
  module->function("announce", announce);
  interpreter.add_module(module->name, module);
}

}  // namespace tilepilot::eval
