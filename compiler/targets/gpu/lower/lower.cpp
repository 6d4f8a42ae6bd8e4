#include "compiler/targets/gpu/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/search.h"
#include "compiler/passes/threads/thread_exchange.h"
#include "compiler/targets/gpu/facts/register_map.h"
#include "compiler/targets/gpu/layout/layout_conversions.h"
#include "compiler/targets/gpu/lower/thread_reduction.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Region;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

void Lowering::fail(Span span, std::string message, std::string hint) {
  if (!error) error = make_error(DiagnosticKind::unsupported_tile_feature, span, std::move(message), std::move(hint));
}

Buffer Lowering::local(const std::string& name, ir::DType type, int64_t elements) {
  allocations.push_back(std::make_shared<ir::BufferData>(
      ir::BufferData{name, type, Scope::local, {ir::int_imm(elements)}, {}, kernel.span}));
  return allocations.back();
}

Buffer Lowering::scratch(const std::string& name, ir::DType type, int64_t elements) {
  allocations.push_back(std::make_shared<ir::BufferData>(
      ir::BufferData{name, type, Scope::shared, {ir::int_imm(elements)}, {}, kernel.span}));
  scratch_buffers.push_back(allocations.back());
  return allocations.back();
}

Expr Lowering::let(const std::string& name, const Expr& value, int64_t extent, Span span, Stmts& out) {
  if (ir::constant_int(value) || extent == 1) return extent == 1 ? ir::int_imm(0) : value;
  const ir::Var var = ir::make_var(name, ir::kInt32);
  facts.set_range(var, {0, extent - 1});
  out.push_back(ir::make_stmt(ir::Let{var, value}, span));
  return ir::var_ref(var);
}

ir::Var Lowering::variable(const std::string& name, int64_t extent) {
  ir::Var var = ir::make_var(name, ir::kInt32);
  facts.set_range(var, {0, extent - 1});
  return var;
}

Indices Lowering::register_digits(const layout::Layout& registers, std::vector<ir::Var>& vars) {
  Indices digits;
  for (const layout::Mode& mode : registers.modes()) {
    vars.push_back(variable(fmt::format("r{}", vars.size()), mode.extent));
    digits.push_back(mode.extent == 1 ? ir::int_imm(0) : ir::var_ref(vars.back()));
  }
  return digits;
}

Indices Lowering::thread_digits(const layout::Layout& threads, Span span, Stmts& out) {
  Indices digits = digits_of(threads, thread_number());
  for (size_t k = 0; k < digits.size(); ++k)
    digits[k] = let(fmt::format("t{}", k), digits[k], threads.modes()[k].extent, span, out);
  return digits;
}

Stmt Lowering::by_first_thread(Stmts body, Span span) const {
  const Expr first = ir::binary(ir::BinaryOp::eq, thread_number(), ir::int_imm(0), span);
  return ir::make_stmt(ir::If{first, ir::make_stmt(ir::Block{std::move(body)}, span), nullptr}, span);
}

void Lowering::add_by_first_thread(Stmts body, Span span, Stmts& out) const {
  const auto is_first = [&](const Expr& condition) {
    const auto* test = ir::as<ir::Binary>(condition);
    const auto* number = test && test->op == ir::BinaryOp::eq ? ir::as<ir::VarRef>(test->left) : nullptr;
    return number != nullptr && number->var == thread && ir::constant_int(test->right) == 0;
  };
  const auto* before = out.empty() ? nullptr : ir::as<ir::If>(out.back());
  if (before == nullptr || before->otherwise || !is_first(before->condition))
    return out.push_back(by_first_thread(std::move(body), span));
  Stmts all = ir::statements(before->then);
  all.insert(all.end(), body.begin(), body.end());
  const Stmt joined = by_first_thread(std::move(all), out.back()->span);
  out.back() = joined;
}

const layout::Fragment& Lowering::fragment(const Buffer& buffer) const { return inference.fragments.at(buffer.get()); }

Region Lowering::address(const Buffer& tile, const std::vector<Expr>& indices, Span span) const {
  return element(places.at(tile.get()), {offset_in(inference.tiles.at(tile.get()), indices)}, span);
}

