#include "eval/worker/call_batch.h"

#include <algorithm>

#include "eval/torch/span.h"

namespace tilepilot::eval {

using nlohmann::json;

bool keeps(const Batch& batch, size_t call) {
  return std::find(batch.kept.begin(), batch.kept.end(), static_cast<int64_t>(call)) != batch.kept.end();
}

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (auto& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

json to_json(const Batch& batch) {
  json calls = json::array();
  for (const Call& call : batch.calls)
    calls.push_back(json::array({call.base, call.change.key, call.last.key, call.last.from, call.last.to}));
  return {{"calls", calls},           {"lead", batch.lead},           {"seed", batch.seed},
          {"memory", batch.memory},   {"ghost", batch.ghost},         {"looks", batch.looks},
          {"fills", batch.fills},     {"waits", batch.waits},         {"changes", batch.changes},
          {"kept", batch.kept},       {"backwards", batch.backwards}, {"graph", batch.graph},
          {"profile", batch.profile}, {"records", batch.records},     {"by_device", batch.by_device}};
}

Batch batch_from_json(const json& node) {
  Batch batch;
  for (auto& each : node.at("calls"))
    batch.calls.push_back({each.at(0).get<int64_t>(), {each.at(1), 0, 1}, {each.at(2), each.at(3), each.at(4)}});
  node.at("lead").get_to(batch.lead);
  node.at("seed").get_to(batch.seed);
  node.at("memory").get_to(batch.memory);
  node.at("ghost").get_to(batch.ghost);
  node.at("looks").get_to(batch.looks);
  node.at("fills").get_to(batch.fills);
  node.at("backwards").get_to(batch.backwards);
  node.at("waits").get_to(batch.waits);
  node.at("kept").get_to(batch.kept);
  node.at("graph").get_to(batch.graph);
  node.at("profile").get_to(batch.profile);
  node.at("records").get_to(batch.records);
  node.at("by_device").get_to(batch.by_device);
  batch.changes = node.at("changes").get<std::vector<ChangeRule>>();
  return batch;
}

std::vector<at::Tensor> inputs_of(const Batch& batch, const Call& call, const std::vector<at::Tensor>& base,
                                  c10::Device device) {
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < base.size(); ++i) {
    inputs.push_back(copy_of(base[i], device));
    if (i >= batch.changes.size()) continue;
    for (InputChange change : {call.change, call.last}) {
      if (change.key == 0) continue;
      change.key += i;  // each input has changes of its own
      change_elements(inputs.back(), change, batch.changes[i]);
    }
  }
  return inputs;
}

}  // namespace tilepilot::eval
