#include "compiler/targets/c/expr.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/fold.h"
#include "compiler/targets/c/functions.h"

namespace tilepilot::targets::c {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::MathFn;

// C++ precedence levels, larger binds tighter.
enum Precedence {
  kTernary,
  kOr,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEqual,
  kCompare,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

struct Code {
  std::string text;
  int precedence = kPrimary;
};

std::string wrapped(const Code& code, int least) {
  return code.precedence >= least ? code.text : "(" + code.text + ")";
}

struct Operator {
  BinaryOp op;
  std::string_view symbol;  // empty: `function`
  int precedence;
  std::string_view function;
};
constexpr Operator kOperators[] = {
    {BinaryOp::add, "+", kSum, {}},
    {BinaryOp::sub, "-", kSum, {}},
    {BinaryOp::mul, "*", kProduct, {}},
    {BinaryOp::div, "/", kProduct, {}},
    {BinaryOp::floor_div, {}, kPrimary, "floor_div"},
    {BinaryOp::floor_mod, {}, kPrimary, "floor_mod"},
    {BinaryOp::min, {}, kPrimary, "min_of"},
    {BinaryOp::max, {}, kPrimary, "max_of"},
    {BinaryOp::pow, {}, kPrimary, "pow_of"},
    {BinaryOp::atan2, {}, kPrimary, "atan2_of"},
    {BinaryOp::hypot, {}, kPrimary, "hypot_of"},
    {BinaryOp::ldexp, {}, kPrimary, "ldexp_of"},
    {BinaryOp::nextafter, {}, kPrimary, "nextafter_of"},
    {BinaryOp::fmod, {}, kPrimary, "fmod_of"},
    {BinaryOp::shl, "<<", kShift, {}},
    {BinaryOp::shr, ">>", kShift, {}},
    {BinaryOp::bit_and, "&", kBitAnd, {}},
    {BinaryOp::bit_or, "|", kBitOr, {}},
    {BinaryOp::bit_xor, "^", kBitXor, {}},
    {BinaryOp::eq, "==", kEqual, {}},
    {BinaryOp::ne, "!=", kEqual, {}},
    {BinaryOp::lt, "<", kCompare, {}},
    {BinaryOp::le, "<=", kCompare, {}},
    {BinaryOp::gt, ">", kCompare, {}},
    {BinaryOp::ge, ">=", kCompare, {}},
    {BinaryOp::logical_and, "&&", kAnd, {}},
    {BinaryOp::logical_or, "||", kOr, {}},
};
const Operator& info(BinaryOp op) {
  for (const Operator& row : kOperators)
    if (row.op == op) return row;
  __builtin_unreachable();
}
bool is_comparison(BinaryOp op) { return info(op).precedence == kEqual || info(op).precedence == kCompare; }

bool is_narrow(DType type) { return type.is_int() && type.bits < 32; }
bool is_small_integer(DType type) { return type.is_int() && type.is_nibble(); }

std::string rounding(DType type) { return "round_" + stored_type(type); }
std::string narrowing(DType type) { return "to_" + stored_type(type); }
// To the type of small integers that arithmetic was done for.
std::string wrapping(DType type) { return is_small_integer(type) ? "wrap_" + stored_type(type) : stored_type(type); }

std::string integer_literal(int64_t value, DType type) {
  if (type.is_bool()) return value != 0 ? "true" : "false";
  if (type.code == ir::TypeCode::unsigned_int && type.bits >= 32)
    return fmt::format("{}u{}", static_cast<uint64_t>(value), type.bits == 64 ? "ll" : "");
  if (type.bits == 64) return value == INT64_MIN ? "(-9223372036854775807ll - 1)" : fmt::format("int64_t{{{}}}", value);
  if (type.bits == 32) return value == INT32_MIN ? "(-2147483647 - 1)" : fmt::format("{}", value);
  return fmt::format("{}({})", computed_type(type), value);
}

std::string float_literal(double given, DType type) {
  const double value = passes::round_to(given, type);
  const bool is_double = type.bits == 64;
  if (std::isnan(value)) return is_double ? "double(not_a_number)" : "not_a_number";
  if (std::isinf(value)) return fmt::format("{}{}", value < 0 ? "-" : "", is_double ? "double(infinity)" : "infinity");
  std::string digits = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (!is_double && std::isinf(static_cast<float>(value))) return value < 0 ? "-infinity" : "infinity";
  return is_double ? digits : digits + "f";
}

// Emits one expression. `raw` leaves out the rounding to a small float of the outermost operation.
class ValueEmitter {
 public:
  explicit ValueEmitter(Context& context) : context_(context) {}

