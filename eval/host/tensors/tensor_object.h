// Tensors as values of the evaluator, and the way in and out for code that works with LibTorch: wrap and unwrap
// tensors, read and write a module's weights by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "compiler/stage/python/objects/objects.h"
#include "eval/host/torch_host.h"

namespace tilepilot::eval {

// A tensor. Only scripts record gradients, but parameters require them everywhere: ATen chooses between algorithms by
// that (matmul folds batches), so results agree with PyTorch's to the bit only if they do.
class TensorObject final : public stage::Object {
 public:
  static constexpr stage::Type kType{"Tensor"};
  static constexpr stage::Type kParameterType{"Parameter"};
  TensorObject(HostState& state, at::Tensor tensor_) : tensor(std::move(tensor_)), state_(state) {}

  const stage::Type& type() const override { return is_parameter ? kParameterType : kType; }
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  Status set_attribute(stage::Interpreter&, stage::Name name, stage::Value value, Span span) override;
  Result<stage::Value> call_method(stage::Interpreter&, stage::Name name, stage::CallArgs args,
                                   Span name_span) override;
  Result<stage::Value> get_item(stage::Interpreter&, const stage::Value& index, Span span) override;
  Status set_item(stage::Interpreter&, const stage::Value& index, stage::Value value, Span span) override;
  Result<int64_t> length(stage::Interpreter&, Span span) override;
  Result<std::unique_ptr<stage::Iterator>> iterate(stage::Interpreter&, Span span) override;
  Result<bool> contains(stage::Interpreter&, const stage::Value& item, Span span) override;
  Result<bool> truth(stage::Interpreter&, Span span) override;
  Result<std::string> repr(stage::Interpreter&) override;
  Result<std::optional<stage::Value>> unary(stage::Interpreter&, stage::UnaryOp op, Span span) override;
  Result<std::optional<stage::Value>> binary(stage::Interpreter&, stage::BinaryOp op, const stage::Value& other,
                                             bool reflected, Span span) override;
  Result<std::optional<stage::Value>> binary_in_place(stage::Interpreter&, stage::BinaryOp op,
                                                      const stage::Value& other, Span span) override;
  Result<std::optional<stage::Value>> compare(stage::Interpreter&, stage::CompareOp op, const stage::Value& other,
                                              Span span) override;

  at::Tensor tensor;
  bool is_parameter = false;

 private:
  HostState& state_;
};

// The tensor behind a value, or null.
TensorObject* tensor_object(const stage::Value& value);
inline const at::Tensor* tensor_of(const stage::Value& value) {
  auto* object = tensor_object(value);
  return object ? &object->tensor : nullptr;
}
stage::Value wrap_tensor(TorchHost& host, at::Tensor tensor);
// The tensor that an array of modules/numpy.py holds, or None.
Result<stage::Value> array_tensor(stage::Interpreter& interpreter, const stage::Value& value);

// A parameter or persistent buffer of an nn.Module instance.
struct NamedTensor {
  std::string name;  // as in state_dict: "net.0.weight"
  at::Tensor tensor;
  bool is_buffer = false;
};
// In state_dict's order; empty if `module` is not an nn.Module instance.
std::vector<NamedTensor> named_tensors(const stage::Value& module);
// Copies values into the parameters and buffers of the same names. Every tensor of the module must be given with its
// shape, and every one given must be there: else `value_error` lists the names.
Status load_tensors(const stage::Value& module, const std::vector<NamedTensor>& values);
// As module.train(training), over all submodules.
void set_training(const stage::Value& module, bool training);
// The floating-point type that new tensors get, as torch.set_default_dtype.
void set_default_dtype(at::ScalarType type);

}  // namespace tilepilot::eval
