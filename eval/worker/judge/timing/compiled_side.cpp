#include "eval/worker/judge/timing/compiled_side.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "compiler/untrusted/printable.h"
#include "eval/worker/tensor_transfer.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

constexpr double kSignOfLife = 1;   // seconds
constexpr size_t kMostSaid = 2000;  // bytes of what went wrong there

// What Python says may be anything.
double number_in(const json& body, const char* name) {
  const auto found = body.find(name);
  return found != body.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_in(const json& body, const char* name) {
  const auto found = body.find(name);
  return found != body.end() && found->is_string() ? found->get<std::string>() : "it does not say why";
}

// All goes by the host's memory, outside the time.
constexpr Direction kSent = Direction::to_candidate, kReturned = Direction::from_candidate;

}  // namespace

CompiledSide::CompiledSide(CompiledLaunch launch, const ReferenceSide& side)
    : mode_(std::move(launch.mode)), wire_(std::move(launch.socket)), process_(launch.process), side_(side) {}

void CompiledSide::give_up(const std::string& why) {
  trouble_ = fmt::format("`torch.compile` (mode {}) could not be timed: {}", mode_, printable(why, kMostSaid));
}

// It runs in a group of its own, with the compilers that it started.
std::optional<Message> CompiledSide::ask(json request, const std::vector<at::Tensor>* tensors, double limit_s,
                                         const std::function<void()>& meanwhile) {
  if (!works()) return std::nullopt;
  std::vector<int> descriptors;
  std::optional<PackedTensors> packed;
  if (tensors) {
    auto made = pack_tensors(*tensors, {.direction = kSent});
    if (!made.ok()) {
      give_up(made.error().message);
      return std::nullopt;
    }
    packed = *std::move(made);
    request["tensors"] = packed->description;
    descriptors = packed->descriptors();
  }
  std::optional<Message> answer;
  const double deadline = monotonic_seconds() + limit_s;
  if (wire_.send(request, descriptors, limit_s)) {
    while (meanwhile && monotonic_seconds() < deadline && !wire_.await(kSignOfLife)) meanwhile();
    answer = wire_.receive(std::max(deadline - monotonic_seconds(), 1e-3));
  }
  if (!answer) {
    const bool hung = wire_.trouble() == Wire::Trouble::timed_out;
    if (process_ > 1) kill(-process_, SIGKILL);
    give_up(hung ? fmt::format("Python did not answer within {:.0f} s", limit_s) : "Python ended, or did not start");
    return std::nullopt;
  }
  if (answer->body.contains("failure")) {
    give_up(text_in(answer->body, "failure"));
    return std::nullopt;
  }
  return answer;
}

std::vector<at::Tensor> CompiledSide::inputs_of_calls(const PlannedBatch& planned, const CallSource& source) const {
  std::vector<at::Tensor> inputs;
  for (const Call& call : planned.batch.calls)
    for (auto& tensor : inputs_of(planned.batch, call, tensors_of(source.leaves(call.base)), side_.device()))
      inputs.push_back(tensor);
  return inputs;
}

void CompiledSide::get_ready(int weights, const std::vector<at::Tensor>& inputs, const Limits& limits) {
  request_limit_ = limits.request_s;
  if (!std::exchange(compiled_, true)) {
    auto answer = ask({{"op", "compile"}}, &inputs, limits.compile_s, limits.meanwhile);
    if (answer) compile_seconds_ = number_in(answer->body, "seconds");
  }
  load_weights(weights, true);
}

void CompiledSide::load_weights(int set, bool anew) {
  if (set == weights_ && !anew) return;
  json names = json::array();
  std::vector<at::Tensor> values;
  const State weights = side_.weights(set);
  const auto changes = [&](const std::string& name) {
    const auto& state = side_.judged_state();
    return std::any_of(state.begin(), state.end(), [&](auto& each) { return each.first == name; });
  };
  for (auto& parameter : side_.reference().parameters) {
    // Of a set that it has, only what calls change may have become others.
    const bool may_change = parameter.is_buffer || changes(parameter.name);
    if (parameter.value < 0 || (set == weights_ && !may_change)) continue;
    names.push_back(parameter.name);
    values.push_back(weights[static_cast<size_t>(parameter.value)]);
  }
  weights_ = set;
  if (!values.empty()) ask({{"op", "weights"}, {"names", names}}, &values, request_limit_);
}

std::optional<CompiledSide::Ran> CompiledSide::run(const PlannedBatch& planned, const CallSource& source,
                                                   const std::function<void()>& after) {
  const auto& batch = planned.batch;
  const auto inputs = inputs_of_calls(planned, source);
  if (!ask({{"op", "prepare"}, {"calls", batch.calls.size()}, {"lead", batch.lead}, {"seed", batch.seed}}, &inputs,
           request_limit_))
    return std::nullopt;
  const json go = {{"op", "go"}};
  double begin = monotonic_seconds();
  const auto answer = ask(go, nullptr, request_limit_);
  Ran ran{monotonic_seconds() - begin};
  if (!answer) return std::nullopt;
  if (!side_.device().is_cpu()) ran.seconds = number_in(answer->body, "seconds");
  after();
  begin = monotonic_seconds();
  if (!ask(go, nullptr, request_limit_)) return std::nullopt;
  ran.round_trip = monotonic_seconds() - begin;
  return ran;
}

std::optional<std::vector<at::Tensor>> CompiledSide::fetch(size_t call) {
  auto answer = ask({{"op", "fetch"}, {"call", call}}, nullptr, request_limit_);
  if (!answer) return std::nullopt;
  auto tensors = unpack_tensors(answer->body.contains("tensors") ? answer->body["tensors"] : json::array(),
                                answer->descriptors, {.direction = kReturned});
  if (!tensors.ok()) {
    give_up(tensors.error().message);
    return std::nullopt;
  }
  std::vector<at::Tensor> outputs;
  for (auto& tensor : *tensors) outputs.push_back(tensor.to(side_.device()));
  return outputs;
}

void CompiledSide::rest() { ask({{"op", "rest"}}, nullptr, request_limit_); }

}  // namespace tilepilot::eval
