// Tensors for tests: plain arrays that a kernel can run on, filled and read as doubles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/stage/tile/tile.h"

namespace tilepilot::testing {

struct ArrayObject final : stage::TypedObject<ArrayObject> {
  static constexpr stage::Type kType{"array"};
  ArrayObject(ir::DType dtype, std::vector<int64_t> shape);
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  int64_t size() const;
  double at(int64_t index) const;
  void set(int64_t index, double value);
  runtime::TensorView view;

 private:
  std::vector<uint8_t> bytes_;
};
using Array = std::shared_ptr<ArrayObject>;

// Element i is `value(i)`, rounded to the type.
Array make_array(ir::DType dtype, std::vector<int64_t> shape, const std::function<double(int64_t)>& value);
// Reproducible values in [-1, 1).
Array random_array(ir::DType dtype, std::vector<int64_t> shape, uint32_t seed);

class ArrayHost final : public stage::TensorHost {
 public:
  std::optional<runtime::TensorView> view(const stage::Value& value) override;
  Result<stage::Value> allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) override;
  const runtime::ParallelFor& parallel_for() override { return parallel_for_; }
  std::optional<ir::DType> dtype(const stage::Value& value) override;

 private:
  runtime::ParallelFor parallel_for_ = runtime::thread_pool(2);
};

}  // namespace tilepilot::testing
