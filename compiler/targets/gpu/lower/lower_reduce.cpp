// Reductions: each thread combines its own registers, then threads combine theirs.
#include <fmt/format.h>

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/lower/lower.h"
#include "compiler/targets/gpu/lower/thread_reduction.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::ReduceOp;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

struct Combining {
  ReduceOp op;
  BinaryOp combines;
  bool of_magnitudes;
};
constexpr Combining kReductions[] = {
    {ReduceOp::sum, BinaryOp::add, false},       {ReduceOp::max, BinaryOp::max, false},
    {ReduceOp::min, BinaryOp::min, false},       {ReduceOp::abs_sum, BinaryOp::add, true},
    {ReduceOp::abs_max, BinaryOp::max, true},    {ReduceOp::bit_and, BinaryOp::bit_and, false},
    {ReduceOp::bit_or, BinaryOp::bit_or, false}, {ReduceOp::bit_xor, BinaryOp::bit_xor, false},
};
const Combining& row_of(ReduceOp op) {
  for (const Combining& row : kReductions)
    if (row.op == op) return row;
  __builtin_unreachable();
}

class ReduceLowering {
 public:
  ReduceLowering(Lowering& lowering, const Stmt& stmt)
      : lowering_(lowering),
        stmt_(stmt),
        reduce_(*ir::as<ir::Reduce>(stmt)),
        source_(lowering.fragment(reduce_.source.buffer)),
        target_(lowering.fragment(reduce_.destination.buffer)),
        type_(accumulator_type(reduce_.destination.buffer->type)) {}

  void run(Stmts& out) {
    partial_ = lowering_.local(reduce_.destination.buffer->name + "_part", type_, target_.register_count());
    own_registers(out);
    const auto join = [&](const Expr& a, const Expr& b) { return combined(a, b); };
    const auto scratch = lowering_.inference.scratch_buffers.find(stmt_.get());
    decide(scratch == lowering_.inference.scratch_buffers.end() ? nullptr : scratch->second);
    combine_threads(
        lowering_,
        {partial_, join, identity_of(reduce_.op, type_), modes_along(source_, static_cast<size_t>(reduce_.axis))},
        scratch == lowering_.inference.scratch_buffers.end() ? nullptr : lowering_.places.at(scratch->second.get()),
        span(), out);
    write(out);
  }

 private:
  Lowering& lowering_;
  const Stmt& stmt_;
  const ir::Reduce& reduce_;
  const layout::Fragment &source_, &target_;
  const ir::DType type_;
  Buffer partial_;

  Span span() const { return stmt_->span; }

  void decide(const Buffer& scratch) const {
    const auto along = modes_along(source_, static_cast<size_t>(reduce_.axis));
    int64_t lanes = 1;
    for (const ThreadMode& mode : split_modes(along, lowering_.threads).lanes) lanes *= mode.extent;
    std::string chosen = along.empty() ? "each thread its own registers" : "";
    if (lanes > 1) chosen = fmt::format("shuffles among {} lanes", lanes);
    if (scratch)
      chosen += fmt::format("{}{} bytes of shared memory", chosen.empty() ? "" : ", then ",
                            *ir::constant_int(scratch->shape[0]) * scratch->type.bytes());
    Decision decision{span(),
                      fmt::format("reduce {} -> {}", reduce_.source.buffer->name, reduce_.destination.buffer->name),
                      std::move(chosen)};
    if (scratch) decision.obstacles.emplace_back("not by shuffles alone: several warps hold parts of a result");
    lowering_.decisions.push_back(std::move(decision));
  }

  Expr combined(const Expr& a, const Expr& b) const {
    const Expr joined = ir::binary(row_of(reduce_.op).combines, b, a, span());
    if (!reduce_.nan_propagate || !type_.is_float()) return joined;
    const Expr has_nan =
        ir::binary(BinaryOp::logical_or, ir::math(ir::MathFn::isnan, a), ir::math(ir::MathFn::isnan, b), span());
    return ir::select(has_nan, ir::binary(BinaryOp::add, a, b, span()), joined, span());
  }

