#include "compiler/targets/cuda/split_precision_gemm.h"

#include <fmt/format.h>

#include "compiler/ir/visit.h"
#include "compiler/targets/cuda/wgmma.h"
#include "compiler/targets/cuda/wgmma_operand.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

constexpr int64_t kVector = 4;      // neighbours that a thread moves at once
constexpr int64_t kGroupRows = 64;  // of A, an instruction
constexpr int64_t kHeldOfA = 4;     // registers of a thread for A, an instruction

class SplitPrecisionGemm {
 public:
  SplitPrecisionGemm(Lowering& lowering, const Stmt& stmt)
      : lowering_(lowering),
        span_(stmt->span),
        gemm_(*ir::as<ir::Gemm>(stmt)),
        plan_(lowering.inference.gemms.at(stmt.get())),
        scratch_(lowering.inference.scratch_buffers.at(stmt.get())),
        together_(plan_.steps_together()),
        sums_(lowering.local(gemm_.c.buffer->name + "_sums", ir::kFloat32, plan_.atom->n / 2)) {}

  void run(Stmts& out) {
    lowering_.decisions.push_back({span_, "gemm into " + gemm_.c.buffer->name,
                                   fmt::format("wgmma m64n{}k{} of parts of float32, warpgroups {} x {}", plan_.atom->n,
                                               plan_.atom->k, plan_.warps_m, plan_.warps_n)});
    if (plan_.moves_b)
      lowering_.decisions.push_back({span_,
                                     "operand " + gemm_.b.buffer->name + " of the GEMM",
                                     "both parts written anew",
                                     {"as it lies, wgmma cannot read it"}});
    if (gemm_.clear_accumulator) out.push_back(cleared(lowering_, accumulator(), span_));
    write_parts(out);
    out.push_back(call("fence_async", {}, span_));
    out.push_back(ir::make_stmt(lowering_.sync, span_));
    multiply(out);
  }

 private:
  Lowering& lowering_;
  const Span span_;
  const ir::Gemm& gemm_;
  const GemmPlan& plan_;
  const Buffer scratch_;
  const int64_t together_;  // steps along k whose products are summed on their own
  const Buffer sums_;

  const Buffer& accumulator() const { return lowering_.places.at(gemm_.c.buffer.get()); }
  ir::Region in(const Buffer& registers, const Expr& at) const { return element(registers, {at}, span_); }

  // The element of an operand's matrix at these places along the outer axis and along k, as an address.
  ir::Region operand(const ir::Region& region, bool k_last, const Expr& outer, const Expr& k) const {
    std::vector<Expr> at = region.start;
    const size_t rank = at.size();
    for (Expr& index : at) index = ir::cast(index, ir::kInt32);
    at[rank - 2] = plus(at[rank - 2], k_last ? outer : k);
    at[rank - 1] = plus(at[rank - 1], k_last ? k : outer);
    return lowering_.address(region.buffer, at, span_);
  }

  // Some neighbours along k of a column of B at a time, by all threads in turn: along k where that is how B is stored,
  // else along n, so that threads beside each other read neighbours.
  void write_parts(Stmts& out) {
    const int64_t pieces = plan_.k / kVector, all = pieces * plan_.n;
    const int64_t rounds = (all + lowering_.threads - 1) / lowering_.threads;
    const ir::Var round = lowering_.variable("piece", rounds);
    const Expr piece = plus(lowering_.thread_number(), times(ir::var_ref(round), lowering_.threads));
    const Expr column = plan_.moves_b ? remainder(piece, plan_.n) : quotient(piece, pieces);
    const Expr k = times(plan_.moves_b ? quotient(piece, plan_.n) : remainder(piece, pieces), kVector);
    const Buffer values = lowering_.local(gemm_.b.buffer->name + "_values", ir::kFloat32, kVector);
    const ir::Region first = in(values, ir::int_imm(0));
    const auto put = [&](const Expr& row, Stmts& body) {
      body.push_back(call("copy_vector<16>", {lowering_.address(scratch_, {row, k}, span_), first}, span_));
    };
    Stmts body;
    if (plan_.moves_b) {
      const ir::Var j = lowering_.variable("j", kVector);
      const ir::Region from = operand(gemm_.b, gemm_.transpose_b, column, plus(k, ir::var_ref(j)));
      const Stmt take =
          ir::make_stmt(ir::Store{values, {ir::var_ref(j)}, ir::load(from.buffer, from.start, span_)}, span_);
      body.push_back(unrolled(j, kVector, {take}, span_));
      put(column, body);
    } else {
      body.push_back(call("copy_vector<16>", {first, operand(gemm_.b, true, column, k)}, span_));
    }
    body.push_back(call(fmt::format("low_digits<{}>", kVector), {first, first}, span_));
    put(plan_.moves_b ? plus(column, ir::int_imm(plan_.n)) : column, body);
    if (all % lowering_.threads != 0)
      body = {ir::make_stmt(
          ir::If{ir::binary(ir::BinaryOp::lt, piece, ir::int_imm(all), span_), block(std::move(body), span_), nullptr},
          span_)};
    out.push_back(unrolled(round, rounds, std::move(body), span_));
  }

