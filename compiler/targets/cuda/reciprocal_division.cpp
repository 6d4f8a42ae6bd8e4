#include "compiler/targets/cuda/reciprocal_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cuda/operation_counters.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using c::Context;
using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kFewest = 4;  // divisions that pay for the reciprocal and the test

const ir::Binary* as_division(const Expr& expr) {
  const auto* node = ir::as<ir::Binary>(expr);
  return node && node->op == ir::BinaryOp::div && expr->type == ir::kFloat32 ? node : nullptr;
}

// Of which the compiler makes a product.
bool is_power_of_two(const Expr& expr) {
  const auto* number = ir::as<ir::FloatImm>(expr);
  int exponent = 0;
  return number && std::fabs(std::frexp(number->value, &exponent)) == 0.5;
}

// A nest of unrolled loops around stores and copies of vectors, without anything that threads do together: it may stand
// in a branch that some threads take.
class Nest {
 public:
  explicit Nest(const ir::For& loop) : bound_(variables_of(loop)) { is_plain_ = enter(loop, 1); }

  std::vector<Expr> divisions() const {
    std::vector<Expr> found;
    if (!is_plain_) return found;
    int64_t count = 0;
    for (const auto& [expr, times] : divisions_) {
      const ir::Binary& division = *as_division(expr);
      if (is_power_of_two(division.right) || !is_fixed(division.right) || !is_known(division.left)) continue;
      found.push_back(expr);
      count += times;
    }
    if (count < kFewest) found.clear();
    return found;
  }

 private:
  ir::Variables bound_;
  bool is_plain_ = false;
  std::vector<std::pair<Expr, int64_t>> divisions_;                             // and how often each is done
  std::unordered_map<const ir::BufferData*, std::vector<std::string>> stored_;  // where; "" may be anywhere

  static ir::Variables variables_of(const ir::For& loop) {
    ir::Variables vars = ir::bound_in(loop.body);
    for (const ir::Var& var : loop.vars) vars.insert(var.get());
    return vars;
  }

  static std::string place(const std::vector<Expr>& indices) {
    std::string text;
    for (const Expr& index : indices) text += ir::to_text(index) + ";";
    return text;
  }

  bool enter(const ir::For& loop, int64_t times) {
    const auto extent = ir::constant_int(loop.extents[0]);
    return loop.kind == ir::LoopKind::unrolled && extent && enter(loop.body, times * *extent);
  }

  bool enter(const Stmt& stmt, int64_t times) {
    if (const auto* list = ir::as<ir::Block>(stmt))
      return std::all_of(list->body.begin(), list->body.end(), [&](const Stmt& part) { return enter(part, times); });
    if (const auto* loop = ir::as<ir::For>(stmt)) return enter(*loop, times);
    if (const auto* call = ir::as<ir::ExternCall>(stmt)) {
      if (!call->function.starts_with("copy_vector")) return false;
      if (const auto* to = std::get_if<ir::Region>(&call->arguments[0])) stored_[to->buffer.get()].emplace_back();
      return true;
    }
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr) return false;
    stored_[store->buffer.get()].push_back(place(store->indices));
    ir::walk(store->value, [&](const Expr& part) {
      if (as_division(part)) divisions_.emplace_back(part, times);
    });
    return true;
  }

  // Whether what the expression loads is in registers that the nest leaves alone, or changes there only.
  bool reads_registers(const Expr& expr, bool may_change) const {
    bool fits = true;
    ir::walk(expr, [&](const Expr& part) {
      const auto* load = ir::as<ir::Load>(part);
      if (load == nullptr) return;
      const auto stored = stored_.find(load->buffer.get());
      const bool changes = stored != stored_.end();
      fits = fits && load->buffer->scope == ir::Scope::local && (!changes || may_change);
      if (!changes) return;
      for (const std::string& there : stored->second) fits = fits && there == place(load->indices);
    });
    return fits;
  }
  bool is_fixed(const Expr& divisor) const { return !ir::mentions(divisor, bound_) && reads_registers(divisor, false); }
  bool is_known(const Expr& dividend) const { return reads_registers(dividend, true); }
};

class TestWriter {
 public:
  TestWriter(Context& context, const std::vector<Expr>& divisions)
      : context_(context), divisions_(divisions), name_(context.names.fresh("by_reciprocal")) {}

  std::string write(const ir::For& loop) {
    std::vector<std::string> divisors;
    for (const Expr& division : divisions_) {
      std::string test = fmt::format("has_safe_reciprocal({})", c::value(context_, as_division(division)->right));
      if (std::find(divisors.begin(), divisors.end(), test) == divisors.end()) divisors.push_back(std::move(test));
    }
    if (context_.operations) {
      const auto count = static_cast<int64_t>(divisors.size());
      context_.operations->add(c::Operation::comparison, 2 * count);
      context_.operations->add(c::Operation::special, count);  // reciprocals, which the loop does not change
    }
    cuda::write(context_, "bool {} = {};", name_, fmt::join(divisors, " && "));
    enter(loop);
    return name_;
  }

 private:
  Context& context_;
  const std::vector<Expr>& divisions_;
  const std::string name_;

  bool is_wanted(const Expr& part) const {
    return std::find(divisions_.begin(), divisions_.end(), part) != divisions_.end();
  }

  void enter(const ir::For& loop) {
    const bool divides = ir::contains(loop.body, [&](const Stmt& stmt) {
      bool found = false;
      if (const auto* store = ir::as<ir::Store>(stmt))
        ir::walk(store->value, [&](const Expr& part) { found = found || is_wanted(part); });
      return found;
    });
    if (!divides) return;
    const ir::Var& var = loop.vars[0];
    context_.wide.insert(var.get());
    begin_loop(context_);
    if (context_.operations) context_.operations->bind_constant(var);
    context_.body.line("#pragma unroll");
    context_.body.open("for ({1} {0} = 0; {0} < {2}; ++{0})", context_.names.of(var), context_.index_type,
                       c::factor(context_, loop.extents[0]));
    for (const Stmt& stmt : ir::statements(loop.body)) enter(stmt);
    end_scope(context_);
    context_.body.close();
  }

  void enter(const Stmt& stmt) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : list->body) enter(part);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      enter(*loop);
    } else if (const auto* store = ir::as<ir::Store>(stmt)) {
      ir::walk(store->value, [&](const Expr& part) {
        if (!is_wanted(part)) return;
        if (context_.operations) {
          context_.operations->add(c::Operation::integer, 2);
          context_.operations->add(c::Operation::comparison, 2);
        }
        cuda::write(context_, "{} &= is_safe_dividend({});", name_, c::value(context_, as_division(part)->left));
      });
    }
  }
};

}  // namespace

std::vector<Expr> reciprocal_divisions(const ir::For& loop) { return Nest(loop).divisions(); }

std::string write_reciprocal_test(Context& context, const ir::For& loop, const std::vector<Expr>& divisions) {
  return TestWriter(context, divisions).write(loop);
}

}  // namespace tilepilot::targets::cuda