  Code value(const Expr& expr) {
    if (is_native(expr)) return {"to_float(" + native(expr) + ")"};
    Code code = raw(expr);
    if (!expr->type.is_small_float() || !rounds(expr)) return code;
    if (context_.operations) context_.operations->rounding(expr, true);
    return {rounding(expr->type) + "(" + code.text + ")"};
  }

  Code raw(const Expr& expr) {
    count(expr);
    return std::visit(ir::overloaded{
                          [&](const ir::IntImm& imm) { return literal(integer_literal(imm.value, expr->type)); },
                          [&](const ir::FloatImm& imm) { return literal(float_literal(imm.value, expr->type)); },
                          [&](const ir::VarRef& ref) { return variable(ref.var); },
                          [&](const ir::Load& node) { return load(expr, node); },
                          [&](const ir::Unary& node) { return unary(node, expr->type); },
                          [&](const ir::Binary& node) {
                            note_library_operator(expr, node);
                            return is_quick(expr) ? quick(node) : binary(node, expr->type);
                          },
                          [&](const ir::Math& node) {
                            note_library_function(expr, node);
                            std::string argument = value(node.argument).text;
                            // A function for any type takes the type of its argument.
                            if (is_small_integer(node.argument->type))
                              argument = fmt::format("{}({})", computed_type(node.argument->type), argument);
                            const MathFunction& function = function_of(node.function);
                            const bool fast = is_fast(node.argument->type) && function.has_fast_form;
                            Code code{fmt::format("{}{}({})", fast ? "fast_" : "", function.name, argument)};
                            return is_small_integer(expr->type) ? narrow(std::move(code), expr->type) : code;
                          },
                          [&](const ir::Select& node) { return select(node); },
                          [&](const ir::Cast& node) { return cast(node.value, expr->type); },
                          [&](const ir::Reinterpret& node) { return reinterpret(node.value, expr->type); },
                      },
                      expr->node);
  }

  std::string element(const Expr& expr) {
    if (const std::string place = stored_place(expr); !place.empty()) return place;
    if (is_small_integer(expr->type)) return narrowing(expr->type) + "(" + value(expr).text + ")";
    if (!expr->type.is_small_float()) return value(expr).text;
    if (is_native(expr)) return native(expr);
    if (is_exact_tfloat32(expr)) return "exact_tfloat32(" + unrounded(expr) + ")";
    if (const auto* node = ir::as<ir::Reinterpret>(expr); node != nullptr && !expr->type.is_nibble()) {
      count(expr);
      return bit_cast(node->value, expr->type);
    }
    if (expr->type == ir::kBFloat16 && !rounds(expr)) return "exact_bfloat16(" + raw(expr).text + ")";
    if (context_.operations) context_.operations->rounding(expr, false);
    return narrowing(expr->type) + "(" + unrounded(expr) + ")";
  }

  // Where an element lies as it is stored; "": it is computed.
  std::string stored_place(const Expr& expr) {
    if (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
      const auto found = context_.stored.find(ref->var.get());
      return found == context_.stored.end() ? "" : found->second;
    }
    const auto* node = std::get_if<ir::Load>(&expr->node);
    return node && is_plain(expr, *node) ? place(context_, node->buffer, node->indices) : "";
  }

