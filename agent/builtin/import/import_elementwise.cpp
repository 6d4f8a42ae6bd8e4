// Arithmetic, comparisons, selection and casts.
#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

void add_unary(HandlerTable& table) {
  for (int i = 0; i <= static_cast<int>(ScalarOp::cast); ++i) {
    const ScalarOpInfo& row = info(static_cast<ScalarOp>(i));
    if (row.arity != 1) continue;
    table["aten::" + std::string(row.name)] = [op = row.op](NodeImport& in) -> Results {
      int x = in.operand(0);
      bool exact = op == ScalarOp::neg || op == ScalarOp::abs || op == ScalarOp::logical_not;
      if (!is_float(in.at(x).dtype) && !exact) return {};
      return {in.build.map(op, {x})};
    };
  }
}

void add_binary(HandlerTable& table) {
  static const std::pair<const char*, ScalarOp> rows[] = {
      {"mul", ScalarOp::mul},
      {"maximum", ScalarOp::maximum},
      {"minimum", ScalarOp::minimum},
      {"eq", ScalarOp::eq},
      {"ne", ScalarOp::ne},
      {"lt", ScalarOp::lt},
      {"le", ScalarOp::le},
      {"gt", ScalarOp::gt},
      {"ge", ScalarOp::ge},
      {"logical_and", ScalarOp::logical_and},
      {"logical_or", ScalarOp::logical_or},
  };
  for (auto [name, op] : rows)
    table[std::string("aten::") + name] = [op = op](NodeImport& in) -> Results {
      return {in.build.map(op, {in.operand(0), in.operand(1)})};
    };
}

// Of Booleans `~`, `&` and `|` are the logical operators; of integers they stay calls of PyTorch.
void add_logic_of_bits(HandlerTable& table) {
  static const std::pair<const char*, ScalarOp> rows[] = {
      {"bitwise_not", ScalarOp::logical_not},
      {"bitwise_and", ScalarOp::logical_and},
      {"bitwise_or", ScalarOp::logical_or},
      {"bitwise_xor", ScalarOp::ne},
      {"__and__", ScalarOp::logical_and},
      {"__or__", ScalarOp::logical_or},
      {"__xor__", ScalarOp::ne},
  };
  for (auto [name, op] : rows)
    table[std::string("aten::") + name] = [op = op](NodeImport& in) -> Results {
      std::vector<int> operands;
      for (size_t i = 0; i < static_cast<size_t>(info(op).arity); ++i) {
        if (!in.is_tensor(i)) return {};
        operands.push_back(in.operand(i));
        if (in.at(operands.back()).dtype != "bool") return {};
      }
      return {in.build.map(op, operands)};
    };
}

Results scaled_sum(NodeImport& in, ScalarOp op, size_t left, size_t right) {
  double alpha = in.keyword_number("alpha", in.arg_count() > 2 ? in.number(2, 1) : 1);
  int other = in.operand(right);
  if (alpha != 1) other = in.build.map(ScalarOp::mul, {other, in.build.constant(alpha)});
  return {in.build.map(op, {in.operand(left), other})};
}

Results divide(NodeImport& in) {
  if (in.keyword("rounding_mode")) return {};
  return {in.build.map(ScalarOp::div, {in.operand(0), in.operand(1)})};
}

// Small integer powers as products, roots as roots.
Results power(NodeImport& in) {
  if (!in.is_tensor(0) || in.is_tensor(1)) return {};
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype)) return {};
  double exponent = in.number(1, 1);
  auto& build = in.build;
  if (exponent == 0.5) return {build.map(ScalarOp::sqrt, {x})};
  if (exponent == -0.5) return {build.map(ScalarOp::rsqrt, {x})};
  if (exponent == -1) return {build.map(ScalarOp::div, {build.constant(1), x})};
  if (exponent == 1) return {x};
  if (exponent != 2 && exponent != 3 && exponent != 4) return {build.map(ScalarOp::pow, {x, build.constant(exponent)})};
  int square = build.map(ScalarOp::mul, {x, x}, "square");
  if (exponent == 2) return {square};
  return {build.map(ScalarOp::mul, {square, exponent == 3 ? x : square})};
}

Results clamp(NodeImport& in, size_t low, size_t high) {
  int x = in.operand(0);
  if (!is_float(in.at(x).dtype)) return {};
  if (in.has(low)) x = in.build.map(ScalarOp::maximum, {x, in.operand(low)});
  if (in.has(high)) x = in.build.map(ScalarOp::minimum, {x, in.operand(high)});
  return {in.build.cast(x, in.result().dtype)};
}

Results to_dtype(NodeImport& in) {
  for (auto& arg : in.node().args)
    if (std::holds_alternative<eval::DeviceName>(arg.data)) return {};
  if (in.keyword("device") || in.keyword("memory_format")) return {};
  return {in.build.cast(in.operand(0), in.result().dtype)};
}

Results filled(NodeImport& in, double value) {
  return {in.build.expand(in.build.constant(value, in.result().dtype), in.result().shape)};
}

}  // namespace

void add_elementwise(HandlerTable& table) {
  add_unary(table);
  add_binary(table);
  add_logic_of_bits(table);
  table["aten::add"] = [](NodeImport& in) { return scaled_sum(in, ScalarOp::add, 0, 1); };
  table["aten::sub"] = [](NodeImport& in) { return scaled_sum(in, ScalarOp::sub, 0, 1); };
  table["aten::rsub"] = [](NodeImport& in) { return scaled_sum(in, ScalarOp::sub, 1, 0); };
  table["aten::div"] = divide;
  table["aten::true_divide"] = divide;
  table["aten::pow"] = power;
  table["aten::square"] = [](NodeImport& in) -> Results {
    return {in.build.map(ScalarOp::mul, {in.operand(0), in.operand(0)}, "square")};
  };
  table["aten::reciprocal"] = [](NodeImport& in) -> Results {
    return {in.build.map(ScalarOp::div, {in.build.constant(1), in.operand(0)})};
  };
  table["aten::clamp"] = [](NodeImport& in) { return clamp(in, 1, 2); };
  table["aten::clip"] = table["aten::clamp"];
  table["aten::hardtanh"] = [](NodeImport& in) -> Results {
    int low = in.build.constant(in.number(1, -1)), high = in.build.constant(in.number(2, 1));
    return {in.build.map(ScalarOp::minimum, {in.build.map(ScalarOp::maximum, {in.operand(0), low}), high})};
  };
  table["aten::clamp_min"] = [](NodeImport& in) { return clamp(in, 1, 99); };
  table["aten::clamp_max"] = [](NodeImport& in) { return clamp(in, 99, 1); };
  table["aten::where"] = [](NodeImport& in) -> Results {
    if (in.arg_count() != 3) return {};
    return {in.build.map(ScalarOp::select, {in.operand(0), in.operand(1), in.operand(2)})};
  };
  table["aten::masked_fill"] = [](NodeImport& in) -> Results {
    int filled = in.build.map(ScalarOp::select, {in.operand(1), in.operand(2), in.operand(0)});
    if (in.shape(filled) != in.shape(in.operand(0))) return {};
    return {filled};
  };
  table["aten::to"] = to_dtype;
  table["aten::_to_copy"] = to_dtype;
  table["aten::full_like"] = [](NodeImport& in) { return in.is_tensor(1) ? Results{} : filled(in, in.number(1, 0)); };
  table["aten::zeros_like"] = [](NodeImport& in) { return filled(in, 0); };
  table["aten::ones_like"] = [](NodeImport& in) { return filled(in, 1); };
}

}  // namespace tilepilot::agent::builtin
