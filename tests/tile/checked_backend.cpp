#include "tests/tile/checked_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/interpret/machine.h"
#include "compiler/passes/pipeline.h"
#include "tests/tile/array_host.h"

namespace tilepilot::testing {
namespace {

// What the interpreter works on: the same contents, elsewhere.
class Twins {
 public:
  explicit Twins(const std::vector<runtime::Argument>& arguments) {
    for (const runtime::Argument& argument : arguments) add(argument);
  }
  const std::vector<interpret::Argument>& values() const { return values_; }

  void expect_equal(const std::vector<runtime::Argument>& arguments) const {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arrays_[i]) continue;
      Array kernels = copy_of(std::get<runtime::TensorView>(arguments[i]));
      for (int64_t at = 0; at < kernels->size(); ++at) {
        double kernel = kernels->at(at), oracle = arrays_[i]->at(at);
        if (same(kernel, oracle, kernels->view.type)) continue;
        ADD_FAILURE() << "parameter " << i << ", element " << at << ": the kernel has " << kernel
                      << ", the interpreter " << oracle;
        return;
      }
    }
  }

 private:
  // Arrays hold elements of 4 bits by bytes.
  static Array copy_of(const runtime::TensorView& view) {
    std::vector<int64_t> shape = view.shape;
    if (view.type.is_nibble()) shape.back() /= 2;
    const ir::DType held = view.type.is_nibble()             ? ir::kUInt8
                           : view.type == ir::kTensorFloat32 ? ir::kFloat32
                                                             : view.type;
    auto array = std::make_shared<ArrayObject>(held, std::move(shape));
    // A tensor without elements may have no memory.
    if (view.data != nullptr)
      std::memcpy(array->view.data, view.data, static_cast<size_t>(array->size() * held.bytes()));
    return array;
  }
  // Sums may be formed in another order.
  static bool same(double a, double b, ir::DType type) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
    if (a == b) return true;
    return type.is_float() && std::fabs(a - b) <= (type.bits >= 32 ? 1e-5 : 1e-2) * (1 + std::fabs(b));
  }

  void add(const runtime::Argument& argument) {
    auto* view = std::get_if<runtime::TensorView>(&argument);
    arrays_.push_back(view ? copy_of(*view) : nullptr);
    if (view) {
      EXPECT_EQ(interpret::contiguous(view->shape), view->strides) << "only tensors without gaps can be compared";
      values_.emplace_back(interpret::View{arrays_.back()->view.data, view->type, view->shape, view->strides});
    } else if (auto* integer = std::get_if<int64_t>(&argument)) {
      values_.emplace_back(*integer);
    } else {
      values_.emplace_back(std::get<double>(argument));
    }
  }

  std::vector<Array> arrays_;  // one a parameter; null: a scalar
  std::vector<interpret::Argument> values_;
};

class CheckedKernel final : public runtime::CompiledKernel {
 public:
  explicit CheckedKernel(std::shared_ptr<runtime::CompiledKernel> kernel) : kernel_(std::move(kernel)) {}

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor& parallel_for,
                Span span) override {
    Twins twins(arguments);
    TRY(kernel_->launch(arguments, parallel_for, span));
    if (auto fault = interpret::run(TRY(passes::explicit_threads(program())), twins.values())) {
      ADD_FAILURE() << interpret::to_string(fault->kind) << ": " << fault->message;
      return {};
    }
    twins.expect_equal(arguments);
    return {};
  }
  std::string take_printed() override { return kernel_->take_printed(); }
  const ir::Program& program() const override { return kernel_->program(); }
  const std::string& source() const override { return kernel_->source(); }

 private:
  std::shared_ptr<runtime::CompiledKernel> kernel_;
};

}  // namespace

Result<std::shared_ptr<runtime::CompiledKernel>> CheckedBackend::compile(const ir::Program& program,
                                                                         DiagnosticList& warnings) {
  return std::shared_ptr<runtime::CompiledKernel>(
      std::make_shared<CheckedKernel>(TRY(kernels_.compile(program, warnings))));
}

}  // namespace tilepilot::testing