  // Smaller floats have no more digits and no larger exponents.
  static bool is_exact_tfloat32(const Expr& expr) {
    const auto* cast = std::get_if<ir::Cast>(&expr->node);
    return expr->type == ir::kTensorFloat32 && cast && cast->value->type.is_small_float() &&
           cast->value->type != ir::kTensorFloat32;
  }

  // Sums and products of stored elements, by instructions of the type: what float32 gives, rounded once, is the same
  // (Figueroa, "When is double rounding innocuous?": 24 digits are at least 2 * 11 + 2).
  bool is_native(const Expr& expr) {
    const auto* node = std::get_if<ir::Binary>(&expr->node);
    if (node == nullptr || !context_.is_native(expr->type)) return false;
    const bool known = node->op == BinaryOp::add || node->op == BinaryOp::sub || node->op == BinaryOp::mul;
    return known && is_stored(node->left) && is_stored(node->right);
  }
  bool is_stored(const Expr& expr) {
    const auto* load = std::get_if<ir::Load>(&expr->node);
    return (load != nullptr && is_plain(expr, *load)) || std::get_if<ir::FloatImm>(&expr->node) || is_native(expr);
  }
  std::string native(const Expr& expr) {
    count(expr);
    const auto& node = std::get<ir::Binary>(expr->node);
    const char* name = node.op == BinaryOp::add ? "add" : node.op == BinaryOp::sub ? "subtract" : "multiply";
    const std::string left = element(node.left), right = element(node.right);
    return fmt::format("{}_{}({}, {})", name, stored_type(expr->type), left, right);
  }

  std::string unrounded(const Expr& expr) { return (rounds(expr) ? raw(expr) : value(expr)).text; }

 private:
  Context& context_;

  void count(const Expr& expr) {
    if (!context_.operations) return;
    if (is_quick(expr))
      context_.operations->reciprocal_quotient();
    else
      context_.operations->operation(expr);
  }

  // The system's compiler makes no vector loop of one that calls such a function.
  static constexpr const char* kCalled = "it is a call of the C library for each element";

  // Every compiler writes these out.
  static bool is_simple_power(const ir::Binary& node) {
    const auto* exponent = std::get_if<ir::FloatImm>(&node.right->node);
    return node.op == BinaryOp::pow && exponent && (exponent->value == 1 || exponent->value == 2);
  }

  void note_library_operator(const Expr& expr, const ir::Binary& node) {
    if (is_simple_power(node)) return;
    if (node.left->type.is_float() && is_call(node.op))
      context_.note_scalar({expr->span, fmt::format("`{}`", ir::to_string(node.op)), kCalled});
  }

  void note_library_function(const Expr& expr, const ir::Math& node) {
    const DType type = node.argument->type;
    const bool is_double = type.is_float() && type.bits == 64;
    if (is_double ? function_of(node.function).is_call_of_doubles : function_of(node.function).is_call)
      context_.note_scalar({expr->span, fmt::format("`{}`", ir::to_string(node.function)), kCalled});
  }

  static Code literal(std::string text) {
    const int precedence = text[0] == '-' ? kUnary : kPrimary;
    return {std::move(text), precedence};
  }

  // True if raw() of a small float's expression is not yet a value of its type. Powers of two have no sign and no zero:
  // there hardly anything is.
  static bool rounds(const Expr& expr) {
    const bool powers = expr->type == ir::kFloat8E8M0;
    return std::visit(ir::overloaded{
                          [&](const ir::Unary&) { return powers; },
                          [](const ir::Binary& node) { return node.op != BinaryOp::min && node.op != BinaryOp::max; },
                          [&](const ir::Math& node) { return powers || !function_of(node.function).is_exact; },
                          [&](const ir::Cast& node) { return powers || !node.value->type.is_bool(); },
                          [](const auto&) { return false; },
                      },
                      expr->node);
  }

  Code variable(const ir::Var& var) {
    const std::string& name = context_.name(var);
    if (!context_.wide.contains(var.get()) || computed_type(var->type) == context_.index_type) return {name};
    return {fmt::format("{}({})", computed_type(var->type), name)};
  }

