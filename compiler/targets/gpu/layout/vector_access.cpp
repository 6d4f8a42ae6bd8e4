#include "compiler/targets/gpu/layout/vector_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;

namespace {

// The largest power of two that divides the form; lanes apart.
int64_t divisor(const ir::Affine& form, const ir::Var& lane, int64_t most) {
  int64_t result = std::gcd(most, form.constant);
  for (const ir::Affine::Term& term : form.terms)
    if (term.var != lane) result = std::gcd(result, term.coefficient);
  return result;
}

// Elements from row to row, one number for each axis but the last; none if they are not known.
std::optional<std::vector<Multiple>> row_steps(const Surroundings& around, const Buffer& buffer) {
  if (buffer->scope != Scope::shared) return row_distances(*buffer);
  std::vector<Multiple> steps;
  const layout::SharedLayout& memory = around.tiles.at(buffer.get());
  const auto strides = layout::row_major_strides(memory.shape());
  for (size_t axis = 0; axis + 1 < strides.size(); ++axis)
    steps.push_back({memory.span() == layout::SwizzleSpan::none
                         ? memory.offset(std::min(strides[axis], layout::volume(memory.shape()) - 1))
                         : 128 / memory.element_bits(),
                     true});
  return steps;
}

}  // namespace

VectorChoice vector_access(const Surroundings& around, const Buffer& buffer, const std::vector<Expr>& indices,
                           const ir::Var& lane, int64_t lanes) {
  const auto none = [](std::string why) { return VectorChoice{std::nullopt, std::move(why)}; };
  if (buffer->type.is_nibble() || buffer->base || buffer->address || indices.empty())
    return none(fmt::format("`{}` is packed, a view or named by its address", buffer->name));
  for (size_t axis = 0; axis + 1 < indices.size(); ++axis)
    if (ir::mentions(indices[axis], lane))
      return none(fmt::format("neighbours of the loop lie in different rows of `{}`", buffer->name));
  const auto last = around.facts.affine(indices.back());
  if (!last || last->coefficient(lane) != 1)
    return none(fmt::format("neighbours of the loop are none in `{}`", buffer->name));
  const int64_t most = buffer->scope == Scope::global ? buffer->alignment : kAccessBytes;
  const int64_t wanted = std::max<int64_t>(1, most / buffer->type.bytes());
  std::string obstacle;
  int64_t elements = wanted;
  const auto narrow = [&](int64_t multiple, const auto& why) {
    const int64_t left = std::gcd(elements, multiple);
    if (left < elements) obstacle = why();
    elements = left;
  };
  narrow(lanes, [&] { return fmt::format("each thread has {} neighbours of the loop", lanes); });
  narrow(divisor(*last, lane, wanted),
         [&] { return fmt::format("it may start at no multiple of {} elements of `{}`", wanted, buffer->name); });
  if (indices.size() > 1) {
    const auto steps = row_steps(around, buffer);
    if (!steps) return none(fmt::format("elements of rows of `{}` may be apart", buffer->name));
    for (const Multiple& step : *steps)
      narrow(step.of, [&] {
        return step.is_exact ? fmt::format("rows of `{}` are {} elements apart", buffer->name, step.of)
                             : fmt::format("how far rows of `{}` are apart is known at launch alone", buffer->name);
      });
  }
  // All lanes are in bounds or none is.
  if (buffer->scope == Scope::global && !around.facts.in_bounds(indices.back(), buffer->shape.back())) {
    const Multiple length = row_length(*buffer);
    narrow(length.of, [&] {
      return length.is_exact ? fmt::format("rows of `{}` have {} elements", buffer->name, length.of)
                             : fmt::format("the length of rows of `{}` is known at launch alone", buffer->name);
    });
  }
  elements &= -elements;
  if (elements < 2) return none(std::move(obstacle));
  Vector vector{buffer, indices, elements, nullptr};
  for (Expr& index : vector.start)
    index =
        ir::substitute(index, [&](const ir::Var& var) { return var == lane ? ir::int_imm(0, lane->type) : nullptr; });
  return {std::move(vector), std::move(obstacle)};
}

Lanes lanes_of(const layout::Fragment& fragment) {
  const auto& modes = fragment.registers().modes();
  if (modes.empty() || modes[0].extent < 2) return {};
  const layout::Shape& cover = fragment.cover();
  const std::vector<int64_t> strides = layout::row_major_strides(cover);
  const int64_t count = modes[0].extent;
  size_t axis = cover.size();
  while (axis-- > 0 && (strides[axis] != modes[0].stride || cover[axis] < count)) {}
  if (axis >= cover.size() || fragment.shape()[axis] % count != 0 || cover[axis] % count != 0) return {};
  const bool is_last = strides[axis] == 1;
  // Elsewhere no digit may carry into the axis.
  if (!is_last && !is_separable(fragment)) return {};
  const auto splits = [&](const layout::Mode& mode) {
    const bool lies_along = is_last || (mode.stride >= strides[axis] && mode.stride < strides[axis] * cover[axis]);
    return lies_along && mode.stride % (strides[axis] * count) != 0;
  };
  if (std::any_of(modes.begin() + 1, modes.end(), splits)) return {};
  const auto& threads = fragment.threads().modes();
  if (std::any_of(threads.begin(), threads.end(), splits)) return {};
  return {count, axis};
}

}  // namespace tilepilot::targets::gpu
