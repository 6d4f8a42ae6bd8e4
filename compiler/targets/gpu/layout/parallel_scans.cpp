#include "compiler/targets/gpu/layout/parallel_scans.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/passes/scans.h"
#include "compiler/passes/threads/thread_values.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {
namespace {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Region;
using ir::Stmt;

constexpr int64_t kShortestPart = 4;       // elements: below, the steps between parts cost more than they save
constexpr int64_t kMostBytes = 32 * 1024;  // of a tile for what does not lie in shared memory

Expr plus(const Expr& a, const Expr& b) { return ir::constant_int(b) == 0 ? a : ir::binary(BinaryOp::add, a, b); }
Expr times(const Expr& a, int64_t b) { return ir::binary(BinaryOp::mul, a, ir::int_imm(b)); }

class ParallelScan {
 public:
  ParallelScan(const ir::Scan& scan, Span span, std::vector<Buffer>& allocations)
      : scan_(scan),
        span_(span),
        allocations_(allocations),
        length_(scan.source.extent[static_cast<size_t>(scan.axis)]) {
    for (size_t axis = 0; axis < scan.source.extent.size(); ++axis)
      if (axis != static_cast<size_t>(scan.axis)) rows_ *= scan.source.extent[axis];
  }

  // Null: one thread a row does as well.
  Stmt run(int64_t threads) {
    const int64_t parts = std::min(threads / std::max<int64_t>(rows_, 1), length_ / kShortestPart);
    if (parts < 2) return nullptr;
    part_ = (length_ + parts - 1) / parts | 1;  // odd: threads that step along their parts use different banks
    parts_ = (length_ + part_ - 1) / part_;
    if (parts_ < 2) return nullptr;
    Region source = scan_.source, destination = scan_.destination;
    std::vector<Stmt> all;
    const bool staged = destination.buffer->scope != ir::Scope::shared || source.buffer->scope != ir::Scope::shared;
    if (staged) {
      if (rows_ * length_ * destination.buffer->type.bytes() > kMostBytes) return nullptr;
      source = destination = tile(scan_.destination.extent);
      all.push_back(ir::make_stmt(ir::Copy{scan_.source, source, {}}, span_));
    }
    scan_parts(all, source, destination);
    combine_parts(all, destination);
    if (staged) all.push_back(ir::make_stmt(ir::Copy{destination, scan_.destination, {}}, span_));
    return block(std::move(all), span_);
  }

 private:
  const ir::Scan& scan_;
  const Span span_;
  std::vector<Buffer>& allocations_;
  const int64_t length_;
  int64_t rows_ = 1, part_ = 0, parts_ = 0;

  Region tile(const std::vector<int64_t>& extents) {
    ir::BufferData data{
        scan_.destination.buffer->name + "_scan", scan_.destination.buffer->type, ir::Scope::shared, {}, {}, span_};
    for (const int64_t extent : extents) data.shape.push_back(ir::int_imm(extent));
    allocations_.push_back(std::make_shared<ir::BufferData>(std::move(data)));
    return whole(allocations_.back(), span_);
  }

  // A parallel loop over the rows and `count` steps of each: its variables, the row's axes first.
  struct Loop {
    ir::For loop;
    std::vector<Expr> row;  // a coordinate for each axis, 0 along the scan
    Expr step;
  };
  Loop loop_of(int64_t count) const {
    Loop made{{ir::LoopKind::parallel, {}, {}, 0, nullptr}, {}, nullptr};
    for (size_t axis = 0; axis < scan_.source.extent.size(); ++axis) {
      const bool along = axis == static_cast<size_t>(scan_.axis);
      if (along || scan_.source.extent[axis] == 1) {
        made.row.push_back(ir::int_imm(0));
        continue;
      }
      made.row.push_back(variable(made.loop, fmt::format("s{}", axis), scan_.source.extent[axis]));
    }
    made.step = variable(made.loop, "part", count);
    return made;
  }
  static Expr variable(ir::For& loop, std::string name, int64_t extent) {
    loop.vars.push_back(ir::make_var(std::move(name), ir::kInt32));
    loop.extents.push_back(ir::int_imm(extent));
    return ir::var_ref(loop.vars.back());
  }
  Stmt closed(Loop made, std::vector<Stmt> body) const {
    made.loop.body = block(std::move(body), span_);
    return ir::make_stmt(std::move(made.loop), span_);
  }

