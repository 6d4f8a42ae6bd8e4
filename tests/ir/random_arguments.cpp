#include "tests/ir/random_arguments.h"

#include <fmt/format.h>

#include <random>

namespace tilepilot::ir::testing {
namespace {

using interpret::Element;

Element random_element(std::mt19937& random, DType type) {
  if (type.is_float()) return Element::real(type, double(random() % 512) / 64 - 4);
  return Element::integer(type, int64_t(random() % 40) - 20);
}

std::string shown(const Element& e) {
  return e.type.is_float() ? fmt::format("{}", e.number) : fmt::format("{}", e.whole);
}

}  // namespace

RandomArguments::RandomArguments(const Program& program, uint32_t seed) {
  std::mt19937 random(seed);
  std::unordered_map<const VarData*, int64_t> symbols;
  for (const Var& symbol : program.symbols) symbols[symbol.get()] = 1 + random() % 12;
  const auto value_of = [&](const Expr& e) {
    const auto* ref = std::get_if<VarRef>(&e->node);
    return ref ? symbols.at(ref->var.get()) : constant_int(e).value_or(1);
  };
  for (const auto& parameter : program.parameters) {
    if (const auto* var = std::get_if<Var>(&parameter)) {
      const Element e = random_element(random, (*var)->type);
      if (e.type.is_float())
        values_.emplace_back(e.number);
      else
        values_.emplace_back(e.whole);
      continue;
    }
    const Buffer& buffer = std::get<Buffer>(parameter);
    interpret::View view{nullptr, buffer->type, {}, {}};
    for (const Expr& extent : buffer->shape) view.shape.push_back(value_of(extent));
    view.strides = interpret::contiguous(view.shape);
    for (size_t axis = 0; axis < buffer->strides.size(); ++axis) view.strides[axis] = value_of(buffer->strides[axis]);
    int64_t last = 0;
    for (size_t axis = 0; axis < view.shape.size(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
    bytes_.emplace_back(interpret::bytes_of(buffer->type, last + 1));
    const interpret::Memory memory{buffer->type, {last + 1}, {1}, bytes_.back().data(), nullptr, true};
    for (int64_t at = 0; at <= last; ++at) memory.write(*memory.place({at}), random_element(random, buffer->type));
    view.data = bytes_.back().data();
    values_.emplace_back(std::move(view));
  }
}

std::string first_difference(const RandomArguments& a, const RandomArguments& b) {
  for (size_t k = 0; k < a.values().size(); ++k) {
    const auto* x = std::get_if<interpret::View>(&a.values()[k]);
    if (!x) continue;
    const auto* y = std::get_if<interpret::View>(&b.values()[k]);
    std::string found;
    int64_t number = 0;
    interpret::each(x->shape, [&](const interpret::Indices& at) {
      const auto element = [&](const interpret::View& v) {
        const interpret::Memory memory{v.type, v.shape, v.strides, static_cast<std::byte*>(v.data), nullptr, true};
        return memory.read(*memory.place(at));
      };
      if (found.empty() && !same(element(*x), element(*y)))
        found = fmt::format("parameter {}, element {}: {} and {}", k, number, shown(element(*x)), shown(element(*y)));
      ++number;
    });
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace tilepilot::ir::testing
