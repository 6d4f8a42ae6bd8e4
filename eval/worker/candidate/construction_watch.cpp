#include "eval/worker/candidate/construction_watch.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

namespace tilepilot::eval {
namespace {

// LibTorch's callbacks are plain functions: whom they tell, for the thread that registered them.
thread_local WriteObserver* observing = nullptr;

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction&) { return nullptr; }

// New memory or a written argument; not a view.
bool is_written(const c10::FunctionSchema& schema, size_t output) {
  if (output >= schema.returns().size()) return false;
  auto* alias = schema.returns()[output].alias_info();
  return !alias || alias->isWrite();
}

void end_operator(const at::RecordFunction& function, at::ObserverContext*) {
  auto schema = observing && !function.outputs().empty() ? function.operator_schema() : std::nullopt;
  if (!schema) return;
  at::DisableRecordFunctionGuard unobserved;
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    auto& output = function.outputs()[i];
    if (!is_written(*schema, i)) continue;
    if (output.isTensor()) observing->written(function.name(), output.toTensor());
    if (!output.isTensorList()) continue;
    for (const at::Tensor& tensor : output.toTensorVector()) observing->written(function.name(), tensor);
  }
}

bool holds_numbers(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.numel() > 0;
}

}  // namespace

ConstructionWatch::ConstructionWatch(WriteObserver& observer) {
  observing = &observer;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin_operator, end_operator).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
}

ConstructionWatch::~ConstructionWatch() {
  at::removeCallback(handle_);
  observing = nullptr;
}

ConstructionRecord::ConstructionRecord(const std::vector<at::Tensor>& weights) : weights_(weights), index_(weights) {}

void ConstructionRecord::written(const char* op, const at::Tensor& tensor) {
  int64_t step = step_++;
  if (!holds_numbers(tensor)) return;
  last_.insert_or_assign(tensor.storage().unsafeGetStorageImpl(), Moment{step, op, tensor.scalar_type()});
  const std::vector<size_t> found = index_.with_numbers_of(tensor);
  if (found.size() != 1) return;
  births_.push_back(
      {step, op, tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(), found[0], weights_[found[0]]});
}

std::optional<Birth> ConstructionRecord::last_write(const at::Tensor& tensor, size_t weight) const {
  auto found = last_.find(tensor.storage().unsafeGetStorageImpl());
  if (found == last_.end() || found->second.type != tensor.scalar_type()) return std::nullopt;
  return Birth{found->second.step,      found->second.op, tensor.sizes().vec(), tensor.strides().vec(),
               tensor.storage_offset(), weight,           at::Tensor()};
}

ConstructionReplay::ConstructionReplay(const std::vector<Birth>& births, const std::vector<at::Tensor>& values)
    : values_(values) {
  for (auto& birth : births) births_.emplace(birth.step, &birth);
}

void ConstructionReplay::written(const char* op, const at::Tensor& tensor) {
  auto [begin, end] = births_.equal_range(step_++);
  for (auto entry = begin; entry != end; ++entry) {
    auto& birth = *entry->second;
    auto& value = values_[birth.weight];
    if (birth.op != op || !holds_numbers(tensor)) {
      astray_ = true;
      continue;
    }
    try {
      at::NoGradGuard no_grad;
      const at::Tensor written = tensor.as_strided(birth.sizes, birth.strides, birth.offset);
      const auto born = born_in_.find(birth.weight);
      const bool elsewhere = born != born_in_.end() && !born->second.is_alias_of(tensor.storage());
      if (elsewhere && birth.numbers.defined() && !same_numbers(written, birth.numbers)) {
        ++following_;
        continue;
      }
      born_in_.emplace(birth.weight, tensor.storage());
      written.copy_(value.reshape(birth.sizes));
      done_.push_back(birth);
    } catch (const std::exception&) { astray_ = true; }  // the tensor has another form now
  }
}

}  // namespace tilepilot::eval