ir::Var Lowering::map_of(const ir::Buffer& tensor, const std::vector<int64_t>& box, layout::SwizzleSpan span) {
  for (const TensorBoxes& known : maps)
    if (known.tensor == tensor && known.box == box && known.span == span) return known.map;
  maps.push_back({tensor, box, span, ir::make_var(tensor->name + "_map", ir::kUInt64)});
  return maps.back().map;
}

namespace {

class InPlaces : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  InPlaces(const Lowering& lowering, const RegisterOf& registers) : lowering_(lowering), registers_(registers) {}

  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    const auto* load = ir::as<ir::Load>(inner);
    if (load == nullptr || !moves(load->buffer)) return inner;
    return ir::load(lowering_.places.at(load->buffer.get()), at(load->buffer, load->indices), expr->span);
  }

  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    const auto* store = ir::as<ir::Store>(inner);
    if (store == nullptr || !moves(store->buffer)) return inner;
    return ir::make_stmt(
        ir::Store{lowering_.places.at(store->buffer.get()), at(store->buffer, store->indices), store->value},
        stmt->span);
  }

 protected:
  Region rewrite_region(const Region& region) override {
    Region result = Rewriter::rewrite_region(region);
    if (!moves(region.buffer)) return result;
    return element(lowering_.places.at(region.buffer.get()), at(region.buffer, result.start), region.span);
  }

 private:
  const Lowering& lowering_;
  const RegisterOf& registers_;

  bool moves(const Buffer& buffer) const { return lowering_.places.contains(buffer.get()); }
  std::vector<Expr> at(const Buffer& buffer, const std::vector<Expr>& indices) const {
    if (buffer->scope == Scope::fragment) return {registers_(buffer, indices)};
    Indices narrow;
    for (const Expr& index : indices) narrow.push_back(ir::cast(index, ir::kInt32));
    return {offset_in(lowering_.inference.tiles.at(buffer.get()), narrow)};
  }
};

class Lowerer {
 public:
  Lowerer(const PlannedKernel& planned, const TargetLowering& target)
      : planned_(planned),
        target_(target),
        lowering_{planned.kernel,
                  planned.inference,
                  ir::make_var("thread", ir::kInt32),
                  thread_count(planned.kernel),
                  {},
                  {},
                  planned.sync,
                  {},
                  {},
                  {}} {
    lowering_.persistent = planned.persistent;
  }

  Result<LoweredKernel> run() {
    lowering_.async_proxy = planned_.async_proxy;
    lowering_.facts.learn(lowering_.kernel);
    lowering_.facts.trust(lowering_.kernel);
    lowering_.facts.set_range(lowering_.thread, {0, lowering_.threads - 1});
    for (size_t axis = 0; axis < lowering_.kernel.thread_vars.size(); ++axis)
      lowering_.facts.set_range(lowering_.kernel.thread_vars[axis], {0, lowering_.kernel.threads[axis] - 1});
    allocate();
    LoweredKernel result{lowering_.kernel, lowering_.thread, {}, 0};
    Stmts body;
    lower(lowering_.kernel.body, body);
    if (lowering_.error) return std::move(lowering_.error);
    result.kernel.body = ir::make_stmt(ir::Block{std::move(body)}, lowering_.kernel.body->span);
    result.shared_bytes = planned_.arena.bytes;
    const int64_t end = (planned_.arena.bytes + 15) / 16 * 16;
    for (const Buffer& scratch : lowering_.scratch_buffers) {
      result.offsets.emplace(scratch.get(), end);
      result.shared_bytes =
          std::max(result.shared_bytes, end + *ir::constant_int(scratch->shape[0]) * scratch->type.bytes());
    }
    for (const auto& [tile, place] : planned_.arena.places)
      result.offsets.emplace(lowering_.places.at(tile).get(), place.offset);
    result.kernel.allocations = std::move(lowering_.allocations);
    result.wgmmas = std::move(lowering_.wgmmas);
    result.maps = std::move(lowering_.maps);
    result.decisions = planned_.decisions;
    for (const auto& [span, note] : planned_.notes) result.decisions.push_back({span, "note", note});
    result.decisions.insert(result.decisions.end(), lowering_.decisions.begin(), lowering_.decisions.end());
    return result;
  }

 private:
  const PlannedKernel& planned_;
  const TargetLowering& target_;
  Lowering lowering_;

