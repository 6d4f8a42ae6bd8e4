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

// What holds the elements that LibTorch has no type for, or only one of two at once.
constexpr std::pair<ir::DType, at::ScalarType> kHolders[] = {{ir::kInt4, at::kChar},
                                                             {ir::kUInt4, at::kByte},
                                                             {ir::kFloat4E2M1, at::kFloat4_e2m1fn_x2},
                                                             {ir::kTensorFloat32, at::kFloat}};

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
    if (tensor->scalar_type() == at::kFloat4_e2m1fn_x2) type = ir::kUInt8;
    if (!type) return std::nullopt;
    return runtime::TensorView{tensor->data_ptr(), *type, tensor->sizes().vec(), tensor->strides().vec()};
  }

  Result<Value> allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) override {
    for (auto& [scalar, element] : kElementTypes) {
      if (element == type) return empty(scalar, shape, span);
    }
    for (auto& [element, scalar] : kHolders) {
      if (element != type) continue;
      std::vector<int64_t> held = shape;
      if (type.is_nibble()) held.back() /= 2;
      return empty(scalar, held, span);
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

  Result<Value> empty(at::ScalarType type, const std::vector<int64_t>& shape, Span span) {
    at::Tensor tensor = TRY(guarded("allocation", span, [&] {
      const at::Tensor made = at::empty(shape, at::dtype(type).device(state_.device()));
      const CallMemory* memory = state_.call_memory();
      return memory ? memory->for_kernel(made) : made;
    }));
    return state_.wrap(std::move(tensor));
  }

  runtime::ParallelFor parallel_for_ = libtorch_threads();
};

}  // namespace

std::unique_ptr<stage::TensorHost> make_tensor_host(HostState& state) { return std::make_unique<HostTensors>(state); }

}  // namespace tilepilot::eval
