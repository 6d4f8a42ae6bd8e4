#include "eval/worker/candidate/run_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/script.h"
#include "eval/worker/candidate/launches/trial_watch.h"
#include "eval/worker/value_json.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::Value;

Result<std::shared_ptr<runtime::CompiledKernel>> CompileClock::compile(const ir::Program& program,
                                                                       DiagnosticList& warnings) {
  {
    const std::lock_guard lock(mutex_);
    if (compiling_++ == 0) since_ = Clock::now();
  }
  auto kernel = backend_->compile(program, warnings);
  const std::lock_guard lock(mutex_);
  if (kernel.ok()) ++kernels_;
  if (--compiling_ == 0) seconds_ += std::chrono::duration<double>(Clock::now() - since_).count();
  return kernel;
}

double CompileClock::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

int CompileClock::kernels() const {
  const std::lock_guard lock(mutex_);
  return kernels_;
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

void add_tuning_cache(stage::ModuleObject& module, const runtime::TuningCache& cache) {
  static constexpr stage::Signature kFind{"find_tuning", {"key"}, 1}, kKeep{"keep_tuning", {"key", "record"}, 2};
  module.function("find_tuning", [cache](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    stage::Arguments read = TRY(stage::Arguments::read(args, kFind));
    const auto text = cache.find(TRY(read.text(0)));
    if (!text) return Value();
    // What another version has written, or half of a disk's worth of it, counts as nothing.
    const auto record = nlohmann::json::parse(*text, nullptr, false);
    if (record.is_discarded()) return Value();
    return value_of(interpreter, record, args.span);
  });
  module.function(
      "keep_tuning", [cache, warned = false](Interpreter& interpreter, CallArgs& args) mutable -> Result<Value> {
        stage::Arguments read = TRY(stage::Arguments::read(args, kKeep));
        const nlohmann::json record = TRY(json_of(interpreter, *read[1]));
        const std::string key = TRY(read.text(0));
        const Status kept = cache.keep(key, record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        if (kept.ok() || std::exchange(warned, true)) return Value();
        Diagnostic warning{DiagnosticKind::cache_degraded, {}, "what tuning measures cannot be kept for later runs"};
        warning.note({}, kept.error().message);
        interpreter.diagnostics().add(std::move(warning));
        return Value();
      });
}

// What a process knows that ends before its search does.
struct LastWords {
  std::vector<std::string> command;  // that begins anew
  runtime::TuningCache cache;
  std::string key, record, message;

  // Without its record the next run would know nothing, and end alike.
  [[noreturn]] void leave() const {
    const bool kept = cache.keep(key, record).ok() && cache.find(key) == record;
    fmt::print(stderr, "{}{}\n", message, kept ? "; the run begins anew without it" : "");
    if (kept) begin_anew(command);
    std::fflush(nullptr);
    std::_Exit(1);
  }
};

// From a key, a record and a message at these positions; nullopt if there is no key or nothing begins anew.
Result<std::optional<LastWords>> last_words(Interpreter& interpreter, const stage::Arguments& read, size_t first,
                                            const std::vector<std::string>& command,
                                            const runtime::TuningCache& cache) {
  if (command.empty() || read[first]->is_none()) return std::optional<LastWords>();
  const nlohmann::json record = TRY(json_of(interpreter, *read[first + 1]));
  return std::optional(LastWords{command, cache, TRY(read.text(first)),
                                 record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                 TRY(read.text(first + 2))});
}

void add_trials(stage::ModuleObject& module, const RunLimits& limits, const runtime::TuningCache& cache) {
  static constexpr stage::Signature kBegin{"begin_trial", {"seconds", "key", "record", "message"}, 4},
      kEnd{"end_trial", {}, 0}, kAnew{"begin_anew", {"key", "record", "message"}, 3};
  const auto watch = std::make_shared<TrialWatch>();
  const std::vector<std::string> command = limits.begin_anew;
  module.function("begin_trial", [=](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    stage::Arguments read = TRY(stage::Arguments::read(args, kBegin));
    const double seconds = TRY(read.number(0));
    auto words = TRY(last_words(interpreter, read, 1, command, cache));
    if (words) watch->begin(seconds, [words = *std::move(words)] { words.leave(); });
    return Value();
  });
  module.function("end_trial", [=](Interpreter&, CallArgs& args) -> Result<Value> {
    TRY(stage::Arguments::read(args, kEnd));
    watch->end();
    return Value();
  });
  module.function("begin_anew", [=](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    stage::Arguments read = TRY(stage::Arguments::read(args, kAnew));
    const auto words = TRY(last_words(interpreter, read, 0, command, cache));
    if (words) words->leave();
    return Value();
  });
}

}  // namespace

void add_run_limits(Interpreter& interpreter, const RunLimits& limits, TuningPlace place, const CompileClock& clock) {
  auto module = std::make_shared<stage::ModuleObject>("_tilepilot_limits");
  module->set("stages_only", Value(false));
  module->set("bench_ms", Value(limits.bench_ms));
  module->set("autotune_limit", Value(limits.autotune_limit > 0 ? limits.autotune_limit : place.tries));
  module->set("device", Value(std::move(place.device)));
  module->set("identity", Value(std::move(place.identity)));
  module->set("architecture", Value(std::move(place.architecture)));
  add_tuning_cache(*module, place.cache);
  add_trials(*module, limits, place.cache);
  module->function("compile_seconds",
                   [&clock](Interpreter&, CallArgs&) -> Result<Value> { return Value(clock.seconds()); });
  module->function("announce", announce);
  interpreter.add_module(module->name, module);
}

}  // namespace tilepilot::eval
