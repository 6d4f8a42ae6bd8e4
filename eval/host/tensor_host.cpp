// Tensors as kernels see them: raw memory with shape and strides, allocation, and LibTorch's own threads, so that one
// process has one pool.
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "eval/host/edge.h"
#include "eval/host/host_state.h"
#include "eval/torch/threads.h"

namespace tilepilot::eval {

using stage::Value;

namespace {

constexpr std::pair<at::ScalarType, ir::DType> kElementTypes[] = {{at::kFloat, ir::kFloat32},
                                                                  {at::kDouble, ir::kFloat64},
                                                                  {at::kHalf, ir::kFloat16},
                                                                  {at::kBFloat16, ir::kBFloat16},
                                                                  {at::kChar, ir::kInt8},
                                                                  {at::kShort, ir::kInt16},
                                                                  {at::kInt, ir::kInt32},
                                                                  {at::kLong, ir::kInt64},
                                                                  {at::kByte, ir::kUInt8},
                                                                  {at::kUInt16, ir::kUInt16},
                                                                  {at::kUInt32, ir::kUInt32},
                                                                  {at::kUInt64, ir::kUInt64},
                                                                  {at::kBool, ir::kBool},
                                                                  {at::kFloat8_e4m3fn, ir::kFloat8E4M3},
                                                                  {at::kFloat8_e5m2, ir::kFloat8E5M2},
                                                                  {at::kFloat8_e8m0fnu, ir::kFloat8E8M0}};

std::optional<ir::DType> element_type(at::ScalarType type) {
  for (auto& [scalar, element] : kElementTypes) {
    if (scalar == type) return element;
  }
  return std::nullopt;
}

class HostTensors final : public stage::TensorHost {
 public:
  explicit HostTensors(HostState& state) : state_(state) {}

  std::optional<runtime::TensorView> view(const Value& value) override {
    const at::Tensor* tensor = tensor_of(value);
    if (!tensor || tensor->layout() != at::kStrided) return std::nullopt;
    auto type = element_type(tensor->scalar_type());
    if (!type) return std::nullopt;
    return runtime::TensorView{tensor->data_ptr(), *type, tensor->sizes().vec(), tensor->strides().vec()};
  }

  Result<Value> allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) override {
    for (auto& [scalar, element] : kElementTypes) {
      if (element != type) continue;
      at::ScalarType chosen = scalar;
      at::Tensor tensor =
          TRY(guarded("allocation", span, [&] { return at::empty(shape, at::dtype(chosen).device(state_.device())); }));
      return state_.wrap(std::move(tensor));
    }
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("LibTorch has no tensors of `{}`", ir::to_string(type)));
  }

  const runtime::ParallelFor& parallel_for() override { return parallel_for_; }

  std::optional<ir::DType> dtype(const Value& value) override {
    auto* dtype = value.get_if<DtypeObject>();
    return dtype ? element_type(dtype->scalar) : std::nullopt;
  }

 private:
  HostState& state_;
  runtime::ParallelFor parallel_for_ = libtorch_threads();
};

}  // namespace

std::unique_ptr<stage::TensorHost> make_tensor_host(HostState& state) { return std::make_unique<HostTensors>(state); }

}  // namespace tilepilot::eval