  // What a thread has is never NaN, so that the machine's own maximum is as good as a comparison.
  Stmt join(const Expr& to, const Expr& value) const {
    const BinaryOp op = row_of(reduce_.op).combines;
    if (type_.is_float() && !reduce_.nan_propagate && (op == BinaryOp::max || op == BinaryOp::min))
      return call(op == BinaryOp::max ? "keep_largest" : "keep_smallest", {element(partial_, {to}, span()), value},
                  span());
    return ir::make_stmt(ir::Store{partial_, {to}, combined(ir::load(partial_, {to}, span()), value)}, span());
  }

  // The register of the result to which each register of the source belongs.
  std::vector<int64_t> targets() const {
    std::vector<int64_t> result(static_cast<size_t>(source_.register_count()), 0);
    const auto axis = static_cast<size_t>(reduce_.axis);
    for (int64_t reg = 0; reg < source_.register_count(); ++reg) {
      // In the cover, where every place has coordinates.
      auto at = layout::coordinates(source_.cover(), source_.registers()(reg));
      at.erase(at.begin() + static_cast<ptrdiff_t>(axis));
      layout::Shape cover = source_.cover();
      cover.erase(cover.begin() + static_cast<ptrdiff_t>(axis));
      const int64_t wanted = layout::row_major_index(cover, at);
      for (int64_t r = 0; r < target_.register_count(); ++r)
        if (target_.registers()(r) == wanted) result[static_cast<size_t>(reg)] = r;
    }
    return result;
  }

  void own_registers(Stmts& out) {
    const Buffer& from = lowering_.places.at(reduce_.source.buffer.get());
    const ir::Var r = lowering_.variable("r", target_.register_count());
    out.push_back(unrolled(
        r, target_.register_count(),
        {ir::make_stmt(ir::Store{partial_, {ir::var_ref(r)}, identity_of(reduce_.op, type_)}, span())}, span()));
    const auto of = targets();
    const auto& modes = source_.registers().modes();
    // The register of the result is a sum over the digits of the source's, since both are layouts.
    std::vector<ir::Var> vars;
    const Indices digits = lowering_.register_digits(source_.registers(), vars);
    Expr reg = ir::int_imm(0), to = ir::int_imm(0);
    int64_t weight = 1;
    for (size_t k = 0; k < modes.size(); ++k) {
      reg = plus(reg, times(digits[k], weight));
      if (modes[k].extent > 1) to = plus(to, times(digits[k], of[static_cast<size_t>(weight)] - of[0]));
      weight *= modes[k].extent;
    }
    Expr value = ir::cast(ir::load(from, {reg}, span()), type_, span());
    if (row_of(reduce_.op).of_magnitudes) value = ir::math(ir::MathFn::abs, value, span());
    Stmts body{join(to, value)};
    if (const Expr inside = is_inside(source_, digits, out))
      body = {ir::make_stmt(ir::If{inside, body[0], nullptr}, span())};
    for (size_t k = 0; k < modes.size(); ++k)
      if (modes[k].extent > 1) body = {unrolled(vars[k], modes[k].extent, std::move(body), span())};
    out.insert(out.end(), body.begin(), body.end());
  }

  // Whether the place of a thread and of these digits of a register holds an element; null if all do.
  Expr is_inside(const layout::Fragment& fragment, const Indices& digits, Stmts& out) {
    if (!fragment.needs_guard()) return nullptr;
    const Indices thread = lowering_.thread_digits(fragment.threads(), span(), out);
    return is_in_tile(fragment, coordinates_of(fragment, thread, digits), span());
  }

  void write(Stmts& out) {
    const Buffer& to = lowering_.places.at(reduce_.destination.buffer.get());
    const ir::Var r = lowering_.variable("r", target_.register_count());
    Expr value = ir::load(partial_, {ir::var_ref(r)}, span());
    if (!reduce_.clear) value = combined(ir::cast(ir::load(to, {ir::var_ref(r)}, span()), type_, span()), value);
    Stmt store = ir::make_stmt(ir::Store{to, {ir::var_ref(r)}, ir::cast(value, to->type, span())}, span());
    if (const Expr inside = is_inside(target_, digits_of(target_.registers(), ir::var_ref(r)), out))
      store = ir::make_stmt(ir::If{inside, store, nullptr}, span());
    out.push_back(unrolled(r, target_.register_count(), {store}, span()));
  }
};

}  // namespace

void lower_reduce(Lowering& lowering, const Stmt& stmt, Stmts& out) { ReduceLowering(lowering, stmt).run(out); }

}  // namespace tilepilot::targets::gpu