  // The element number `at` along the scan.
  std::vector<Expr> place(const Region& region, const std::vector<Expr>& row, const Expr& at) const {
    std::vector<Expr> indices = row;
    indices[static_cast<size_t>(scan_.axis)] =
        scan_.reverse ? ir::binary(BinaryOp::sub, ir::int_imm(length_ - 1), at) : at;
    for (size_t axis = 0; axis < indices.size(); ++axis)
      if (ir::constant_int(region.start[axis]) != 0)
        indices[axis] =
            ir::binary(BinaryOp::add, region.start[axis], ir::cast(indices[axis], region.start[axis]->type));
    return indices;
  }
  Expr value(const Region& region, const std::vector<Expr>& row, const Expr& at) const {
    return ir::load(region.buffer, place(region, row, at), span_);
  }
  Stmt set(const Region& region, const std::vector<Expr>& row, const Expr& at, Expr to) const {
    return ir::make_stmt(ir::Store{region.buffer, place(region, row, at), std::move(to)}, span_);
  }
  Expr joined(Expr before, Expr after) const {
    return ir::binary(scan_.op == ir::ScanOp::sum ? BinaryOp::add : BinaryOp::max, std::move(before), std::move(after));
  }
  Stmt when(const Expr& condition, Stmt then, Stmt otherwise = nullptr) const {
    return ir::make_stmt(ir::If{condition, block({std::move(then)}, span_), std::move(otherwise)}, span_);
  }

  // Each part by itself.
  void scan_parts(std::vector<Stmt>& all, const Region& source, const Region& destination) const {
    Loop parts = loop_of(parts_);
    const Expr begin = times(parts.step, part_);
    const ir::Var k = ir::make_var("k", ir::kInt32);
    const Expr before = plus(begin, ir::var_ref(k)), at = plus(before, ir::int_imm(1));
    Stmt step =
        set(destination, parts.row, at, joined(value(destination, parts.row, before), value(source, parts.row, at)));
    if (length_ % part_ != 0) step = when(ir::binary(BinaryOp::lt, at, ir::int_imm(length_)), step);
    const Stmt others = ir::make_stmt(
        ir::For{ir::LoopKind::serial, {k}, {ir::int_imm(part_ - 1)}, 0, block({std::move(step)}, span_)}, span_);
    const Stmt first = set(destination, parts.row, begin, value(source, parts.row, begin));
    all.push_back(closed(std::move(parts), {first, others}));
  }

  void combine_parts(std::vector<Stmt>& all, const Region& destination) {
    std::vector<int64_t> extents = scan_.source.extent;
    extents[static_cast<size_t>(scan_.axis)] = parts_;
    Buffer now = tile(extents).buffer, next = tile(extents).buffer;
    const auto at = [&](std::vector<Expr> row, const Expr& part) {
      row[static_cast<size_t>(scan_.axis)] = part;
      return row;
    };
    {
      Loop parts = loop_of(parts_);
      const Expr last =
          ir::binary(BinaryOp::min, plus(times(parts.step, part_), ir::int_imm(part_ - 1)), ir::int_imm(length_ - 1));
      const Stmt take =
          ir::make_stmt(ir::Store{now, at(parts.row, parts.step), value(destination, parts.row, last)}, span_);
      all.push_back(closed(std::move(parts), {take}));
    }
    for (int64_t distance = 1; distance < parts_; distance *= 2) {
      Loop parts = loop_of(parts_);
      const Expr own = ir::load(now, at(parts.row, parts.step), span_);
      const Expr earlier =
          ir::load(now, at(parts.row, ir::binary(BinaryOp::sub, parts.step, ir::int_imm(distance))), span_);
      const auto store = [&](Expr to) {
        return ir::make_stmt(ir::Store{next, at(parts.row, parts.step), std::move(to)}, span_);
      };
      const Stmt step = when(ir::binary(BinaryOp::ge, parts.step, ir::int_imm(distance)), store(joined(earlier, own)),
                             block({store(own)}, span_));
      all.push_back(closed(std::move(parts), {step}));
      std::swap(now, next);
    }
    Loop elements = loop_of(length_ - part_);
    const Expr element = plus(elements.step, ir::int_imm(part_));
    const Expr part = ir::binary(BinaryOp::floor_div, elements.step, ir::int_imm(part_));
    const Expr sum = joined(ir::load(now, at(elements.row, part), span_), value(destination, elements.row, element));
    const Stmt add = set(destination, elements.row, element, sum);
    all.push_back(closed(std::move(elements), {add}));
  }
};

class ScanExpander : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  ScanExpander(int64_t threads, std::vector<Buffer>& allocations) : threads_(threads), allocations_(allocations) {}

  Stmt rewrite(const Stmt& stmt) override {
    const auto* scan = ir::as<ir::Scan>(stmt);
    if (!scan) return rewrite_children(stmt);
    if (const Stmt parallel = ParallelScan(*scan, stmt->span, allocations_).run(threads_)) return parallel;
    ir::Kernel one;
    one.body = stmt;
    const Stmt loops = passes::expand_scans(one).body;
    if (const auto* loop = ir::as<ir::For>(loops); loop && loop->kind == ir::LoopKind::parallel) return loops;
    return ir::make_stmt(
        ir::For{ir::LoopKind::parallel, {ir::make_var("once", ir::kInt32)}, {ir::int_imm(1)}, 0, loops}, stmt->span);
  }

 private:
  const int64_t threads_;
  std::vector<Buffer>& allocations_;
};

}  // namespace

Stmt with_parallel_scans(const ir::Kernel& kernel, std::vector<Buffer>& allocations) {
  return ScanExpander(passes::thread_count(kernel), allocations).rewrite(kernel.body);
}

}  // namespace tilepilot::targets::gpu
