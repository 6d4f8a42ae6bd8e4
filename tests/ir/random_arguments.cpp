#include "tests/ir/random_arguments.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {
namespace {

using interpret::Element;

Element random_element(std::mt19937& random, DType type) {
  if (type.is_float()) return Element::real(type, double(random() % 512) / 64 - 4);
  return Element::integer(type, int64_t(random() % 40) - 20);
}

// By the numbers of its type that lie below it.
int64_t rank(const Element& e) {
  const uint64_t sign = uint64_t{1} << (e.type.bits - 1);
  const uint64_t magnitude = e.to_bits() & (sign - 1);
  return (e.to_bits() & sign) != 0 ? -int64_t(magnitude) : int64_t(magnitude);
}

// What two machines may make of one exact argument. CUDA's functions are at most 4 units in the last place off, of
// float32 and of float64 (CUDA C++ Programming Guide, "Mathematical Functions"), and the prelude's quotient of sigmoid
// 1 unit more; the C library's are within 1. Shorter floats are computed in float32 and rounded once, so that they are
// neighbours. Quotients below the normal numbers of float32 may be 0.
bool is_close(const Element& a, const Element& b) {
  if (std::isnan(a.number) || std::isnan(b.number)) return std::isnan(a.number) && std::isnan(b.number);
  const bool is_tiny = std::fabs(a.number) < 0x1p-126 && std::fabs(b.number) < 0x1p-126;
  if (a.type.bits <= 32 && is_tiny) return true;
  const int64_t most = a.type.bits >= 32 ? 6 : 1;
  if (std::signbit(a.number) != std::signbit(b.number)) return a.number == b.number;
  return std::abs(rank(a) - rank(b)) <= most;
}

interpret::Memory memory_of(const interpret::View& view) {
  return {view.type, view.shape, view.strides, static_cast<std::byte*>(view.data), nullptr, true};
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
      names_.push_back((*var)->name);
      const Element e = random_element(random, (*var)->type);
      if (e.type.is_float())
        values_.emplace_back(e.number);
      else
        values_.emplace_back(e.whole);
      continue;
    }
    const Buffer& buffer = std::get<Buffer>(parameter);
    names_.push_back(buffer->name);
    interpret::View view{nullptr, buffer->type, {}, {}};
    for (const Expr& extent : buffer->shape) view.shape.push_back(value_of(extent));
    view.strides = interpret::contiguous(view.shape);
    for (size_t axis = 0; axis < buffer->strides.size(); ++axis) view.strides[axis] = value_of(buffer->strides[axis]);
    int64_t last = 0;
    for (size_t axis = 0; axis < view.shape.size(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
    bytes_.emplace_back(interpret::bytes_of(buffer->type, last + 1));
    const interpret::Memory memory{buffer->type, {last + 1}, {1}, bytes_.back().data(), nullptr, true};
    for (int64_t at = 0; at <= last; ++at) memory.write(at * memory.type.bits, random_element(random, buffer->type));
    view.data = bytes_.back().data();
    values_.emplace_back(std::move(view));
  }
}

RandomArguments::RandomArguments(const RandomArguments& other)
    : names_(other.names_), bytes_(other.bytes_), values_(other.values_) {
  size_t next = 0;
  for (interpret::Argument& value : values_)
    if (auto* view = std::get_if<interpret::View>(&value)) view->data = bytes_[next++].data();
}

std::string first_difference(const RandomArguments& a, const RandomArguments& b) {
  for (size_t k = 0; k < a.values().size(); ++k) {
    const auto* x = std::get_if<interpret::View>(&a.values()[k]);
    if (!x) continue;
    const auto* y = std::get_if<interpret::View>(&b.values()[k]);
    std::string found;
    const std::string& name = a.names()[k];
    const auto agrees = name == kOutcome ? is_close : interpret::same;
    int64_t number = 0;
    const interpret::Memory one = memory_of(*x), other = memory_of(*y);
    interpret::each(x->shape, [&](const interpret::Indices& at) {
      const int64_t here = number++;
      if (!found.empty()) return;
      const Element in_one = one.read(*one.place(at)), in_other = other.read(*other.place(at));
      if (!agrees(in_one, in_other))
        found =
            fmt::format("parameter {} (`{}`), element {}: {} and {}", k, name, here, shown(in_one), shown(in_other));
    });
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace tilepilot::ir::testing
