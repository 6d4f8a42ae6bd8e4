#include "eval/worker/judge/call_channel.h"

#include "eval/graph/argument_json.h"
#include "eval/graph/input_numbers.h"
#include "eval/torch/gpu.h"
#include "eval/worker/truth/compare/output_structure.h"

namespace tilepilot::eval {

using nlohmann::json;

bool CallChannel::prepare(const Batch& batch, const std::vector<Base>& bases, int numbers) {
  std::vector<at::Tensor> tensors;
  json names = json::array();
  for (const Base& base : bases) {
    names.push_back(base.number);
    tensors.insert(tensors.end(), base.tensors.begin(), base.tensors.end());
  }
  json request = {{"op", "prepare"},
                  {"arguments", to_json(tensor_numbers(inputs_with_other_numbers(side_.reference(), numbers)))},
                  {"bases", names},
                  {"tensors_of_a_base", bases.empty() ? 0 : bases[0].tensors.size()},
                  {"batch", to_json(batch)}};
  if (!side_.device().is_cpu() && bytes_of(tensors) > kLargeOnGpu) release_unused_gpu_memory();
  return link_.ask(request, tensors).has_value();
}

std::optional<RanBatch> CallChannel::go() {
  static const json request = {{"op", "go"}};
  RanBatch ran;
  const double busy = link_.usage().cpu_seconds, queued = link_.queued_seconds(), begin = monotonic_seconds();
  auto answer = link_.ask(request);
  ran.judged = monotonic_seconds() - begin;
  if (!answer) return std::nullopt;
  busy_ = link_.usage().cpu_seconds;
  ran.busy = busy_ - busy;
  ran.queued = link_.queued_seconds() - queued;
  ran.claimed = answer->body.at("seconds");
  ran.kernel_seconds = answer->body.at("kernel_seconds");
  answer->body.at("trials").get_to(ran.trials);
  ran.profile = answer->body.value("profile", json());
  return ran;
}

std::optional<double> CallChannel::round_trip() {
  auto ran = go();
  return ran ? std::optional(ran->judged) : std::nullopt;
}

double CallChannel::busy_since() const { return link_.usage().cpu_seconds - busy_; }

bool CallChannel::rest() {
  static const json request = {{"op", "rest"}};
  return link_.ask(request).has_value();
}

std::optional<Message> CallChannel::fetch(size_t call, const std::vector<size_t>& return_inputs) {
  return fetch(call, return_inputs, nullptr);
}

std::optional<Message> CallChannel::fetch(size_t call, const std::vector<size_t>& return_inputs,
                                          const std::vector<std::string>* return_state) {
  return link_.ask({{"op", "fetch"},
                    {"call", call},
                    {"return_inputs", return_inputs},
                    {"return_state", return_state ? *return_state : std::vector<std::string>()},
                    {"look_at_weights", return_state != nullptr}});
}

std::vector<CallChannel::Base> fresh_bases(const PlannedBatch& planned, const CallSource& source) {
  std::vector<CallChannel::Base> bases;
  for (const int64_t base : planned.fresh) bases.push_back({base, tensors_of(source.leaves(base))});
  return bases;
}

}  // namespace tilepilot::eval