  Code load(const Expr& expr, const ir::Load& node) {
    if (const auto known = context_.lanes.loads.find(expr.get()); known != context_.lanes.loads.end())
      return {known->second};
    Code code{place(context_, node.buffer, node.indices)};
    if (expr->type.is_small_float()) code = {"to_float(" + code.text + ")"};
    if (is_small_integer(expr->type)) code.text += ".value";
    if (expr->type.is_bool()) code = {code.text + " != 0", kEqual};
    if (context_.proven.contains(expr.get()) || !may_leave(context_, node.buffer, node.indices)) return code;
    const std::string condition = bounds_condition(context_, node.buffer, node.indices);
    if (condition.empty()) return code;
    const std::string type = computed_type(expr->type);
    if (context_.predicated.contains(node.buffer.get()) && has_zero_of_bits(expr->type)) {
      const std::string found = fmt::format("load_if({}, &{})", condition, place(context_, node.buffer, node.indices));
      return {expr->type.is_small_float() ? "to_float(" + found + ")" : found};
    }
    if (fails_out_of_bounds(context_, node.buffer))
      return {fmt::format("{} ? {} : fail_load<{}>(events, {})", condition, code.text, type,
                          context_.add_tile_check(node.buffer, expr->span)),
              kTernary};
    const char* zero = expr->type == ir::kFloat8E8M0 ? "round_float8_e8m0(0)" : "0";
    return {fmt::format("{} ? {} : {}({})", condition, code.text, type, zero), kTernary};
  }

  static bool has_zero_of_bits(DType type) { return !type.is_bool() && !type.is_nibble() && type != ir::kFloat8E8M0; }

  // Its stored form is what memory has: no check, no value that was loaded before.
  bool is_plain(const Expr& expr, const ir::Load& node) {
    if (!expr->type.is_small_float() || context_.lanes.loads.contains(expr.get())) return false;
    return context_.proven.contains(expr.get()) || !may_leave(context_, node.buffer, node.indices) ||
           bounds_condition(context_, node.buffer, node.indices).empty();
  }

  // Whether C++ leaves open what this is, since a result of the exact operation leaves the type it is computed in.
  bool may_overflow(BinaryOp op, const Expr& left, const Expr& right) const {
    const DType type = left->type;
    if (context_.wraps_by_itself || !type.is_int() || type.is_nibble()) return false;
    if (op != BinaryOp::add && op != BinaryOp::sub && op != BinaryOp::mul) return false;
    if (type.bits < 32) return op == BinaryOp::mul && type.bits == 16 && type.code == ir::TypeCode::unsigned_int;
    if (type.code == ir::TypeCode::unsigned_int) return false;
    const ir::Bounds a = context_.facts.range(left), b = context_.facts.range(right), all = ir::type_bounds(type);
    const ir::Wide ends[] = {a.lo, a.hi}, others[] = {b.lo, b.hi};
    for (const ir::Wide x : ends)
      for (const ir::Wide y : others) {
        const ir::Wide result = op == BinaryOp::add ? x + y : op == BinaryOp::sub ? x - y : x * y;
        if (result < all.lo || result > all.hi) return true;
      }
    return false;
  }

  Code by_wrapping(BinaryOp op, const std::string& left, const std::string& right, DType type) const {
    const char* name = op == BinaryOp::add ? "wrapped_add" : op == BinaryOp::sub ? "wrapped_sub" : "wrapped_mul";
    return {fmt::format("{}<{}>({}, {})", name, computed_type(type), left, right)};
  }

  Code unary(const ir::Unary& node, DType type) {
    if (node.op == ir::UnaryOp::neg && type.is_int() && may_overflow(BinaryOp::sub, ir::int_imm(0, type), node.operand))
      return by_wrapping(BinaryOp::sub, "0", value(node.operand).text, type);
    const std::string operand = wrapped(value(node.operand), kUnary);
    const bool is_logical = node.op == ir::UnaryOp::logical_not || type.is_bool();
    const char* symbol = is_logical ? "!" : node.op == ir::UnaryOp::neg ? "-" : "~";
    const std::string spaced = operand[0] == symbol[0] ? "(" + operand + ")" : operand;
    return narrow({symbol + spaced, kUnary}, type);
  }

