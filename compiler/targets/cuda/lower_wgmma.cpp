// GEMMs by wgmma: operands stay in shared memory, where a descriptor says how they are swizzled, but for A that is held
// in registers. They are asynchronous if the program lets them.
#include <fmt/format.h>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/wgmma.h"
#include "compiler/targets/cuda/wgmma_operand.h"
#include "compiler/targets/gpu/schedule/tma_stores.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

class WgmmaLowering {
 public:
  WgmmaLowering(Lowering& lowering, const Stmt& stmt)
      : lowering_(lowering),
        stmt_(stmt),
        gemm_(*ir::as<ir::Gemm>(stmt)),
        plan_(lowering.inference.gemms.at(stmt.get())) {}

  void run(Stmts& out) {
    const bool held = gemm_.a.buffer->scope == Scope::fragment;
    lowering_.decisions.push_back({span(), "gemm into " + gemm_.c.buffer->name,
                                   fmt::format("wgmma m64n{}k{}, A from {}, warpgroups {} x {}{}", plan_.atom->n,
                                               plan_.atom->k, held ? "registers" : "shared memory", plan_.warps_m,
                                               plan_.warps_n, gemm_.asynchronous ? ", asynchronous" : "")});
    group_ = find_warpgroup(lowering_, plan_, span(), out);
    std::optional<SharedOperand> a;
    if (!held) {
      a.emplace(shared_operand(lowering_, gemm_.a, !gemm_.transpose_a, 64));
      describe(lowering_, *a, first(true), span(), out);
    }
    const SharedOperand b = shared_operand(lowering_, gemm_.b, gemm_.transpose_b, plan_.atom->n);
    describe(lowering_, b, first(false), span(), out);
    const Wgmma shape{mma_operand_type(gemm_, gemm_.a.buffer->type),
                      mma_operand_type(gemm_, gemm_.b.buffer->type),
                      gemm_.c.buffer->type,
                      plan_.atom->n,
                      held,
                      !held && !a->k_last,
                      !b.k_last};
    lowering_.wgmmas.push_back(shape);
    pin(out);
    out.push_back(call("wgmma_fence", {}, span()));
    out.push_back(products(wgmma_name(shape), a, b));
    out.push_back(call("wgmma_commit", {}, span()));
    if (gemm_.asynchronous) return lowering_.outstanding.begin(registers_of_gemm(lowering_, gemm_));
    out.push_back(call("wgmma_wait<0>", {}, span()));
    pin(out);
  }

 private:
  Lowering& lowering_;
  const Stmt& stmt_;
  const ir::Gemm& gemm_;
  const GemmPlan& plan_;
  WarpgroupPosition group_;

  Span span() const { return stmt_->span; }
  const Buffer& accumulator() const { return lowering_.places.at(gemm_.c.buffer.get()); }
  void pin(Stmts& out) const { out.push_back(pin_registers(accumulator(), span())); }

  ir::Expr first(bool is_a) const {
    return is_a ? times(group_.m, plan_.tiles_m() * 64) : times(group_.n, plan_.tiles_n() * plan_.atom->n);
  }

  Stmt products(const std::string& function, const std::optional<SharedOperand>& a, const SharedOperand& b) {
    const int64_t steps = plan_.steps(), down = plan_.tiles_m(), across = plan_.tiles_n();
    const ir::Var step = lowering_.variable("step", steps), m = lowering_.variable("m", down),
                  n = lowering_.variable("n", across);
    const auto number = [](const ir::Var& var, int64_t extent) {
      return extent == 1 ? ir::int_imm(0) : ir::var_ref(var);
    };
    const Expr at_step = number(step, steps), at_m = number(m, down), at_n = number(n, across);
    const int64_t sums = layout::c_fragment(*plan_.atom).register_count();
    const Expr c = plus(times(at_m, across * sums), times(at_n, sums));
    CallArguments arguments{element(accumulator(), {c}, span())};
    if (!a) {
      const int64_t count = layout::a_fragment(*plan_.atom).register_count();
      const Expr first = plus(times(at_m, steps * count), times(at_step, count));
      arguments.emplace_back(element(lowering_.places.at(gemm_.a.buffer.get()), {first}, span()));
    } else {
      arguments.emplace_back(place_of(*a, at_m, at_step, span()));
    }
    arguments.emplace_back(place_of(b, at_n, at_step, span()));
    const Expr accumulates = !gemm_.clear_accumulator ? ir::bool_imm(true)
                             : steps == 1             ? ir::bool_imm(false)
                                                      : ir::binary(ir::BinaryOp::ne, at_step, ir::int_imm(0), span());
    arguments.emplace_back(accumulates);
    Stmt body = call(function, std::move(arguments), span());
    if (across > 1) body = unrolled(n, across, {body}, span());
    if (down > 1) body = unrolled(m, down, {body}, span());
    return steps > 1 ? unrolled(step, steps, {body}, span()) : body;
  }
};

}  // namespace

void lower_wgmma(Lowering& lowering, const Stmt& stmt, Stmts& out) { WgmmaLowering(lowering, stmt).run(out); }

namespace {

// What threads write to other blocks' memory, TMA and wgmma there may use, too.
const char* async_proxy_fence(const Lowering& lowering) {
  const bool remote = ir::contains(lowering.kernel.body, [](const Stmt& stmt) {
    const auto* copy = ir::as<ir::Copy>(stmt);
    return copy && copy->peer;
  });
  return remote ? "fence_async_cluster" : "fence_async";
}

}  // namespace

// Each wgmma is a group.
void lower_async(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  const auto& async = *ir::as<ir::Async>(stmt);
  switch (async.op) {
    case ir::AsyncOp::fence:
      if (lowering.async_proxy) out.push_back(call(async_proxy_fence(lowering), {}, stmt->span));
      return;
    case ir::AsyncOp::commit_stores:
      return lowering.add_by_first_thread({call("commit_stores", {}, stmt->span)}, stmt->span, out);
    case ir::AsyncOp::wait_stores: {
      // The tile has been read; where others look at the tensors, these have been written.
      const bool last = are_last_words(lowering.kernel.body, lowering.persistent);
      const Stmt wait = call(fmt::format("wait_stores{}<{}>", last ? "_read" : "", async.count), {}, stmt->span);
      return lowering.add_by_first_thread({wait}, stmt->span, out);
    }
    case ir::AsyncOp::wait_gemms: {
      const std::vector<Buffer> done = lowering.outstanding.wait(async.count);
      if (done.empty() && lowering.outstanding.empty()) return;  // such GEMMs are done at once
      out.push_back(call(fmt::format("wgmma_wait<{}>", async.count), {}, stmt->span));
      for (const Buffer& registers : done) out.push_back(pin_registers(registers, stmt->span));
      return;
    }
    case ir::AsyncOp::raise_registers:
    case ir::AsyncOp::lower_registers: {
      const char* way = async.op == ir::AsyncOp::raise_registers ? "up" : "down";
      return out.push_back(call(fmt::format("set_registers_{}<{}>", way, async.count), {}, stmt->span));
    }
    default:
      return out.push_back(stmt);
  }
}

}  // namespace tilepilot::targets::cuda
