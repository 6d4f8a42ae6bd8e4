#include "compiler/export/host_expr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "compiler/ir/text/text.h"

namespace tilepilot::exporting {
namespace {

// With the operands in place of the braces; null: no expression of the host has it.
const char* form_of(ir::BinaryOp op) {
  using Op = ir::BinaryOp;
  switch (op) {
    case Op::add:
      return "({} + {})";
    case Op::sub:
      return "({} - {})";
    case Op::mul:
      return "exported::times({}, {})";
    case Op::floor_div:
      return "exported::floor_div({}, {})";
    case Op::floor_mod:
      return "exported::floor_mod({}, {})";
    case Op::min:
      return "exported::least({}, {})";
    case Op::max:
      return "exported::most({}, {})";
    case Op::shl:
      return "({} << {})";
    case Op::shr:
      return "({} >> {})";
    case Op::bit_and:
      return "({} & {})";
    case Op::bit_or:
      return "({} | {})";
    case Op::bit_xor:
      return "({} ^ {})";
    case Op::eq:
      return "({} == {})";
    case Op::ne:
      return "({} != {})";
    case Op::lt:
      return "({} < {})";
    case Op::le:
      return "({} <= {})";
    case Op::gt:
      return "({} > {})";
    case Op::ge:
      return "({} >= {})";
    case Op::logical_and:
      return "({} && {})";
    case Op::logical_or:
      return "({} || {})";
    default:
      return nullptr;
  }
}

Error unknown_expression(const ir::Expr& expr) {
  return make_error(
      DiagnosticKind::unsupported_tile_feature, expr->span,
      fmt::format("`{}` cannot be computed by an exported function before its kernel starts", ir::to_text(expr)),
      "pass it as a number or as an extent");
}

}  // namespace

Result<std::string> HostNames::text(const ir::Expr& expr) const {
  if (const auto* number = std::get_if<ir::IntImm>(&expr->node)) return fmt::format("INT64_C({})", number->value);
  if (const auto* cast = std::get_if<ir::Cast>(&expr->node); cast && !cast->value->type.is_float())
    return text(cast->value);
  if (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
    const auto found = names_.find(ref->var.get());
    if (found != names_.end()) return fmt::format("int64_t({})", found->second);
  }
  if (const auto* binary = std::get_if<ir::Binary>(&expr->node); binary && !binary->left->type.is_float())
    if (const char* form = form_of(binary->op)) {
      const std::string left = TRY(text(binary->left)), right = TRY(text(binary->right));
      return fmt::format(fmt::runtime(form), left, right);
    }
  if (const auto* select = std::get_if<ir::Select>(&expr->node)) {
    const std::string condition = TRY(text(select->condition)), then = TRY(text(select->then));
    return fmt::format("({} ? {} : {})", condition, then, TRY(text(select->otherwise)));
  }
  return unknown_expression(expr);
}

Result<std::string> HostNames::product(const std::vector<ir::Expr>& factors) const {
  std::string result;
  for (const ir::Expr& factor : factors) {
    const std::string next = TRY(text(factor));
    result = result.empty() ? next : fmt::format("exported::times({}, {})", result, next);
  }
  return result.empty() ? std::string("INT64_C(1)") : result;
}

}  // namespace tilepilot::exporting
