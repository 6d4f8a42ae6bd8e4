#include "eval/worker/profile/profile_call.h"

#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/script.h"
#include "compiler/syntax/parser.h"
#include "eval/host/edge.h"
#include "eval/process/wire.h"
#include "eval/samples.h"
#include "eval/torch/gpu.h"
#include "eval/torch/stopwatch.h"

namespace tilepilot::eval {
namespace {

using stage::Interpreter;
using stage::Name;
using stage::Value;
using WatchedCall = std::function<Status()>;

constexpr int kFewestCalls = 2, kMostCallsWatched = 200;
constexpr size_t kMostTimedCalls = 50;  // that are not watched
constexpr int kCallsByDevice = 10;

// What the interpreter knows a value's method by; nullopt: it has none.
std::optional<Value> method_of(Interpreter& interpreter, const Value& value, std::string_view name, Span span) {
  auto method = interpreter.get_attribute(value, Name(name), span);
  return method.ok() ? std::optional(*method) : std::nullopt;
}

// A kernel on inputs of its own.
Result<WatchedCall> call_of_kernel(Interpreter& interpreter, const Value& kernel, const Value& get_profiler,
                                   Span span) {
  const Value profiler = TRY(interpreter.call(get_profiler, {{}, {}, span, {}}));
  const Value make = TRY(interpreter.get_attribute(profiler, Name("_get_inputs"), span));
  const Value made = TRY(interpreter.call(make, {{}, {}, span, {}}));
  std::vector<Value> inputs = TRY(interpreter.to_vector(made, span));
  return WatchedCall([&interpreter, kernel, inputs = std::move(inputs), span]() -> Status {
    TRY(interpreter.call(kernel, {inputs, {}, span, {}}));
    return {};
  });
}

// What is called again and again.
Result<WatchedCall> watched_call(Interpreter& interpreter, stage::ModuleObject& module, const syntax::ModuleRef& tree,
                                 const syntax::Expr& expression, Span span) {
  Value made = TRY(interpreter.evaluate(tree, expression, module));
  if (made.type_name() == "PrimFunc") {
    auto tilelang = interpreter.find_module("tilelang");
    const Value compile = TRY(tilelang->get_attribute(interpreter, Name("compile"), span));
    made = TRY(interpreter.call(compile, {{made}, {}, span, {}}));
  }
  if (const auto get_profiler = method_of(interpreter, made, "get_profiler", span))
    return call_of_kernel(interpreter, made, *get_profiler, span);
  return WatchedCall([&interpreter, &module, tree, &expression]() -> Status {
    TRY(interpreter.evaluate(tree, expression, module));
    return {};
  });
}

Result<Timing> time_unwatched(const WatchedCall& call, c10::Device device, double seconds) {
  const auto stopwatch = stopwatch_for(device);
  std::vector<double> samples;
  const double begin = monotonic_seconds();
  while (samples.empty() || (monotonic_seconds() - begin < seconds && samples.size() < kMostTimedCalls)) {
    TRY(guarded("", {}, [&] { stopwatch->start(); }));
    TRY(call());
    TRY(guarded("", {}, [&] { stopwatch->stop(); }));
    samples.push_back(stopwatch->read());
  }
  return timing_of(samples);
}

}  // namespace

Result<CalledProfile> profile_call(Interpreter& interpreter, stage::ModuleObject& module, const ProfileRequest& request,
                                   const stage::StatementMarker& place, c10::Device device, Profiled& profiled,
                                   DiagnosticList& diagnostics) {
  auto tree =
      syntax::parse(interpreter.sources(), interpreter.sources().add("--call", request.call + "\n"), diagnostics);
  if (!tree)
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` is no Python expression", request.call));
  const Span span{tree->file, 0, static_cast<uint32_t>(request.call.size())};
  auto* statement = tree->body.size() == 1 ? std::get_if<syntax::ExprStmt>(&tree->body[0].node) : nullptr;
  if (statement == nullptr)
    return make_error(DiagnosticKind::bad_usage, span, "what is profiled is a call of a function in the file",
                      "as in `--call \"matmul(1024, 1024, 1024)\"`");
  auto call = watched_call(interpreter, module, tree, *statement->value, span);
  if (!call.ok()) {
    Diagnostic error = call.error();
    if (error.span.file == tree->file && error.kind == DiagnosticKind::unknown_name)
      error.kind = DiagnosticKind::bad_usage;
    return make_error(std::move(error));
  }
  const bool emulated = profiled.target.place == runtime::Place::emulator;
  PartRecorder recorder(device, /*warms_up*/ !emulated);
  recorder.knows_lines(interpreter.sources(), place);
  profiled.recorder = &recorder;
  CalledProfile result;
  Status status;
  const double begin = monotonic_seconds();
  const int fewest = emulated ? 1 : kFewestCalls, most = emulated ? 1 : kMostCallsWatched;
  for (int calls = 0;
       status.ok() && (calls < fewest || (calls < most && monotonic_seconds() - begin < request.seconds)); ++calls)
    status = recorder.watch(*call);
  profiled.recorder = nullptr;
  TRY(std::move(status));
  result.record = recorder.record();
  if (device.is_cpu()) return result;
  result.call = TRY(time_unwatched(*call, device, request.seconds));
  const auto calls = [&]() -> Status {
    for (int i = 0; i < kCallsByDevice; ++i) TRY((*call)());
    return guarded("", {}, [] { synchronize_gpu(); });
  };
  // Where CUPTI is not allowed to look, events have told.
  if (auto by_device = recorder.record_by_device(kCallsByDevice, calls); by_device.ok())
    result.record = *std::move(by_device);
  return result;
}

}  // namespace tilepilot::eval