  void allocate() {
    for (const Buffer& buffer : lowering_.kernel.allocations) {
      const int64_t size = buffer->scope == Scope::fragment ? lowering_.fragment(buffer).register_count()
                           : buffer->scope == Scope::shared ? lowering_.inference.tiles.at(buffer.get()).size()
                                                            : 0;
      if (size == 0) {
        lowering_.allocations.push_back(buffer);
        continue;
      }
      if (buffer->base && buffer->scope == Scope::fragment) {  // the same registers
        lowering_.places.emplace(buffer.get(), lowering_.places.at(buffer->base.get()));
        continue;
      }
      ir::BufferData place{
          buffer->name,        buffer->type, buffer->scope == Scope::fragment ? Scope::local : Scope::shared,
          {ir::int_imm(size)}, {},           buffer->span};
      if (buffer->base) place.base = lowering_.places.at(buffer->base.get());
      const Buffer made = std::make_shared<ir::BufferData>(std::move(place));
      lowering_.places.emplace(buffer.get(), made);
      lowering_.allocations.push_back(made);
    }
  }

  // Outside parallel loops every thread holds the elements that are named.
  Expr register_of(const Buffer& buffer, const std::vector<Expr>& indices) const {
    const layout::Fragment every({1}, layout::Layout{{lowering_.threads, 0}}, layout::Layout{});
    const auto map = register_map(every, {}, indices, lowering_.fragment(buffer));
    return ir::int_imm(map ? (*map)[0] : 0);
  }

  template <class T>
  T placed(const T& node) const {
    return in_places(lowering_, node, [this](const Buffer& buffer, const std::vector<Expr>& indices) {
      return register_of(buffer, indices);
    });
  }

  Stmt inside(const Stmt& body) {
    Stmts out;
    lower(body, out);
    return ir::make_stmt(ir::Block{std::move(out)}, body->span);
  }

  static bool starts_or_waits(const Stmt& stmt) { return ir::contains<ir::Gemm, ir::Async>(stmt); }

  // The body of a loop: what an iteration leaves under way is so when the next one begins.
  Stmt repeated(const Stmt& body) {
    if (!starts_or_waits(body)) return inside(body);
    const OutstandingWgmma before = lowering_.outstanding;
    lowering_.outstanding.join({});
    ir::walk(
        body,
        [&](const Stmt& part) {
          const auto* gemm = ir::as<ir::Gemm>(part);
          if (gemm && gemm->asynchronous && lowering_.inference.gemms.at(part.get()).is_wgmma())
            lowering_.outstanding.may_run(registers_of_gemm(lowering_, *gemm));
        },
        [](const Expr&) {});
    const Stmt result = inside(body);
    lowering_.outstanding.join(before);
    return result;
  }

  void lower_choice(const ir::If& choice, Span span, Stmts& out) {
    const OutstandingWgmma before = lowering_.outstanding;
    const size_t assumed = lowering_.facts.assume(choice.condition);
    const Stmt then = inside(choice.then);
    lowering_.facts.forget(assumed);
    const OutstandingWgmma other = std::exchange(lowering_.outstanding, before);
    const Stmt otherwise = choice.otherwise ? inside(choice.otherwise) : nullptr;
    if (starts_or_waits(choice.then) || (otherwise && starts_or_waits(choice.otherwise)))
      lowering_.outstanding.join(other);
    out.push_back(ir::make_stmt(ir::If{placed(choice.condition), then, otherwise}, span));
  }

  // Without thread variables a block does once what is no tile operator.
  bool is_once(const Stmt& stmt) const {
    if (!lowering_.kernel.thread_vars.empty()) return false;
    const auto* store = ir::as<ir::Store>(stmt);
    const auto visible = [](const Buffer& buffer) {
      return buffer->scope == Scope::global || buffer->scope == Scope::shared;
    };
    const auto* atomic = ir::as<ir::Atomic>(stmt);
    return (store && visible(store->buffer)) || (atomic && visible(atomic->element.buffer)) || ir::as<ir::Print>(stmt);
  }

