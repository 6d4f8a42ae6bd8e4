#include "compiler/targets/c/operation_count.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::c {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::MathFn;

// What a value's key begins with.
enum class Tag : uint64_t {
  integer,
  floating,
  variable,
  load,
  unary,
  binary,
  math,
  select,
  cast,
  reinterpret,
  sum,
  with_constants,
  step,
  below,
  not_negative,
  rounded
};
constexpr uint64_t tag(Tag kind) { return static_cast<uint64_t>(kind); }
uint64_t bits_of_type(DType type) { return static_cast<uint64_t>(type.code) << 8 | type.bits; }
uint64_t bits_of_pointer(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Functions of the device's prelude, for each element of the count that is their first template argument.
struct PreludeFunction {
  std::string_view name;
  int64_t fp32, integer, comparisons, conversions;
};
constexpr PreludeFunction kPreludeFunctions[] = {{"split_floats", 1, 0, 0, 2},  {"low_digits", 1, 1, 0, 1},
                                                 {"bound_sums", 0, 0, 1, 0},    {"keep_largest", 0, 0, 1, 0},
                                                 {"keep_smallest", 0, 0, 1, 0}, {"narrow_pair", 0, 0, 0, 2}};
// Of sums of four registers, which are bounded and added.
constexpr std::string_view kSplitProduct = "split_product";
constexpr int64_t kSplitSums = 4;

bool is_power_of_two(const Expr& expr) {
  const auto value = ir::constant_int(expr);
  return value && *value > 0 && (*value & (*value - 1)) == 0;
}

bool is_numeral(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// An integer without the casts around it that keep it one.
const Expr& without_casts(const Expr& expr) {
  const auto* cast = ir::as<ir::Cast>(expr);
  const bool keeps = cast && expr->type.is_int() && cast->value->type.is_int() && !expr->type.is_nibble();
  return keeps ? without_casts(cast->value) : expr;
}

// Of integers that do not have to be cut to their width.
const ir::Binary* as_sum(const Expr& expr) {
  const auto* node = ir::as<ir::Binary>(expr);
  const bool is_sum = node && (node->op == BinaryOp::add || node->op == BinaryOp::sub);
  return is_sum && expr->type.is_int() && expr->type.bits >= 32 ? node : nullptr;
}

const ir::Binary* as_product(const Expr& expr) {
  const auto* node = ir::as<ir::Binary>(expr);
  return node && node->op == BinaryOp::mul ? node : nullptr;
}

// The product that is part of a sum of floats, which no rounding comes between; null: none.
const Expr* product_in(const ir::Binary& sum, DType type) {
  if (type != ir::kFloat32 && type != ir::kFloat64) return nullptr;
  if (sum.op != BinaryOp::add && sum.op != BinaryOp::sub) return nullptr;
  return as_product(sum.left) ? &sum.left : as_product(sum.right) ? &sum.right : nullptr;
}

Operation arithmetic(DType type) {
  return type.is_int() ? Operation::integer : type == ir::kFloat64 ? Operation::fp64 : Operation::fp32;
}
Operation function_of(DType type) { return type == ir::kFloat64 ? Operation::fp64 : Operation::special; }

}  // namespace

void OperationCount::start_statement(Span span) {
  span_ = span;
  ++statement_;
  absorbed_.clear();
  indices_.clear();
}

int64_t OperationCount::take() {
  if (written_.total() == 0) return -1;
  operation_counters_.push_back({{{span_, std::exchange(written_, {})}}});
  return static_cast<int64_t>(operation_counters_.size()) - 1;
}

int64_t OperationCount::open_loop() {
  const bool is_something = take() >= 0;
  if (!is_something) operation_counters_.emplace_back();
  const auto before = static_cast<int64_t>(operation_counters_.size()) - 1;
  scopes_.push_back({true, before});
  return before;
}

void OperationCount::close() {
  for (const Number value : scopes_.back().counted) counted_.erase(value);
  scopes_.pop_back();
}

OperationCount::Number OperationCount::fresh(bool is_constant) {
  values_.push_back({scopes_.size() - 1, is_constant});
  return values_.size() - 1;
}

OperationCount::Number OperationCount::number(Key key, const std::vector<Number>& parts) {
  Value value{0, true};
  for (const Number part : parts) {
    key.push_back(part);
    value.depth = std::max(value.depth, values_[part].depth);
    value.is_constant = value.is_constant && values_[part].is_constant;
  }
  const auto [place, is_added] = numbers_.try_emplace(std::move(key), values_.size());
  if (is_added) values_.push_back(value);
  return place->second;
}

OperationCount::Number OperationCount::number_of_load(const ir::Load& load) {
  Key key{tag(Tag::load), statement_, bits_of_pointer(load.buffer.get())};
  for (const Expr& index : load.indices) key.push_back(number(index));
  const auto [place, is_added] = numbers_.try_emplace(std::move(key), values_.size());
  if (is_added) fresh(false);
  return place->second;
}

OperationCount::Number OperationCount::number(const Expr& given) {
  const Expr& expr = without_casts(given);
  const uint64_t type = bits_of_type(expr->type);
  return std::visit(
      ir::overloaded{
          [&](const ir::IntImm& imm) {
            return number({tag(Tag::integer), static_cast<uint64_t>(imm.value)}, {});
          },
          [&](const ir::FloatImm& imm) {
            return number({tag(Tag::floating), type, std::bit_cast<uint64_t>(imm.value)}, {});
          },
          [&](const ir::VarRef& ref) {
            const auto found = vars_.find(ref.var.get());
            if (found != vars_.end()) return found->second;
            values_.push_back({0, false});  // of the launch: bound before everything else
            return vars_[ref.var.get()] = values_.size() - 1;
          },
          [&](const ir::Load& node) { return number_of_load(node); },
          [&](const ir::Unary& node) {
            return number({tag(Tag::unary), static_cast<uint64_t>(node.op), type}, {number(node.operand)});
          },
          [&](const ir::Binary& node) {
            if (as_sum(expr)) {
              Sum sum;
              collect(expr, false, sum);
              return number_of_sum(sum);
            }
            return number({tag(Tag::binary), static_cast<uint64_t>(node.op), type},
                          {number(node.left), number(node.right)});
          },
          [&](const ir::Math& node) {
            return number({tag(Tag::math), static_cast<uint64_t>(node.function), type}, {number(node.argument)});
          },
          [&](const ir::Select& node) {
            return number({tag(Tag::select), type},
                          {number(node.condition), number(node.then), number(node.otherwise)});
          },
          [&](const ir::Cast& node) {
            return number({tag(Tag::cast), type}, {number(node.value)});
          },
          [&](const ir::Reinterpret& node) {
            return number({tag(Tag::reinterpret), type}, {number(node.value)});
          },
      },
      expr->node);
}

void OperationCount::collect(const Expr& given, bool is_subtracted, Sum& sum) {
  const Expr& expr = without_casts(given);
  if (const ir::Binary* node = as_sum(expr)) {
    collect(node->left, is_subtracted, sum);
    return collect(node->right, is_subtracted != (node->op == BinaryOp::sub), sum);
  }
  const Number value = number(expr);
  if (values_[value].is_constant)
    sum.constants.push_back(value);
  else
    sum.terms.emplace_back(value, is_subtracted);
}

// The sums that this one consists of.
void OperationCount::absorb(const Expr& sum) {
  for (const Expr* operand : {&as_sum(sum)->left, &as_sum(sum)->right}) {
    const Expr& part = without_casts(*operand);
    if (!as_sum(part)) continue;
    absorbed_.insert(part.get());
    absorb(part);
  }
}

OperationCount::Number OperationCount::number_of_sum(const Sum& sum) {
  Number all = 0;
  if (sum.terms.size() == 1 && !sum.terms[0].second) {
    all = sum.terms[0].first;
  } else {
    std::vector<std::pair<Number, bool>> terms = sum.terms;
    std::sort(terms.begin(), terms.end());
    Key key{tag(Tag::sum)};
    std::vector<Number> parts;
    for (const auto& [value, is_subtracted] : terms) {
      key.push_back(is_subtracted);
      parts.push_back(value);
    }
    all = number(std::move(key), parts);
  }
  if (sum.constants.empty()) return all;
  std::vector<Number> parts = sum.constants;
  parts.push_back(all);
  return number({tag(Tag::with_constants)}, parts);
}

OperationCount::Number OperationCount::number_of_index(const Expr& given) {
  const Expr& expr = without_casts(given);
  if (as_sum(expr)) {
    Sum sum;
    collect(expr, false, sum);
    if (!sum.terms.empty()) sum.constants.clear();
    return number_of_sum(sum);
  }
  const ir::Binary* product = as_product(expr);
  if (product == nullptr) return number(expr);
  return number({tag(Tag::binary), static_cast<uint64_t>(product->op), bits_of_type(expr->type)},
                {number_of_index(product->left), number_of_index(product->right)});
}

// The scope in which it is computed: before the outermost loop that leaves it unchanged, or where it stands.
size_t OperationCount::home(Number value) const {
  for (size_t scope = values_[value].depth + 1; scope < scopes_.size(); ++scope)
    if (scopes_[scope].is_loop) return scope - 1;
  return scopes_.size() - 1;
}

bool OperationCount::is_new(Number value) {
  if (paused_ > 0 || !counted_.insert(value).second) return false;
  scopes_[home(value)].counted.push_back(value);
  return true;
}

void OperationCount::count(Number value, Operation operation, int64_t times) {
  const size_t scope = home(value) + 1;
  if (scope == scopes_.size()) return add(operation, times);
  std::vector<OperationCounter::Part>& parts = operation_counters_[static_cast<size_t>(scopes_[scope].before)].parts;
  auto found =
      std::find_if(parts.begin(), parts.end(), [&](const OperationCounter::Part& part) { return part.span == span_; });
  if (found == parts.end()) found = parts.insert(found, OperationCounter::Part{span_, {}});
  found->operations[operation] += times;
}

// Summands that are known outside of a loop are added there.
void OperationCount::count_sum(Sum sum, bool is_index) {
  std::sort(sum.terms.begin(), sum.terms.end(), [&](const auto& a, const auto& b) {
    return std::pair(values_[a.first].depth, a) < std::pair(values_[b.first].depth, b);
  });
  Sum known;
  // What is subtracted from nothing, or from constants.
  size_t adds = std::all_of(sum.terms.begin(), sum.terms.end(), [](const auto& term) { return term.second; });
  for (size_t k = 0; k < sum.terms.size(); ++k) {
    known.terms.push_back(sum.terms[k]);
    adds += k > 0;
    const bool is_last = k + 1 == sum.terms.size();
    if (!is_last && values_[sum.terms[k].first].depth == values_[sum.terms[k + 1].first].depth) continue;
    const Number partial = number_of_sum(known);
    if (adds > 0) count_once(partial, Operation::integer, static_cast<int64_t>(std::exchange(adds, 0)));
    known.terms = {{partial, false}};
  }
  if (is_index || sum.constants.empty() || sum.terms.empty()) return;
  known.constants = sum.constants;
  count_once(number_of_sum(known), Operation::integer);
}

void OperationCount::count_product(const Expr& expr, const ir::Binary& product) {
  const bool is_index = indices_.contains(expr.get());
  if (is_index) {
    if (is_constant(product.right)) use_as_index(product.left);
    if (is_constant(product.left)) use_as_index(product.right);
  }
  count_once(is_index ? number_of_index(expr) : number(expr), arithmetic(expr->type));
}

void OperationCount::use_as_index(const Expr& expr) { indices_.insert(without_casts(expr).get()); }

void OperationCount::operation(const Expr& expr) {
  if (paused_ > 0) return;
  if (const auto found = absorbed_.find(expr.get()); found != absorbed_.end()) {
    absorbed_.erase(found);
    return;
  }
  if (as_sum(expr)) {
    Sum sum;
    collect(expr, false, sum);
    absorb(expr);
    return count_sum(std::move(sum), indices_.contains(expr.get()));
  }
  if (const ir::Binary* product = as_product(expr)) return count_product(expr, *product);
  const Number value = number(expr);
  const DType type = expr->type;
  std::visit(ir::overloaded{
                 [&](const ir::Load&) {
                   if (type.is_bool()) count_once(value, Operation::comparison);
                   if (type.is_small_float()) count_once(value, Operation::conversion);
                 },
                 [&](const ir::Unary&) {
                   if (type.is_int()) count_once(value, Operation::integer);
                 },
                 [&](const ir::Binary& node) { binary(value, node); },
                 [&](const ir::Math& node) { math(value, node, type); },
                 [&](const ir::Select& node) {
                   if (!is_constant(node.condition)) count_once(value, Operation::comparison);
                 },
                 [&](const ir::Cast& node) { cast(value, node.value->type, type); },
                 [&](const ir::Reinterpret&) {
                   if (type.is_bool()) count_once(value, Operation::comparison);
                   if (type.is_small_float()) count_once(value, Operation::conversion);
                 },
                 [](const auto&) {},
             },
             expr->node);
}

void OperationCount::binary(Number value, const ir::Binary& node) {
  const DType type = node.left->type;
  switch (node.op) {
    case BinaryOp::add:
    case BinaryOp::sub: {
      const Expr* product = product_in(node, type);
      const bool is_fused = product && !is_constant(*product);
      if (is_fused) absorbed_.insert(product->get());
      return count_once(value, is_fused && type == ir::kFloat32 ? Operation::fp32_fma : arithmetic(type));
    }
    case BinaryOp::mul:
      return;  // see count_product
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
      return count_once(value, is_power_of_two(node.right) ? Operation::integer : Operation::integer_division);
    case BinaryOp::div:
    case BinaryOp::pow:
    case BinaryOp::atan2:
    case BinaryOp::hypot:
    case BinaryOp::ldexp:
    case BinaryOp::nextafter:
    case BinaryOp::fmod:
      return count_once(value, function_of(type));
    case BinaryOp::shl:
    case BinaryOp::shr:  // by an amount that has to be brought below the width first
      return count_once(value, Operation::integer, ir::constant_int(node.right) ? 1 : 2);
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
      return type.is_int() ? count_once(value, Operation::integer) : void();
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::gt:
    case BinaryOp::ge:
      use_as_index(node.left);
      use_as_index(node.right);
      return count_once(value, Operation::comparison);
    case BinaryOp::min:
    case BinaryOp::max:
      return count_once(value, Operation::comparison);
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      return;
  }
}

void OperationCount::math(Number value, const ir::Math& node, DType type) {
  switch (node.function) {
    case MathFn::abs:
    case MathFn::popcount:
    case MathFn::leading_zeros:
      return type.is_int() ? count_once(value, Operation::integer) : void();
    case MathFn::isnan:
    case MathFn::isinf:
    case MathFn::isfinite:
      return count_once(value, Operation::comparison);
    case MathFn::floor:
    case MathFn::ceil:
    case MathFn::round:
    case MathFn::trunc:
      return count_once(value, Operation::conversion);
    case MathFn::sigmoid:  // the reciprocal of a sum with an exponential
      if (values_[value].is_constant || !is_new(value)) return;
      count(value, arithmetic(type));
      return count(value, function_of(type), 2);
    default:
      return count_once(value, function_of(type));
  }
}

// Small floats are in a float already; what they are rounded by counts where it is written.
void OperationCount::cast(Number value, DType from, DType to) {
  const auto computed = [](DType type) { return type.is_small_float() ? ir::kFloat32 : type; };
  const bool to_nibble = to.is_int() && to.is_nibble();
  if (to.is_bool() && !from.is_bool())
    count_once(value, Operation::comparison);
  else if (!to.is_bool() && (to_nibble || ((from.is_float() || to.is_float()) && computed(from) != computed(to))))
    count_once(value, Operation::conversion);
}

void OperationCount::rounding(const Expr& expr, bool and_back) {
  const Number value = number({tag(Tag::rounded), and_back}, {number(expr)});
  count_once(value, Operation::conversion, and_back ? 2 : 1);
}

void OperationCount::reciprocal_quotient() {
  add(Operation::fp32);
  add(Operation::fp32_fma, 2);
}

void OperationCount::call(std::string_view function) {
  const size_t open = function.find('<');
  const std::string_view name = function.substr(0, open);
  if (name == kSplitProduct) {
    add(Operation::comparison, kSplitSums);
    add(Operation::fp32, kSplitSums);
  }
  int64_t count = 1;
  if (open != std::string_view::npos)
    std::from_chars(function.data() + open + 1, function.data() + function.size(), count);
  for (const PreludeFunction& row : kPreludeFunctions) {
    if (row.name != name) continue;
    add(Operation::fp32, row.fp32 * count);
    add(Operation::integer, row.integer * count);
    add(Operation::comparison, row.comparisons * count);
    add(Operation::conversion, row.conversions * count);
  }
}

void OperationCount::offset(const std::vector<Expr>& indices, const std::vector<std::string>& steps) {
  if (paused_ > 0) return;
  Sum sum;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const Expr& index = without_casts(indices[axis]);
    if (ir::constant_int(index) == 0) continue;
    use_as_index(index);
    if (steps[axis] == "1") {
      collect(index, false, sum);
      if (!as_sum(index)) continue;
      absorbed_.insert(index.get());
      absorb(index);
      continue;
    }
    const Number place = number_of_index(index);
    if (values_[place].is_constant && is_numeral(steps[axis])) continue;
    Number step = number({tag(Tag::step), texts_.try_emplace(steps[axis], texts_.size()).first->second}, {place});
    values_[step].is_constant = false;
    count_once(step, Operation::integer);
    sum.terms.emplace_back(step, false);
  }
  count_sum(std::move(sum), true);
}

void OperationCount::bounds(const Expr& index, const Expr& extent, bool may_be_negative) {
  if (paused_ > 0) return;
  use_as_index(index);
  const Number at = number(index);
  count_once(number({tag(Tag::below)}, {at, number(extent)}), Operation::comparison);
  if (may_be_negative) count_once(number({tag(Tag::not_negative)}, {at}), Operation::comparison);
}

}  // namespace tilepilot::targets::c
