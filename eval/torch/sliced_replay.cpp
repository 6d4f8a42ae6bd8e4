#include "eval/torch/sliced_replay.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {

using c10::IValue;

Result<SlicedReplay> SlicedReplay::prepare(const Graph& graph, const ExactRun& run, c10::Device device) {
  SlicedReplay sliced(*run.slices, run.parts, device);
  sliced.inputs_ = graph.inputs;
  for_each_value(graph.outputs, [&](int id) {
    if (graph.values[static_cast<size_t>(id)].is_tensor) sliced.outputs_.push_back(id);
  });
  for (int64_t parts : {run.parts, run.slices->extent % run.parts, sliced.shifted_slice().parts}) {
    const bool known = std::any_of(sliced.lengths_.begin(), sliced.lengths_.end(),
                                   [&](const Length& each) { return each.parts == parts; });
    if (parts == 0 || known) continue;
    auto part = std::make_unique<const Graph>(slice_graph(graph, sliced.slices_, parts));
    auto replay = std::make_unique<const Replay>(TRY(Replay::prepare(*part, Precision::exact, device)));
    sliced.lengths_.push_back({parts, std::move(part), std::move(replay)});
  }
  return sliced;
}

IValue SlicedReplay::slice_of(const IValue& value, size_t id, const Range& range) const {
  auto& cut = slices_.cuts[id];
  if (!cut || !value.isTensor()) return value;
  return value.toTensor().narrow(cut->axis, range.begin * cut->unit, range.parts * cut->unit);
}

at::Tensor SlicedReplay::part_of(const at::Tensor& output, size_t index, const Range& range) const {
  return slice_of(output, static_cast<size_t>(outputs_[index]), range).toTensor();
}

std::vector<SlicedReplay::Range> SlicedReplay::ranges() const {
  std::vector<Range> ranges;
  for (int64_t begin = 0; begin < slices_.extent; begin += parts_)
    ranges.push_back({begin, std::min(parts_, slices_.extent - begin), begin / parts_});
  return ranges;
}

SlicedReplay::Range SlicedReplay::shifted_slice() const {
  const int64_t parts = parts_ == 1 ? 2 : parts_;
  return {std::min(parts_ / 2, slices_.extent - parts), parts, 0};
}

// Before the slices: what is made and freed between lasting tensors leaves gaps.
std::vector<at::Tensor> SlicedReplay::whole_outputs() const {
  std::vector<at::Tensor> outputs;
  for (int id : outputs_) {
    auto& value = lengths_.front().graph->values[static_cast<size_t>(id)];
    auto& cut = *slices_.cuts[static_cast<size_t>(id)];
    auto sizes = value.shape;
    sizes[static_cast<size_t>(cut.axis)] = slices_.extent * cut.unit;
    const auto type = parse_element_type(value.dtype).value_or(at::kFloat);
    outputs.push_back(at::empty(sizes, at::dtype(c10::isFloatingType(type) ? at::kDouble : type).device(device_)));
  }
  return outputs;
}

// In float64, where every slice has the whole; cut inputs are left out.
std::vector<IValue> SlicedReplay::whole_leaves(const Call& call) const {
  std::vector<IValue> leaves;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    auto& input = call.inputs[i];
    const bool widens = input.isTensor() && !is_cut(inputs_[i]);
    leaves.push_back(widens ? IValue(call.hooks.widen(input.toTensor(), i, 0)) : IValue());
  }
  return leaves;
}

Result<std::vector<at::Tensor>> SlicedReplay::run_slice(const Range& range, const Call& call,
                                                        std::vector<IValue> leaves) const {
  for (size_t i = 0; i < leaves.size(); ++i) {
    auto& input = call.inputs[i];
    if (!input.isTensor()) leaves[i] = input;
    if (!input.isTensor() || !is_cut(inputs_[i])) continue;
    const at::Tensor part = slice_of(input, static_cast<size_t>(inputs_[i]), range).toTensor();
    leaves[i] = call.hooks.widen(part, i, range.slice);
  }
  State parts = call.state;
  for (size_t id = 0; id < parts.size(); ++id) {
    if (parts[id].defined()) parts[id] = slice_of(parts[id], id, range).toTensor();
  }
  auto length =
      std::find_if(lengths_.begin(), lengths_.end(), [&](const Length& each) { return each.parts == range.parts; });
  auto made = TRY(length->replay->run(
      leaves, parts, call.hooks.after_node ? call.hooks.after_node(range.slice) : Replay::AfterNode()));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    auto& expected = length->graph->values[static_cast<size_t>(outputs_[i])].shape;
    if (i < made.size() && made[i].sizes() == at::IntArrayRef(expected)) continue;
    return make_error(DiagnosticKind::tensor_operation_failed, {}, "a slice's output has another shape than planned");
  }
  return made;
}

Result<std::vector<at::Tensor>> SlicedReplay::run_slice(const Range& range, const Call& call) const {
  at::NoGradGuard no_grad;
  return run_slice(range, call, whole_leaves(call));
}

Result<std::vector<at::Tensor>> SlicedReplay::run(const Call& call) const {
  at::NoGradGuard no_grad;
  const auto leaves = whole_leaves(call);
  auto outputs = whole_outputs();
  for (auto& range : ranges()) {
    const auto made = TRY(run_slice(range, call, leaves));
    for (size_t i = 0; i < outputs.size(); ++i) {
      // Rarely an operator gives another type than in the export.
      if (made[i].scalar_type() != outputs[i].scalar_type() && range.slice == 0)
        outputs[i] = at::empty(outputs[i].sizes(), made[i].options());
      part_of(outputs[i], i, range).copy_(made[i]);
    }
  }
  return outputs;
}

}  // namespace tilepilot::eval
