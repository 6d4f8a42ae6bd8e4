#include "compiler/targets/gpu/facts/tensor_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/coordinates.h"

namespace tilepilot::targets::gpu {

using ir::BufferData;
using ir::Expr;

namespace {

constexpr int64_t kFew = INT32_MAX;

std::vector<ir::Buffer> tensors_of(const ir::Program& program) {
  std::vector<ir::Buffer> tensors;
  for (const auto& parameter : program.parameters)
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) tensors.push_back(*buffer);
  tensors.insert(tensors.end(), program.workspaces.begin(), program.workspaces.end());
  return tensors;
}

bool is_constant(const Expr& expr) { return ir::constant_int(expr).has_value(); }

bool has_symbols(const BufferData& tensor) {
  return !std::all_of(tensor.shape.begin(), tensor.shape.end(), is_constant) ||
         !std::all_of(tensor.strides.begin(), tensor.strides.end(), is_constant);
}

// Whether the length of rows, or how far axes are apart, is known at launch alone.
bool has_unknown_rows(const BufferData& tensor) {
  const auto distances = tensor.type.is_nibble() || tensor.rank() == 0 ? std::nullopt : row_distances(tensor);
  const auto is_exact = [](const Multiple& one) { return one.is_exact; };
  return distances && !(row_length(tensor).is_exact && std::all_of(distances->begin(), distances->end(), is_exact));
}

Multiple known(const Expr& elements) {
  const auto value = ir::constant_int(elements);
  return value ? Multiple{*value, true} : Multiple{known_factor(elements), false};
}

// Of a row's length, or of how far axes are apart.
Multiple by_facts(const BufferData& tensor, Multiple number) {
  if (!number.is_exact) number.of = std::max(number.of, tensor.row_alignment / tensor.type.bytes());
  return number;
}

Multiple product_of(const Multiple& a, const Multiple& b) {
  if (a.is_exact && b.is_exact) return {a.of * b.of, true};
  return {std::min(std::gcd(a.of, kLargestFactor) * std::gcd(b.of, kLargestFactor), kLargestFactor), false};
}

}  // namespace

int64_t alignment_of(const void* address) {
  const auto bits = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address));
  return bits % ir::kTensorAlignment == 0 ? ir::kTensorAlignment : bits & -bits;
}

int64_t alignment_of(const ir::BufferData& tensor) {
  return tensor.base ? std::min(tensor.base->alignment, tensor.alignment) : tensor.alignment;
}

std::vector<TensorFacts> usual_facts(const ir::Program& program) {
  return std::vector<TensorFacts>(tensors_of(program).size());
}

FactFinder::FactFinder(const ir::Program& program) {
  for (const ir::Buffer& buffer : tensors_of(program)) {
    Tensor tensor{buffer, has_symbols(*buffer), std::vector<bool>(buffer->rank(), false)};
    const auto distances = has_unknown_rows(*buffer) ? row_distances(*buffer) : std::nullopt;
    for (size_t axis = 0; distances && axis < buffer->rank(); ++axis)
      tensor.is_row[axis] =
          axis + 1 < buffer->rank() ? !(*distances)[axis].is_exact : !is_constant(buffer->shape.back());
    tensors_.push_back(std::move(tensor));
  }
}

std::vector<TensorFacts> FactFinder::find(const std::vector<void*>& addresses, const ir::VarRanges& values) const {
  std::vector<TensorFacts> facts(tensors_.size());
  for (size_t k = 0; k < tensors_.size(); ++k) {
    if (k < addresses.size()) facts[k].alignment = alignment_of(addresses[k]);
    if (tensors_[k].has_symbols) find_extents(tensors_[k], values, facts[k]);
  }
  return facts;
}