  void multiply(Stmts& out) {
    const WarpgroupPosition group = find_warpgroup(lowering_, plan_, span_, out);
    const ir::Region parts{scratch_, {ir::int_imm(0), ir::int_imm(0)}, {}};
    const Expr first = times(group.n, plan_.tiles_n() * plan_.atom->n);
    const SharedOperand high = shared_operand(lowering_, plan_.moves_b ? parts : gemm_.b, true, plan_.atom->n),
                        low = shared_operand(lowering_, parts, true, plan_.atom->n);
    describe(lowering_, high, first, span_, out);
    describe(lowering_, low, plan_.moves_b ? plus(first, ir::int_imm(plan_.n)) : first, span_, out);

    const int64_t rounds = plan_.steps() / together_;
    const ir::Var round = lowering_.variable("round", rounds), m = lowering_.variable("m", plan_.tiles_m()),
                  n = lowering_.variable("n", plan_.tiles_n());
    const auto number = [](const ir::Var& var, int64_t extent) {
      return extent == 1 ? ir::int_imm(0) : ir::var_ref(var);
    };
    const Expr at_m = number(m, plan_.tiles_m()), at_n = number(n, plan_.tiles_n());
    const Expr step = times(number(round, rounds), together_);
    Stmts body;
    const PartsOfA a = parts_of_a(plus(times(group.m, plan_.tiles_m()), at_m), at_m, step, body);
    Stmts of_n;
    sum_low_parts(a, {high, low, at_n, step}, of_n);
    sum_high_parts(a, {high, low, at_n, step}, of_n);
    add_up(plus(times(at_m, plan_.tiles_n()), at_n), of_n);
    body.push_back(repeated(n, plan_.tiles_n(), std::move(of_n)));
    out.push_back(repeated(round, rounds, {repeated(m, plan_.tiles_m(), std::move(body))}));
  }

  Stmt repeated(const ir::Var& var, int64_t extent, Stmts body) const {
    return extent == 1 ? block(std::move(body), span_) : unrolled(var, extent, std::move(body), span_);
  }

  // Registers of the steps that are multiplied together.
  struct PartsOfA {
    Buffer high, low;
  };

  // `tile`: the number of 64 rows of the whole matrix; `own_tile`: among those of the group. High parts are rounded, so
  // that low parts have either sign and what is lost with their products is not all of one sign.
  PartsOfA parts_of_a(const Expr& tile, const Expr& own_tile, const Expr& step, Stmts& out) {
    const std::string& name = gemm_.a.buffer->name;
    const int64_t count = together_ * kHeldOfA;
    const PartsOfA a{lowering_.local(name + "_high", ir::kFloat32, count),
                     lowering_.local(name + "_low", ir::kFloat32, count)};
    ir::Region from = in(a.high, ir::int_imm(0));
    if (gemm_.a.buffer->scope == ir::Scope::fragment) {
      from = in(lowering_.places.at(gemm_.a.buffer.get()), times(plus(times(own_tile, plan_.steps()), step), kHeldOfA));
    } else {
      const ir::Var s = lowering_.variable("step", together_);
      const Expr to = times(ir::var_ref(s), kHeldOfA), k = times(plus(step, ir::var_ref(s)), plan_.atom->k);
      out.push_back(unrolled(s, together_, {fetch(a.high, to, times(tile, kGroupRows), k)}, span_));
    }
    out.push_back(call(fmt::format("split_floats<{}>", count),
                       {in(a.high, ir::int_imm(0)), in(a.low, ir::int_imm(0)), from}, span_));
    return a;
  }

