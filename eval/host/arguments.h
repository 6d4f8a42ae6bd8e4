// Functions of PyTorch that are not plain ATen operators: rows of "signature in ATen's schema language" and either a
// body or the ATen operator it stands for. The matched arguments arrive typed and are read by name.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/host/signature.h"

namespace tilepilot::eval {

// The arguments of one call, in the order of the signature's parameters.
class Arguments {
 public:
  Arguments(const Signature& signature, const torch::jit::Stack& values) : signature_(signature), values_(values) {}

  const c10::IValue& operator[](std::string_view name) const;
  bool given(std::string_view name) const { return !(*this)[name].isNone(); }
  at::Tensor tensor(std::string_view name) const { return (*this)[name].toTensor(); }
  std::optional<at::Tensor> maybe_tensor(std::string_view name) const;
  int64_t integer(std::string_view name) const { return (*this)[name].toInt(); }
  std::optional<int64_t> maybe_integer(std::string_view name) const;
  double real(std::string_view name) const { return (*this)[name].toScalar().toDouble(); }
  std::optional<double> maybe_real(std::string_view name) const;
  at::Scalar scalar(std::string_view name) const { return (*this)[name].toScalar(); }
  bool flag(std::string_view name) const { return (*this)[name].toBool(); }
  std::optional<bool> maybe_flag(std::string_view name) const;
  std::string text(std::string_view name) const { return (*this)[name].toStringRef(); }
  std::vector<int64_t> integers(std::string_view name) const;  // empty for None
  std::vector<double> reals(std::string_view name) const;
  std::vector<at::Tensor> tensors(std::string_view name) const { return (*this)[name].toTensorVector(); }
  std::optional<at::ScalarType> dtype(std::string_view name) const;
  std::optional<at::MemoryFormat> memory_format(std::string_view name) const;
  std::optional<at::Generator> generator(std::string_view name) const;
  // The `reduction` of a loss, with its two legacy parameters where the signature has them.
  int64_t reduction() const;
  std::string reduction_text() const;

 private:
  const Signature& signature_;
  const torch::jit::Stack& values_;
};

using FunctionBody = c10::IValue (*)(const Arguments&);

struct FunctionRow {
  const char* signature;       // "elu(Tensor input, float alpha=1.0, bool inplace=False)"
  FunctionBody body;           // null: the ATen operator below
  const char* aten = nullptr;  // "elu"; gets the parameters in order, except inplace (which picks "elu_")
};

using FunctionTable = std::span<const FunctionRow>;

FunctionTable tensor_method_table();
FunctionTable torch_function_table();
FunctionTable functional_table();       // torch.nn.functional
FunctionTable functional_loss_table();  // its losses
FunctionTable initializer_table();      // torch.nn.init

}  // namespace tilepilot::eval
