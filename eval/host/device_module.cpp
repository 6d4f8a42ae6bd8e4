#include "eval/host/device_module.h"

#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "compiler/stage/python/objects/native.h"
#include "eval/host/device_times.h"
#include "eval/host/edge.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

using stage::CallArgs;
using stage::Interpreter;
using stage::Value;

// A mark in the GPU's work, with a time.
struct GpuEvent final : stage::TypedObject<GpuEvent> {
  static constexpr stage::Type kType{"event"};
  c10::Event event{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
};

GpuEvent* event_of(const CallArgs& args, size_t position) {
  return position < args.positional.size() ? args.positional[position].get_if<GpuEvent>() : nullptr;
}

Error no_event(Span span) { return stage::type_error(span, "an event of `torch.cuda` is wanted"); }

Result<Value> synchronize_all(Interpreter&, CallArgs& args) {
  TRY(guarded("torch.cuda.synchronize", args.span, [] { synchronize_gpu(); }));
  return Value();
}

Result<Value> stream_handle(Interpreter&, CallArgs& args) {
  return guarded("torch.cuda.current_stream", args.span,
                 [] { return Value(static_cast<int64_t>(reinterpret_cast<intptr_t>(current_stream()))); });
}

Result<Value> new_event(Interpreter&, CallArgs&) { return Value(std::make_shared<GpuEvent>()); }

Result<Value> record_event(Interpreter&, CallArgs& args) {
  GpuEvent* event = event_of(args, 0);
  if (event == nullptr) return no_event(args.span);
  TRY(guarded("record", args.span, [&] {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    event->event.record(guard.getStream(guard.getDevice()));
  }));
  return Value();
}

Result<Value> wait_for_event(Interpreter&, CallArgs& args) {
  GpuEvent* event = event_of(args, 0);
  if (event == nullptr) return no_event(args.span);
  TRY(guarded("synchronize", args.span, [&] { event->event.synchronize(); }));
  return Value();
}

Result<Value> event_is_done(Interpreter&, CallArgs& args) {
  GpuEvent* event = event_of(args, 0);
  if (event == nullptr) return no_event(args.span);
  return guarded("query", args.span, [&] { return Value(event->event.query()); });
}

Result<Value> elapsed_between(Interpreter&, CallArgs& args) {
  GpuEvent *first = event_of(args, 0), *second = event_of(args, 1);
  if (first == nullptr || second == nullptr) return no_event(args.span);
  return guarded("elapsed_time", args.span, [&] { return Value(first->event.elapsedTime(second->event)); });
}

// What the GPU did while a function ran: pairs of a kernel's name and its milliseconds, in the order of their
// beginning.
Result<Value> kernel_times(Interpreter& interpreter, CallArgs& args) {
  static constexpr stage::Signature kSignature{"kernel_times", {"function"}, 1};
  const Value function = *TRY(stage::Arguments::read(args, kSignature))[0];
  const auto work = [&]() -> Status {
    TRY(interpreter.call(function, {{}, {}, args.span}));
    return guarded("torch.cuda.synchronize", args.span, [] { synchronize_gpu(); });
  };
  std::vector<Value> times;
  for (const DeviceTime& time : TRY(device_times(work)))
    times.push_back(stage::make_tuple({Value(time.name), Value(time.seconds * 1e3)}));
  return stage::make_list(std::move(times));
}

}  // namespace

void add_device_module(HostState& state, Interpreter& interpreter) {
  auto module = std::make_shared<stage::ModuleObject>("_tilepilot_device");
  const runtime::cuda::Device* gpu = state.gpu();
  module->set("is_gpu", Value(gpu != nullptr));
  module->set("torch_device", Value(gpu != nullptr ? "cuda" : "cpu"));
  // Without one, what programs are written for.
  const int capability = gpu != nullptr ? gpu->capability() : 90;
  module->set("name", Value(gpu != nullptr ? gpu->name() : "TilePilot CPU"));
  module->set("major", Value(int64_t{capability / 10}));
  module->set("minor", Value(int64_t{capability % 10}));
  module->set("multiprocessors", Value(int64_t{gpu != nullptr ? gpu->multiprocessors() : at::get_num_threads()}));
  if (gpu != nullptr) {
    module->function("synchronize", synchronize_all);
    module->function("stream", stream_handle);
    module->function("event", new_event);
    module->function("record", record_event);
    module->function("wait", wait_for_event);
    module->function("is_done", event_is_done);
    module->function("elapsed", elapsed_between);
    module->function("kernel_times", kernel_times);
  }
  interpreter.add_module(module->name, module);
}

}  // namespace tilepilot::eval
