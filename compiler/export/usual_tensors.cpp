#include "compiler/export/usual_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/export/signature.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::exporting {
namespace {

bool is_symbolic(const std::vector<ir::Expr>& exprs) {
  return std::any_of(exprs.begin(), exprs.end(), [](const ir::Expr& expr) { return !ir::constant_int(expr); });
}

// The extents and strides of a tensor with symbols, as texts.
struct SymbolicTensor {
  const ir::BufferData& buffer;
  std::vector<std::string> extents, strides;

  static Result<SymbolicTensor> of(const ir::BufferData& buffer, const HostNames& names) {
    SymbolicTensor tensor{buffer, {}, std::vector<std::string>(buffer.rank())};
    for (const ir::Expr& extent : buffer.shape) tensor.extents.push_back(TRY(names.text(extent)));
    std::string step = "INT64_C(1)";
    for (size_t axis = buffer.rank(); axis-- > 0;) {
      tensor.strides[axis] = buffer.strides.empty() ? step : TRY(names.text(buffer.strides[axis]));
      step = fmt::format("{} * {}", tensor.extents[axis], step);
    }
    return tensor;
  }

  // Fewer than 2^31 elements from the first to the last; in floating point, which does not overflow.
  std::string has_few_elements() const {
    std::string last = "0.0", step = "1.0";
    for (size_t axis = buffer.rank(); axis-- > 0;) {
      const std::string stride = buffer.strides.empty() ? step : fmt::format("double({})", strides[axis]);
      last += fmt::format(" + double(exported::most(0, {} - 1)) * {}", extents[axis], stride);
      step = fmt::format("double({}) * {}", extents[axis], step);
    }
    return fmt::format("{} < 2147483647.0", last);
  }

  // Lengths of rows, and how far axes are apart, where only the call says them.
  void add_rows(std::vector<std::string>& conditions) const {
    const auto distances =
        buffer.type.is_nibble() || buffer.rank() == 0 ? std::nullopt : targets::gpu::row_distances(buffer);
    for (size_t axis = 0; distances && axis < buffer.rank(); ++axis) {
      const bool is_last = axis + 1 == buffer.rank();
      if (is_last ? ir::constant_int(buffer.shape.back()).has_value() : (*distances)[axis].is_exact) continue;
      const std::string& row = is_last ? extents[axis] : strides[axis];
      conditions.push_back(fmt::format("({0}) > 0 && ({0}) * {1} % 16 == 0", row, buffer.type.bytes()));
    }
  }
};

}  // namespace

Result<std::string> usual_condition(const Kernel& kernel) {
  const HostNames names = host_names(kernel.function);
  std::vector<std::string> conditions;
  std::vector<ir::Buffer> buffers = kernel.program.workspaces;
  for (const auto& parameter : kernel.program.parameters)
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) buffers.push_back(*buffer);
  for (const Argument& argument : kernel.function.arguments)
    if (argument.kind == Argument::Kind::tensor)
      conditions.push_back(
          fmt::format("exported::begins_at_multiple({}, {})", argument.name, int{ir::kTensorAlignment}));
  for (const ir::Buffer& buffer : buffers) {
    if (!is_symbolic(buffer->shape) && !is_symbolic(buffer->strides)) continue;
    const SymbolicTensor tensor = TRY(SymbolicTensor::of(*buffer, names));
    conditions.push_back(tensor.has_few_elements());
    tensor.add_rows(conditions);
  }
  return fmt::format("{}", fmt::join(conditions, " &&\n      "));
}

ir::Program for_any_tensors(const ir::Program& program) {
  std::vector<targets::gpu::TensorFacts> facts;
  for (const auto& parameter : program.parameters)
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) facts.push_back({(*buffer)->type.bytes(), 1, false});
  for (const ir::Buffer& workspace : program.workspaces)
    facts.push_back({targets::gpu::alignment_of(*workspace), 1, false});
  return targets::gpu::with_facts(program, facts);
}

}  // namespace tilepilot::exporting
