// What `torch` has for a script and not for a candidate: the random state, the number of threads, `compile`, and the
// submodules written in Python (eval/host/modules).
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "compiler/stage/python/objects/native.h"
#include "eval/host/autograd.h"
#include "eval/host/edge.h"
#include "eval/host/host_state.h"

namespace tilepilot::embedded {
extern const char tilepilot_einops[];
extern const char tilepilot_numpy[];
extern const char tilepilot_torch_amp[];
extern const char tilepilot_torch_autograd[];
extern const char tilepilot_torch_cuda[];
extern const char tilepilot_torch_distributions[];
extern const char tilepilot_torch_profiler[];
extern const char tilepilot_torch_random[];
extern const char tilepilot_torch_testing[];
extern const char tilepilot_torch_version[];
}  // namespace tilepilot::embedded

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::ModuleObject;
using stage::Name;
using stage::Value;

namespace {

Result<Value> get_threads(HostState&, Interpreter&, CallArgs&) { return Value(at::get_num_threads()); }

Result<Value> set_threads(HostState&, Interpreter&, CallArgs& args) {
  static constexpr stage::Signature kSignature{"set_num_threads", {"number"}, 1};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  const int64_t number = TRY(read.integer(0));
  if (number < 1) return stage::value_error(args.span, "`torch.set_num_threads` takes a positive integer");
  at::set_num_threads(static_cast<int>(number));
  return Value();
}

at::Generator generator_of(HostState& state) { return at::globalContext().defaultGenerator(state.device()); }

Result<Value> get_random_state(HostState& state, Interpreter&, CallArgs& args) {
  return guarded("get_rng_state", args.span, [&] { return state.wrap(generator_of(state).get_state()); });
}

Result<Value> set_random_state(HostState& state, Interpreter&, CallArgs& args) {
  const at::Tensor* saved = args.positional.size() == 1 ? tensor_of(args.positional[0]) : nullptr;
  if (!saved) return stage::type_error(args.span, "`torch.set_rng_state` takes what `torch.get_rng_state` gave");
  TRY(guarded("set_rng_state", args.span, [&] { generator_of(state).set_state(saved->cpu()); }));
  return Value();
}

Result<Value> initial_seed(HostState& state, Interpreter&, CallArgs&) {
  return Value(static_cast<int64_t>(generator_of(state).current_seed()));
}

// torch.compile(f), or a decorator if there is no f: what it decorates stays as it is.
Result<Value> compile(HostState&, Interpreter&, CallArgs& args) {
  const Value* model = args.positional.empty() ? args.keyword("model") : &args.positional[0];
  if (model && !model->is_none()) return *model;
  return stage::make_builtin("compile", [](Interpreter&, CallArgs& given) -> Result<Value> {
    static constexpr stage::Signature kSignature{"compile", {"model"}, 1};
    return *TRY(stage::Arguments::read(given, kSignature))[0];
  });
}

Result<Value> from_numpy(HostState&, Interpreter& interpreter, CallArgs& args) {
  static constexpr stage::Signature kSignature{"from_numpy", {"array"}, 1};
  Value tensor = TRY(array_tensor(interpreter, *TRY(stage::Arguments::read(args, kSignature))[0]));
  if (tensor.is_none()) return stage::type_error(args.span, "`torch.from_numpy` takes an array of `numpy`");
  return tensor;
}

struct ScriptRow {
  const char* name;
  Result<Value> (*body)(HostState&, Interpreter&, CallArgs&);
};

constexpr ScriptRow kScriptRows[] = {
    {"get_num_threads", get_threads},    {"set_num_threads", set_threads}, {"get_rng_state", get_random_state},
    {"set_rng_state", set_random_state}, {"initial_seed", initial_seed},   {"compile", compile},
    {"from_numpy", from_numpy},
};

}  // namespace

std::vector<stage::EmbeddedModule> torch_modules() {
  return {
      {"einops", embedded::tilepilot_einops},
      {"numpy", embedded::tilepilot_numpy},
      {"torch.amp", embedded::tilepilot_torch_amp},
      {"torch.autograd", embedded::tilepilot_torch_autograd},
      {"torch.cuda", embedded::tilepilot_torch_cuda},
      {"torch.distributions", embedded::tilepilot_torch_distributions},
      {"torch.distributions.normal", "from torch.distributions import Normal\n"},
      {"torch.distributions.uniform", "from torch.distributions import Uniform\n"},
      {"torch.profiler", embedded::tilepilot_torch_profiler},
      {"torch.random", embedded::tilepilot_torch_random},
      {"torch.testing", embedded::tilepilot_torch_testing},
      {"torch.version", embedded::tilepilot_torch_version},
  };
}

void add_script_functions(HostState& state, ModuleObject& torch) {
  for (const ScriptRow& row : kScriptRows) {
    torch.function(row.name,
                   [&state, body = row.body](Interpreter& run, CallArgs& args) { return body(state, run, args); });
  }
  add_gradient_functions(state, torch);
  torch.function("__getattribute__", [&torch](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    static constexpr stage::Signature kSignature{"__getattribute__", {"name"}, 1};
    stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
    return torch.get_attribute(interpreter, Name(TRY(read.text(0))), args.span);
  });
}

}  // namespace tilepilot::eval