  void lower(const Stmt& stmt, Stmts& out) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : list->body) lower(part, out);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      lower_loop(stmt, *loop, out);
    } else if (const auto* loop_while = ir::as<ir::While>(stmt)) {
      out.push_back(ir::make_stmt(ir::While{placed(loop_while->condition), repeated(loop_while->body)}, stmt->span));
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      lower_choice(*choice, stmt->span, out);
    } else if (ir::as<ir::Gemm>(stmt)) {
      target_.gemm(lowering_, stmt, out);
    } else if (ir::as<ir::Reduce>(stmt)) {
      lower_reduce(lowering_, stmt, out);
    } else if (const auto* copy = ir::as<ir::Copy>(stmt)) {
      const auto lower_copy = is_layout_conversion(stmt)               ? lower_conversion
                              : copy->mode == ir::CopyMode::bulk_load  ? target_.bulk_load
                              : copy->mode == ir::CopyMode::bulk_store ? target_.bulk_store
                              : copy->peer                             ? lower_remote_copy
                                                                       : lower_async_copy;
      lower_copy(lowering_, is_layout_conversion(stmt) ? stmt : with_placed_starts(*copy, stmt->span), out);
    } else if (const auto* barrier = ir::as<ir::Barrier>(stmt); barrier && barrier->threads != 0) {
      lower_arrivals(*barrier, stmt->span, out);
    } else if (ir::as<ir::Async>(stmt)) {
      target_.async(lowering_, stmt, out);
    } else {
      lower_leaf(stmt, out);
    }
  }

  // Where a copy starts may be read from a tile.
  Stmt with_placed_starts(ir::Copy copy, Span span) const {
    for (ir::Region* region : {&copy.source, &copy.destination})
      for (Expr& start : region->start) start = placed(start);
    return ir::make_stmt(std::move(copy), span);
  }

  // By the first thread, or that of each warp for all of it.
  void lower_arrivals(ir::Barrier barrier, Span span, Stmts& out) {
    const int64_t arrivals = std::exchange(barrier.threads, 0);
    const Stmt arrives = placed(ir::make_stmt(std::move(barrier), span));
    if (arrivals == 1) return lowering_.add_by_first_thread({arrives}, span, out);
    if (arrivals * layout::kWarpSize != lowering_.threads)
      return lowering_.fail(span, "arrivals of several threads in one go have no form here");
    const Expr lane =
        ir::binary(ir::BinaryOp::floor_mod, lowering_.thread_number(), ir::int_imm(layout::kWarpSize), span);
    const Expr first = ir::binary(ir::BinaryOp::eq, lane, ir::int_imm(0), span);
    out.push_back(ir::make_stmt(ir::Sync{ir::SyncScope::warp}, span));
    out.push_back(ir::make_stmt(ir::If{first, arrives, nullptr}, span));
  }

  // Axes of the block as digits of the thread's number.
  void lower_all_reduce(const ir::AllReduce& reduce, Span span, Stmts& out) {
    const ir::DType type = reduce.value->type, kept = reduce.op == ir::BinaryOp::mul ? type : accumulator_type(type);
    const Buffer value = lowering_.local("value", kept, 1);
    const Expr given = ir::cast(ir::select(reduce.condition, reduce.value, reduce.identity, span), kept, span);
    out.push_back(ir::make_stmt(
        ir::Store{value, {ir::int_imm(0)}, placed(passes::joined_with_identity(reduce.op, given))}, span));
    std::vector<ThreadMode> along;
    int64_t weight = 1;
    for (size_t axis = 0; axis < lowering_.kernel.threads.size(); ++axis) {
      const int64_t extent = lowering_.kernel.threads[axis];
      const bool named = std::find(reduce.axes.begin(), reduce.axes.end(), static_cast<int>(axis)) != reduce.axes.end();
      if (reduce.lanes == 0 && named && extent > 1) along.push_back({weight, extent});
      weight *= extent;
    }
    if (reduce.lanes > 1) along.push_back({1, reduce.lanes});
    const auto join = [&](const Expr& a, const Expr& b) { return ir::binary(reduce.op, b, a, span); };
    const Stmt sync = ir::make_stmt(lowering_.sync, span);
    const bool syncs = !split_modes(along, lowering_.threads).warps.empty();
    const Buffer scratch = syncs ? lowering_.scratch("scratch", value->type, lowering_.threads) : nullptr;
    if (syncs) out.push_back(sync);  // readers of an earlier reduction
    combine_threads(lowering_, {value, join, nullptr, std::move(along)}, scratch, span, out);
    const ir::Region result = reduce.result;
    const Expr total = ir::cast(ir::load(value, {ir::int_imm(0)}, span), type, span);
    out.push_back(placed(ir::make_stmt(ir::Store{result.buffer, result.start, total}, span)));
  }

  void lower_leaf(const Stmt& stmt, Stmts& out) {
    if (const auto* reduce = ir::as<ir::AllReduce>(stmt)) return lower_all_reduce(*reduce, stmt->span, out);
    const Stmt leaf = placed(stmt);
    if (ir::as<ir::LoadMatrix>(stmt) || ir::as<ir::Mma>(stmt)) return target_.matrix(lowering_, leaf, out);
    if (!is_once(stmt)) return out.push_back(leaf);
    if (const auto* atomic = ir::as<ir::Atomic>(leaf); atomic && atomic->previous)
      return lower_shared_result(*atomic, stmt->span, out);
    // An order that the access has is that of what all threads do before and after it.
    const auto* atomic = ir::as<ir::Atomic>(leaf);
    const bool orders = atomic && atomic->order != ir::MemoryOrder::relaxed;
    if (orders) out.push_back(ir::make_stmt(lowering_.sync, stmt->span));
    out.push_back(lowering_.by_first_thread({leaf}, stmt->span));
    if (orders) out.push_back(ir::make_stmt(lowering_.sync, stmt->span));
  }

  // One thread does it and tells all what was there before.
  void lower_shared_result(ir::Atomic atomic, Span span, Stmts& out) {
    const ir::Var known = std::exchange(atomic.previous, ir::make_var(atomic.previous->name, atomic.previous->type));
    const Buffer scratch = lowering_.scratch(known->name + "_scratch", atomic.element.buffer->type, 1);
    const Expr before = ir::var_ref(atomic.previous);
    const Stmt sync = ir::make_stmt(lowering_.sync, span);
    out.push_back(sync);
    out.push_back(lowering_.by_first_thread(
        {ir::make_stmt(std::move(atomic), span), ir::make_stmt(ir::Store{scratch, {ir::int_imm(0)}, before}, span)},
        span));
    out.push_back(sync);
    out.push_back(ir::make_stmt(ir::Let{known, ir::load(scratch, {ir::int_imm(0)}, span)}, span));
    out.push_back(sync);
  }

  void lower_loop(const Stmt& stmt, const ir::For& loop, Stmts& out) {
    if (loop.kind == ir::LoopKind::parallel) return lower_parallel(lowering_, stmt, out);
    if (loop.kind == ir::LoopKind::vectorized && lower_vectorized(lowering_, stmt, out)) return;
    const bool serial = loop.kind == ir::LoopKind::serial || loop.kind == ir::LoopKind::pipelined;
    out.push_back(ir::make_stmt(ir::For{serial ? ir::LoopKind::serial : ir::LoopKind::unrolled,
                                        loop.vars,
                                        {placed(loop.extents[0])},
                                        0,
                                        repeated(loop.body)},
                                stmt->span));
  }
};

}  // namespace

