// Activation functions as formulas of scalar operations.
#include <cmath>

#include "agent/builtin/import/import.h"

namespace tilepilot::agent::builtin {

namespace {

using Results = std::vector<int>;

// Formulas read better with operators.
class Formula {
 public:
  Formula(PrimitiveBuilder& build, int id) : build_(&build), id_(id) {}
  int id() const { return id_; }
  Formula number(double value) const { return {*build_, build_->constant(value)}; }
  Formula apply(ScalarOp op) const { return {*build_, build_->map(op, {id_})}; }
  Formula with(ScalarOp op, Formula other) const { return {*build_, build_->map(op, {id_, other.id_})}; }
  Formula choose(Formula then, Formula otherwise) const {
    return {*build_, build_->map(ScalarOp::select, {id_, then.id_, otherwise.id_})};
  }

 private:
  PrimitiveBuilder* build_;
  int id_;
};

Formula operator+(Formula a, Formula b) { return a.with(ScalarOp::add, b); }
Formula operator+(Formula a, double b) { return a + a.number(b); }
Formula operator-(Formula a, Formula b) { return a.with(ScalarOp::sub, b); }
Formula operator-(Formula a, double b) { return a - a.number(b); }
Formula operator-(Formula a) { return a.apply(ScalarOp::neg); }
Formula operator*(Formula a, Formula b) { return a.with(ScalarOp::mul, b); }
Formula operator*(Formula a, double b) { return a * a.number(b); }
Formula operator/(Formula a, Formula b) { return a.with(ScalarOp::div, b); }
Formula operator/(Formula a, double b) { return a / a.number(b); }
Formula greater(Formula a, double b) { return a.with(ScalarOp::gt, a.number(b)); }
Formula at_least(Formula a, double b) { return a.with(ScalarOp::maximum, a.number(b)); }
Formula at_most(Formula a, double b) { return a.with(ScalarOp::minimum, a.number(b)); }
Formula exponential(Formula a) { return a.apply(ScalarOp::exp); }

Formula relu(Formula x) { return at_least(x, 0); }
Formula hard_sigmoid(Formula x) { return at_most(at_least(x + 3.0, 0), 6) / 6.0; }

Formula softplus(Formula x, double beta, double threshold) {
  Formula scaled = x * beta;
  Formula smooth = exponential(scaled).apply(ScalarOp::log1p) / beta;
  return greater(scaled, threshold).choose(x, smooth);
}

Formula gelu(Formula x, const std::string& approximate) {
  if (approximate == "tanh") {
    Formula inner = (x + x * x * x * 0.044715) * std::sqrt(2 / M_PI);
    return x * 0.5 * (inner.apply(ScalarOp::tanh) + 1.0);
  }
  return x * 0.5 * ((x * M_SQRT1_2).apply(ScalarOp::erf) + 1.0);
}

Formula elu(Formula x, double alpha, double scale, double input_scale) {
  Formula below = (exponential(x * input_scale) - 1.0) * (alpha * scale);
  return greater(x, 0).choose(x * scale, below);
}

using Rule = Formula (*)(Formula x, NodeImport& in);

struct Row {
  const char* name;
  Rule rule;
};

constexpr Row kRows[] = {
    {"relu", [](Formula x, NodeImport&) { return relu(x); }},
    {"relu6", [](Formula x, NodeImport&) { return at_most(relu(x), 6); }},
    {"silu", [](Formula x, NodeImport&) { return x * x.apply(ScalarOp::sigmoid); }},
    {"gelu",
     [](Formula x, NodeImport& in) {
       auto* given = in.keyword("approximate");
       return gelu(x, given ? std::get<std::string>(given->data) : in.text(1, "none"));
     }},
    {"leaky_relu", [](Formula x, NodeImport& in) { return greater(x, 0).choose(x, x * in.number(1, 0.01)); }},
    {"softplus", [](Formula x, NodeImport& in) { return softplus(x, in.number(1, 1), in.number(2, 20)); }},
    {"mish", [](Formula x, NodeImport&) { return x * softplus(x, 1, 20).apply(ScalarOp::tanh); }},
    {"softsign", [](Formula x, NodeImport&) { return x / (x.apply(ScalarOp::abs) + 1.0); }},
    {"hardsigmoid", [](Formula x, NodeImport&) { return hard_sigmoid(x); }},
    {"hardswish", [](Formula x, NodeImport&) { return x * hard_sigmoid(x); }},
    {"elu", [](Formula x, NodeImport& in) { return elu(x, in.number(1, 1), in.number(2, 1), in.number(3, 1)); }},
    {"celu", [](Formula x, NodeImport& in) { return elu(x, in.number(1, 1), 1, 1 / in.number(1, 1)); }},
    {"selu", [](Formula x, NodeImport&) { return elu(x, 1.6732632423543772, 1.0507009873554805, 1); }},
    {"log_sigmoid",
     [](Formula x, NodeImport&) {
       return at_most(x, 0) - exponential(-x.apply(ScalarOp::abs)).apply(ScalarOp::log1p);
     }},
    {"tanhshrink", [](Formula x, NodeImport&) { return x - x.apply(ScalarOp::tanh); }},
    {"threshold",
     [](Formula x, NodeImport& in) { return greater(x, in.number(1, 0)).choose(x, x.number(in.number(2, 0))); }},
};

}  // namespace

void add_activations(HandlerTable& table) {
  for (const Row& row : kRows)
    table[std::string("aten::") + row.name] = [rule = row.rule](NodeImport& in) -> Results {
      int x = in.operand(0);
      if (!is_float(in.at(x).dtype)) return {};
      return {rule(Formula(in.build, x), in).id()};
    };
}

}  // namespace tilepilot::agent::builtin