  // Arithmetic on narrow integers happens in int; the cast wraps it.
  static Code narrow(Code code, DType type) {
    if (!is_narrow(type)) return code;
    return {wrapping(type) + "(" + code.text + ")"};
  }

  // Small floats are computed as float32.
  bool is_fast(DType type) const { return context_.fast_math && type.is_float() && type.bits <= 32; }

  bool is_quick(const Expr& expr) const {
    const auto settled = context_.reciprocal_divisions.find(expr.get());
    return settled != context_.reciprocal_divisions.end() && settled->second;
  }
  Code quick(const ir::Binary& division) {
    return {fmt::format("reciprocal_quotient({}, {})", value(division.left).text, value(division.right).text)};
  }

  Code binary(const ir::Binary& node, DType type) {
    const Operator& row = info(node.op);
    if (is_comparison(node.op) && is_index_arithmetic(node.left) && is_index_arithmetic(node.right) &&
        !leaves_index_type(context_, node.left) && !leaves_index_type(context_, node.right))
      return index_binary(node);
    if (row.symbol.empty()) return call(node, row);
    if (node.op == BinaryOp::div && is_fast(type))
      return {fmt::format("fast_quotient({}, {})", value(node.left).text, value(node.right).text)};
    if (may_overflow(node.op, node.left, node.right))
      return by_wrapping(node.op, value(node.left).text, value(node.right).text, type);
    if (is_bitwise_condition(node)) return bitwise_condition(node);
    const bool is_shift = row.precedence == kShift;
    const int precedence = row.precedence;
    std::string left = wrapped(value(node.left), precedence);
    std::string right = is_shift ? shift_amount(node.right) : wrapped(value(node.right), precedence + 1);
    return narrow({fmt::format("{} {} {}", left, row.symbol, right), precedence}, type);
  }

  bool is_bitwise_condition(const ir::Binary& node) const {
    const bool is_condition = node.op == BinaryOp::logical_and || node.op == BinaryOp::logical_or;
    return is_condition && context_.evaluates_both_sides && ir::has_loads(node.right) && needs_no_guard(node.right);
  }

  // Has a value, and nothing else comes of it, whatever stands before it: its elements are there, and it calls nothing.
  bool needs_no_guard(const Expr& expr) const {
    bool is_safe = true;
    ir::walk(expr, [&](const Expr& part) {
      if (const auto* load = std::get_if<ir::Load>(&part->node)) is_safe = is_safe && is_inside(part, *load);
      if (const auto* node = std::get_if<ir::Binary>(&part->node)) is_safe = is_safe && !is_call(node->op);
      is_safe = is_safe && !std::holds_alternative<ir::Math>(part->node);
    });
    return is_safe;
  }

  bool is_inside(const Expr& expr, const ir::Load& load) const {
    if (load.buffer->address) return false;  // a program may ask first whether there is one
    if (context_.proven.contains(expr.get())) return true;
    for (size_t axis = 0; axis < load.indices.size(); ++axis)
      if (!context_.facts.in_bounds(load.indices[axis], load.buffer->shape[axis])) return false;
    return true;
  }

  Code bitwise_condition(const ir::Binary& node) {
    const int precedence = node.op == BinaryOp::logical_and ? kBitAnd : kBitOr;
    const Code left = value(node.left);
    const std::string first = left.precedence == precedence ? left.text : wrapped(left, kUnary);
    return {fmt::format("{} {} {}", first, precedence == kBitAnd ? '&' : '|', wrapped(value(node.right), kUnary)),
            precedence};
  }

  // C++'s own division rounds the same way if nothing is negative.
  bool is_plain_division(const ir::Binary& node) const {
    return context_.facts.is_never_negative(node.left) && context_.facts.range(node.right).lo > 0;
  }