Stmt in_places(const Lowering& lowering, const Stmt& stmt, const RegisterOf& registers) {
  return InPlaces(lowering, registers).rewrite(stmt);
}
Expr in_places(const Lowering& lowering, const Expr& expr, const RegisterOf& registers) {
  return InPlaces(lowering, registers).rewrite(expr);
}

Stmt pin_registers(const Buffer& registers, Span span) {
  return call(fmt::format("pin_registers<{}>", *ir::constant_int(registers->shape[0])),
              {element(registers, {ir::int_imm(0)}, span)}, span);
}

OutstandingWgmma::Registers registers_of_gemm(const Lowering& lowering, const ir::Gemm& gemm) {
  std::vector<Buffer> registers{lowering.places.at(gemm.c.buffer.get())};
  if (gemm.a.buffer->scope == Scope::fragment) registers.push_back(lowering.places.at(gemm.a.buffer.get()));
  return registers;
}

Stmt cleared(Lowering& lowering, const Buffer& sums, Span span) {
  const int64_t count = *ir::constant_int(sums->shape[0]);
  const ir::Var r = lowering.variable("r", count);
  const Expr zero = sums->type.is_float() ? ir::float_imm(0, sums->type, span) : ir::int_imm(0, sums->type, span);
  return unrolled(r, count, {ir::make_stmt(ir::Store{sums, {ir::var_ref(r)}, zero}, span)}, span);
}

Result<LoweredKernel> lower(const PlannedKernel& planned, const TargetLowering& target) {
  return Lowerer(planned, target).run();
}

}  // namespace tilepilot::targets::gpu
