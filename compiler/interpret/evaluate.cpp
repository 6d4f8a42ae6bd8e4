#include "compiler/interpret/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "compiler/ir/visit.h"

namespace tilepilot::interpret {

using ir::BinaryOp;

Element Evaluator::value(const ir::Expr& expr) const {
  session_.spend(expr->span);
  return std::visit(
      ir::overloaded{
          [&](const ir::IntImm& n) { return Element::integer(expr->type, n.value); },
          [&](const ir::FloatImm& n) { return Element::real(expr->type, n.value); },
          [&](const ir::VarRef& n) { return *scope_.find(n.var.get()); },
          [&](const ir::Load& n) { return read(n.buffer, integers(n.indices), expr->span); },
          [&](const ir::Unary& n) { return apply(n.op, value(n.operand)); },
          [&](const ir::Binary& n) { return compute(n); },
          [&](const ir::Math& n) { return apply(n.function, value(n.argument), *session_.options().functions); },
          [&](const ir::Select& n) { return value(value(n.condition).truth() ? n.then : n.otherwise); },
          [&](const ir::Cast& n) { return converted(value(n.value), expr->type, expr->span); },
          [&](const ir::Reinterpret& n) { return value(n.value).reinterpret(expr->type); },
      },
      expr->node);
}

Element Evaluator::compute(const ir::Binary& node) const {
  const Element left = value(node.left);
  if (node.op == BinaryOp::logical_and && !left.truth()) return left;
  if (node.op == BinaryOp::logical_or && left.truth()) return left;
  return apply(node.op, left, value(node.right));
}

Indices Evaluator::integers(const std::vector<ir::Expr>& exprs) const {
  Indices result;
  result.reserve(exprs.size());
  for (const ir::Expr& expr : exprs) result.push_back(integer(expr));
  return result;
}

Element Evaluator::converted(const Element& value, ir::DType to, Span span) const {
  if (!value.can_cast(to))
    session_.fail({FaultKind::undefined_cast, span, fmt::format("{} is no {}", value.number, ir::to_string(to))});
  return value.cast(to);
}

std::optional<int64_t> Evaluator::place(const Memory& memory, const ir::Buffer& buffer, const Indices& at,
                                        Span span) const {
  const auto place = memory.place(at);
  if (!place && !memory.is_global)
    session_.fail({FaultKind::outside_tile, span,
                   fmt::format("[{}] lies outside `{}`, which is [{}]", fmt::join(at, ", "), buffer->name,
                               fmt::join(memory.shape, ", "))});
  return place;
}

const Memory& Evaluator::memory_of(const ir::Buffer& buffer, std::optional<Memory>& addressed) const {
  const Memory& memory = scope_.find(buffer.get());
  if (!buffer->address) return memory;
  addressed = memory;
  addressed->data = reinterpret_cast<std::byte*>(static_cast<intptr_t>(read(buffer->address, {0}, buffer->span).whole));
  return *addressed;
}

Element Evaluator::read(const ir::Buffer& buffer, const Indices& at, Span span) const {
  std::optional<Memory> addressed;
  const Memory& memory = memory_of(buffer, addressed);
  const auto place = this->place(memory, buffer, at, span);
  if (!place) return Element::zero(buffer->type);
  if (session_.options().reports_uninitialised && !memory.is_written(*place))
    session_.fail({FaultKind::uninitialised, span,
                   fmt::format("nobody has written `{}` at [{}]", buffer->name, fmt::join(at, ", "))});
  return memory.read(*place);
}

void Evaluator::write(const ir::Buffer& buffer, const Indices& at, const Element& value, Span span) const {
  std::optional<Memory> addressed;
  const Memory& memory = memory_of(buffer, addressed);
  if (const auto place = this->place(memory, buffer, at, span)) memory.write(*place, value);
}

}  // namespace tilepilot::interpret