  Code call(const ir::Binary& node, const Operator& row) {
    const ir::DType type_of_operands = node.left->type;
    const std::string type = computed_type(type_of_operands);
    const bool is_division = node.op == BinaryOp::floor_div || node.op == BinaryOp::floor_mod;
    if (is_division && is_plain_division(node)) {
      const char symbol = node.op == BinaryOp::floor_div ? '/' : '%';
      return narrow(
          {fmt::format("{} {} {}", wrapped(value(node.left), kProduct), symbol, wrapped(value(node.right), kUnary)),
           kProduct},
          node.left->type);
    }
    const std::string arguments = fmt::format("({}, {})", value(node.left).text, value(node.right).text);
    if (node.left->type.is_float() && node.op >= BinaryOp::pow)
      return {fmt::format("{}{}{}", node.op == BinaryOp::pow && is_fast(type_of_operands) ? "fast_" : "", row.function,
                          arguments)};
    Code result{fmt::format("{}<{}>{}", row.function, type, arguments)};
    return is_small_integer(node.left->type) ? narrow(std::move(result), node.left->type) : result;
  }

  std::string shift_amount(const Expr& amount) {
    if (ir::constant_int(amount)) return value(amount).text;
    return fmt::format("({} & {})", wrapped(value(amount), kBitAnd), amount->type.bits - 1);
  }

  Code select(const ir::Select& node) {
    if (context_.proven.contains(&node)) return value(node.then);
    const std::string condition = wrapped(value(node.condition), kOr);
    const size_t assumed = context_.facts.assume(node.condition);
    const std::string then = wrapped(value(node.then), kOr);
    context_.facts.forget(assumed);
    return {fmt::format("{} ? {} : {}", condition, then, wrapped(value(node.otherwise), kTernary)), kTernary};
  }

  Code cast(const Expr& from, DType to) {
    const Code code = value(from);
    if (to.is_bool()) return from->type.is_bool() ? code : Code{wrapped(code, kCompare) + " != 0", kEqual};
    if (is_small_integer(to)) return {fmt::format("{}({})", wrapping(to), code.text)};
    if (computed_type(from->type) == computed_type(to)) return code;
    if (from->type == ir::kFloat64 && to.is_small_float()) return {fmt::format("narrowed({})", code.text)};
    return {fmt::format("{}({})", computed_type(to), code.text)};
  }

  std::string bit_cast(const Expr& from, DType to) {
    std::string bits = element(from);
    if (from->type.is_bool()) bits = "uint8_t(" + bits + ")";
    return fmt::format("__builtin_bit_cast({}, {})", stored_type(to), bits);
  }

  Code reinterpret(const Expr& from, DType to) {
    if (to.is_nibble()) return nibble(fmt::format("nibble_of({})", element(from)), to);
    std::string text = bit_cast(from, to);
    if (to.is_small_float()) text = "to_float(" + text + ")";
    if (to.is_bool()) return {text + " != 0", kEqual};
    return {std::move(text)};
  }

  static Code nibble(const std::string& bits, DType to) {
    if (to.is_float()) return {"to_float(float4_e2m1{" + bits + "})"};
    return {to == ir::kInt4 ? "wrap_int4(" + bits + ")" : bits};
  }

 public:
  Code index(const Expr& expr) {
    if (!is_index_arithmetic(expr) || divides_or_compares_more(expr)) {
      const Code code = value(expr);
      return computed_type(expr->type) == context_.index_type ? code
                                                              : Code{context_.index_type + "(" + code.text + ")"};
    }
    count(expr);
    return std::visit(ir::overloaded{
                          [](const ir::IntImm& imm) { return literal(fmt::format("{}", imm.value)); },
                          [&](const ir::VarRef& ref) { return Code{context_.name(ref.var)}; },
                          [&](const ir::Unary& node) {
                            return Code{"-" + wrapped(index(node.operand), kPrimary), kUnary};
                          },
                          [&](const ir::Binary& node) {
                            const auto part = context_.lanes.parts.find(expr.get());
                            return part == context_.lanes.parts.end() ? index_binary(node) : in_run(part->second);
                          },
                          [&](const ir::Cast& node) { return index(node.value); },
                          [](const auto&) { return Code{}; },
                      },
                      expr->node);
  }