  // What a thread holds of 64 rows and one step of A, by ldmatrix where rows are stored along k and start at multiples
  // of 16 bytes.
  Stmt fetch(const Buffer& registers, const Expr& to, const Expr& row, const Expr& k) {
    const Expr thread = lowering_.thread_number(), lane = remainder(thread, 32);
    const auto start = ir::constant_int(gemm_.a.start.back());
    const bool by_rows = !gemm_.transpose_a && start && *start % kVector == 0 &&
                         lowering_.inference.tiles.at(gemm_.a.buffer.get()).span() != layout::SwizzleSpan::none;
    if (by_rows) {
      const Expr warp = remainder(quotient(thread, 32), layout::kWarpgroupSize / 32);
      const Expr at = plus(row, plus(times(warp, 16), remainder(lane, 16)));
      const Expr column = plus(k, times(quotient(lane, 16), kVector));
      return call("ldmatrix<4>", {in(registers, to), operand(gemm_.a, true, at, column)}, span_);
    }
    const layout::Fragment fragment = layout::a_fragment(*plan_.atom);
    const ir::Var r = lowering_.variable("r", kHeldOfA);
    const Indices at =
        coordinates_of(fragment, digits_of(fragment.threads(), remainder(thread, layout::kWarpgroupSize)),
                       digits_of(fragment.registers(), ir::var_ref(r)));
    const ir::Region from = operand(gemm_.a, !gemm_.transpose_a, plus(row, at[0]), plus(k, at[1]));
    const Stmt move = ir::make_stmt(
        ir::Store{registers, {plus(to, ir::var_ref(r))}, ir::load(from.buffer, from.start, span_)}, span_);
    return unrolled(r, kHeldOfA, {move}, span_);
  }

  // Parts of B of an instruction, and the first of the steps.
  struct PartsOfB {
    const SharedOperand &high, &low;
    Expr tile, step;
  };

  Stmt product(const Buffer& a, const SharedOperand& b, const PartsOfB& where, const Expr& s, const Expr& accumulates) {
    const Wgmma shape{ir::kTensorFloat32, ir::kTensorFloat32, ir::kFloat32, plan_.atom->n, true, false, false};
    lowering_.wgmmas.push_back(shape);
    const Expr place = place_of(b, where.tile, plus(where.step, s), span_);
    return call(wgmma_name(shape), {in(sums_, ir::int_imm(0)), in(a, times(s, kHeldOfA)), place, accumulates}, span_);
  }

  void start(Stmts& out) const {
    out.push_back(pin_registers(sums_, span_));
    out.push_back(call("wgmma_fence", {}, span_));
  }
  void finish(Stmts& out) const {
    out.push_back(call("wgmma_commit", {}, span_));
    out.push_back(call("wgmma_wait<0>", {}, span_));
    out.push_back(pin_registers(sums_, span_));
  }

  // The small ones first. Where numbers are not finite they are NaN or infinite, and the high parts alone shall say
  // what the sum is (see split_product of the prelude).
  void sum_low_parts(const PartsOfA& a, const PartsOfB& b, Stmts& out) {
    const ir::Var s = lowering_.variable("step", together_);
    const Expr at = together_ == 1 ? ir::int_imm(0) : ir::var_ref(s);
    const Expr more =
        together_ == 1 ? ir::bool_imm(false) : ir::binary(ir::BinaryOp::ne, ir::var_ref(s), ir::int_imm(0), span_);
    start(out);
    out.push_back(repeated(s, together_,
                           {product(a.low, b.high, b, at, more), product(a.high, b.low, b, at, ir::bool_imm(true))}));
    finish(out);
    out.push_back(call(fmt::format("bound_sums<{}>", plan_.atom->n / 2), {in(sums_, ir::int_imm(0))}, span_));
  }

  void sum_high_parts(const PartsOfA& a, const PartsOfB& b, Stmts& out) {
    const ir::Var s = lowering_.variable("step", together_);
    const Expr at = together_ == 1 ? ir::int_imm(0) : ir::var_ref(s);
    start(out);
    out.push_back(repeated(s, together_, {product(a.high, b.high, b, at, ir::bool_imm(true))}));
    finish(out);
  }

  // Outside of tensor cores, which round sums towards zero.
  void add_up(const Expr& instruction, Stmts& out) {
    const int64_t count = plan_.atom->n / 2;
    const ir::Var r = lowering_.variable("r", count);
    const Expr place = plus(times(instruction, count), ir::var_ref(r));
    const Expr sum = ir::binary(ir::BinaryOp::add, ir::load(accumulator(), {place}, span_),
                                ir::load(sums_, {ir::var_ref(r)}, span_), span_);
    out.push_back(unrolled(r, count, {ir::make_stmt(ir::Store{accumulator(), {place}, sum}, span_)}, span_));
  }
};

}  // namespace

void lower_split_precision_gemm(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  SplitPrecisionGemm(lowering, stmt).run(out);
}

}  // namespace tilepilot::targets::cuda