void FactFinder::find_extents(const Tensor& tensor, const ir::VarRanges& values, TensorFacts& facts) {
  const BufferData& buffer = *tensor.buffer;
  const auto value = [&](const Expr& expr) {
    if (const auto constant = ir::constant_int(expr)) return *constant;
    const auto* ref = ir::as<ir::VarRef>(expr);
    return ref ? values.at(ref->var.get()).lo : ir::bounds(expr, values).lo;
  };
  int64_t step = 1, last = 0;
  for (size_t axis = buffer.rank(); axis-- > 0;) {
    const int64_t extent = std::max<int64_t>(0, value(buffer.shape[axis]));
    const int64_t stride = buffer.strides.empty() ? step : value(buffer.strides[axis]);
    const int64_t row = axis + 1 == buffer.rank() ? extent : stride;
    if (tensor.is_row[axis] && (row <= 0 || row * buffer.type.bytes() % ir::kTensorAlignment != 0))
      facts.row_alignment = 1;
    // Beyond 2^31 it does not matter how far.
    if (extent > kFew || stride > kFew || (last += std::max<int64_t>(0, extent - 1) * stride) >= kFew)
      facts.few_elements = false;
    last = std::min(last, kFew);
    step = std::min(step, kFew) * std::min(std::max<int64_t>(extent, 1), kFew);
  }
}

ir::Program with_facts(const ir::Program& program, const std::vector<TensorFacts>& facts) {
  ir::Program result = program;
  ir::Replacements by;
  size_t number = 0;
  const auto replace = [&](ir::Buffer& buffer) {
    const TensorFacts& given = facts[number++];
    BufferData data = *buffer;
    data.alignment = std::min(data.alignment, given.alignment);
    if (has_unknown_rows(data)) data.row_alignment = given.row_alignment;
    data.few_elements = given.few_elements && has_symbols(data);
    const bool same = data.alignment == buffer->alignment && data.row_alignment == buffer->row_alignment &&
                      data.few_elements == buffer->few_elements;
    if (same) return;
    by.emplace(buffer.get(), std::make_shared<BufferData>(std::move(data)));
    buffer = by.at(buffer.get());
  };
  for (auto& parameter : result.parameters)
    if (auto* buffer = std::get_if<ir::Buffer>(&parameter)) replace(*buffer);
  for (ir::Buffer& workspace : result.workspaces) replace(workspace);
  for (ir::Kernel& kernel : result.kernels) {
    ir::Replacements of_kernel = by;
    for (const ir::Buffer& buffer : kernel.allocations) {  // views of tensors begin where these do
      const auto base = by.find(buffer->base.get());
      if (base == by.end()) continue;
      BufferData data = *buffer;
      data.base = base->second;
      data.few_elements = data.base->few_elements && has_symbols(data) && data.type.bits >= data.base->type.bits;
      of_kernel.emplace(buffer.get(), std::make_shared<BufferData>(std::move(data)));
    }
    kernel = ir::replace_buffers(kernel, of_kernel);
  }
  return result;
}

std::vector<std::string> reliances(const ir::Program& program) {
  std::vector<std::string> clauses;
  for (const ir::Buffer& tensor : tensors_of(program)) {
    if (!has_symbols(*tensor)) continue;
    std::string text = tensor->few_elements ? "has fewer than 2^31 elements" : "may have 2^31 elements or more";
    if (has_unknown_rows(*tensor))
      text += tensor->row_alignment == ir::kTensorAlignment ? " and rows of multiples of 16 bytes"
                                                            : " and rows of any length";
    clauses.push_back(fmt::format("`{}` {}", tensor->name, text));
  }
  return clauses;
}

std::optional<std::vector<Multiple>> row_distances(const BufferData& tensor) {
  std::vector<Multiple> distances;
  Multiple step{1, true};
  for (size_t axis = tensor.rank(); axis-- > 0;) {
    const Multiple distance = tensor.strides.empty() ? step : known(tensor.strides[axis]);
    if (axis + 1 < tensor.rank())
      distances.insert(distances.begin(), by_facts(tensor, distance));
    else if (!distance.is_exact || distance.of != 1)
      return std::nullopt;
    step = product_of(step, known(tensor.shape[axis]));
  }
  return distances;
}

Multiple row_length(const BufferData& tensor) { return by_facts(tensor, known(tensor.shape.back())); }

}  // namespace tilepilot::targets::gpu