 private:
  // Sums and products may wrap around on the way, these may not.
  bool divides_or_compares_more(const Expr& expr) const {
    const auto* node = ir::as<ir::Binary>(expr);
    const bool may_wrap = !node || node->op == BinaryOp::add || node->op == BinaryOp::sub || node->op == BinaryOp::mul;
    return !may_wrap && (leaves_index_type(context_, node->left) || leaves_index_type(context_, node->right));
  }

  Code in_run(const LaneState::Part& part) {
    if (!part.plus_lane) return {part.text, kProduct};
    return {fmt::format("{} + {}", part.text, context_.name(context_.lanes.lane)), kSum};
  }

  Code index_binary(const ir::Binary& node) {
    const Operator& row = info(node.op);
    const bool is_division = node.op == BinaryOp::floor_div || node.op == BinaryOp::floor_mod;
    const bool plain = is_division && is_plain_division(node);
    if (row.symbol.empty() && !plain)
      return {fmt::format("{}<{}>({}, {})", row.function, context_.index_type, index(node.left).text,
                          index(node.right).text)};
    const std::string_view symbol = !plain ? row.symbol : node.op == BinaryOp::floor_div ? "/" : "%";
    const int precedence = plain ? static_cast<int>(kProduct) : row.precedence;
    return {fmt::format("{} {} {}", wrapped(index(node.left), precedence), symbol,
                        wrapped(index(node.right), precedence + 1)),
            precedence};
  }
};

}  // namespace

std::string value(Context& context, const Expr& expr) { return ValueEmitter(context).value(expr).text; }
std::string element(Context& context, const Expr& expr) { return ValueEmitter(context).element(expr); }

std::string keep_stored(Context& context, const ir::Let& let) {
  context.stored.erase(let.var.get());  // a loop may be written twice, with its accesses checked and without
  if (!let.var->type.is_small_float()) return "";
  const std::string place = ValueEmitter(context).stored_place(let.value);
  if (place.empty()) return "";
  const std::string name = context.names.fresh(context.names.of(let.var) + "_stored");
  context.stored[let.var.get()] = name;
  return fmt::format("const {} {} = {};", stored_type(let.var->type), name, place);
}
std::string unrounded(Context& context, const Expr& expr) { return ValueEmitter(context).unrounded(expr); }
std::string index(Context& context, const Expr& expr) { return ValueEmitter(context).index(expr).text; }

bool leaves_index_type(const Context& context, const Expr& expr) {
  if (context.index_type == "int64_t") return false;
  bool leaves = false;
  ir::walk(expr, [&](const Expr& part) {
    leaves |= part->type.is_int() && part->type.bits == 64 && !context.facts.range(part).within({INT32_MIN, INT32_MAX});
  });
  return leaves;
}
std::string summand(Context& context, const Expr& expr) { return wrapped(ValueEmitter(context).index(expr), kSum); }
std::string factor(Context& context, const Expr& expr) { return wrapped(ValueEmitter(context).index(expr), kUnary); }

std::string index(Context& context, const ir::Affine& form) {
  std::string text;
  const auto append = [&](int64_t sign_of, const std::string& term) {
    if (text.empty()) {
      text = sign_of < 0 ? "-" + term : term;
    } else {
      text += (sign_of < 0 ? " - " : " + ") + term;
    }
  };
  for (const auto& [var, coefficient] : form.terms) {
    const std::string& name = context.names.of(var);
    const int64_t magnitude = std::abs(coefficient);
    append(coefficient, magnitude == 1 ? name : fmt::format("{} * {}", name, magnitude));
  }
  if (form.constant != 0 || text.empty()) append(form.constant, fmt::format("{}", std::abs(form.constant)));
  return text;
}

}  // namespace tilepilot::targets::c
