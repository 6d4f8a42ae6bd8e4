#include "compiler/targets/gpu/schedule/deferred_reductions.h"

#include <optional>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/layout/reduction_modes.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::ReduceOp;
using ir::Stmt;

namespace {

constexpr int64_t kMostOfThread = 32;  // of a thread, for what it has combined

int64_t elements_of(const Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& extent : buffer->shape) count *= ir::constant_int(extent).value_or(0);
  return count;
}

bool is_continued(const ir::Reduce& reduce) {
  const bool known = reduce.op == ReduceOp::sum || reduce.op == ReduceOp::max || reduce.op == ReduceOp::min;
  // A result of 16 bits is rounded in each step: what is summed up without that is another number.
  const bool rounds = reduce.op == ReduceOp::sum && reduce.destination.buffer->type.is_small_float();
  return known && !reduce.clear && !reduce.nan_propagate && !rounds;
}

bool lies_in_registers(const ir::Region& region) {
  return region.buffer->scope == ir::Scope::fragment && !region.buffer->base && is_whole(region);
}

// Whether the threads of a block share results of the reduction.
bool exchanges(const ir::Reduce& reduce, int64_t threads) {
  const int64_t all = elements_of(reduce.source.buffer), kept = elements_of(reduce.destination.buffer);
  return all > kept && kept < threads && all >= threads && all <= threads * kMostOfThread;
}

bool mentions(const Stmt& stmt, const Buffer& buffer) {
  const ir::Effects effects = ir::memory_effects_of(stmt);
  return effects.reads.contains(ir::memory_of(buffer)) || effects.writes.contains(ir::memory_of(buffer));
}

// Puts another statement in the place of one.
class Exchanged : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Exchanged(const void* given, Stmt instead) : given_(given), instead_(std::move(instead)) {}
  Stmt rewrite(const Stmt& stmt) override { return stmt.get() == given_ ? instead_ : rewrite_children(stmt); }
  Stmt rewrite_inside(const Stmt& stmt) { return rewrite_children(stmt); }

 private:
  const void* given_;
  Stmt instead_;
};

class Deferring : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Deferring(int64_t threads, std::vector<Buffer>& allocations) : threads_(threads), allocations_(allocations) {}

  // The outermost loop first: what it may move, its inner loops need not.
  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr) return rewrite_children(stmt);
    if (loop->kind == ir::LoopKind::parallel) return stmt;
    std::vector<Stmt> before, after;
    Stmt current = stmt;
    if (ir::constant_int(loop->extents[0]).value_or(2) > 1)
      for (const Stmt& reduction : continued_in(stmt)) {
        const ir::Reduce& reduce = *ir::as<ir::Reduce>(reduction);
        const Stmt without = Exchanged(reduction.get(), ir::make_stmt(ir::Block{}, stmt->span)).rewrite_inside(current);
        if (mentions(without, reduce.destination.buffer)) continue;
        current = defer(current, reduction, before, after);
      }
    if (before.empty()) return rewrite_children(stmt);
    before.push_back(rewrite_children(current));
    before.insert(before.end(), after.begin(), after.end());
    return ir::make_stmt(ir::Block{std::move(before)}, stmt->span);
  }

 private:
  const int64_t threads_;
  std::vector<Buffer>& allocations_;

  std::vector<Stmt> continued_in(const Stmt& loop) const {
    std::vector<Stmt> found;
    ir::walk(
        loop,
        [&](const Stmt& stmt) {
          const auto* reduce = ir::as<ir::Reduce>(stmt);
          if (reduce && is_continued(*reduce) && lies_in_registers(reduce->source) &&
              lies_in_registers(reduce->destination) && exchanges(*reduce, threads_))
            found.push_back(stmt);
        },
        [](const Expr&) {});
    return found;
  }

  Stmt defer(const Stmt& loop, const Stmt& reduction, std::vector<Stmt>& before, std::vector<Stmt>& after) {
    ir::Reduce last = *ir::as<ir::Reduce>(reduction);
    const Span span = reduction->span;
    ir::BufferData data = *last.source.buffer;
    data.name = last.destination.buffer->name + "_of_thread";
    data.type = last.destination.buffer->type;
    data.span = span;
    const Buffer own = std::make_shared<ir::BufferData>(std::move(data));
    allocations_.push_back(own);
    before.push_back(ir::make_stmt(ir::Fill{whole(own, span), identity_of(last.op, own->type)}, span));
    const Stmt step = combine(own, last, span);
    last.source = whole(own, span);
    after.push_back(ir::make_stmt(std::move(last), span));
    return Exchanged(reduction.get(), step).rewrite_inside(loop);
  }

  static Stmt combine(const Buffer& own, const ir::Reduce& reduce, Span span) {
    ir::For each{.kind = ir::LoopKind::parallel};
    std::vector<Expr> place;
    for (size_t axis = 0; axis < own->shape.size(); ++axis) {
      each.vars.push_back(ir::make_var(std::string(1, static_cast<char>('i' + axis)), ir::kInt32));
      each.extents.push_back(own->shape[axis]);
      place.push_back(ir::var_ref(each.vars.back()));
    }
    const Expr has = ir::load(own, place, span);
    const Expr comes = ir::cast(ir::load(reduce.source.buffer, place, span), own->type, span);
    Expr joined = ir::binary(BinaryOp::add, has, comes, span);
    if (reduce.op != ReduceOp::sum) {  // NaN, which is neither larger nor smaller, is passed over
      const BinaryOp better = reduce.op == ReduceOp::max ? BinaryOp::gt : BinaryOp::lt;
      joined = ir::select(ir::binary(better, comes, has, span), comes, has, span);
    }
    each.body = ir::make_stmt(ir::Store{own, place, joined}, span);
    return ir::make_stmt(std::move(each), span);
  }
};

}  // namespace

ir::Kernel with_deferred_reductions(const ir::Kernel& kernel) {
  // Where threads go ways of their own, not all of them may come to the end of the loop.
  if (!kernel.thread_vars.empty() || ir::contains<ir::Roles>(kernel.body)) return kernel;
  ir::Kernel result = kernel;
  result.body = Deferring(thread_count(kernel), result.allocations).rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
