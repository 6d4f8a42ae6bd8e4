#include "interpreter.h"

#include <cmath>

#include "compiler/ir/visit.h"
#include "compiler/targets/cpu/operand_layout.h"

namespace tilepilot::testing {
namespace {

std::vector<int64_t> plus(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  for (size_t k = 0; k < a.size(); ++k) a[k] += b[k];
  return a;
}

// Offsets along the axes of extent above 1, spread over another region's axes.
std::vector<int64_t> carry_over(const std::vector<int64_t>& offsets, const ir::Region& from, const ir::Region& to) {
  std::vector<int64_t> result(to.extent.size(), 0);
  size_t axis = 0;
  for (size_t k = 0; k < from.extent.size(); ++k) {
    if (from.extent[k] == 1) continue;
    while (to.extent[axis] == 1) ++axis;
    result[axis++] = offsets[k];
  }
  return result;
}

Element reduction_identity(ir::ReduceOp op, ir::DType type) {
  const auto number = [&](double value, int64_t whole) {
    return type.is_float() ? Element{type, value, 0} : Element{type, 0, whole};
  };
  const bool is_unsigned = type.code == ir::TypeCode::unsigned_int;
  const int64_t highest = is_unsigned ? (type.bits == 64 ? -1 : (INT64_C(1) << type.bits) - 1)
                                      : static_cast<int64_t>(~UINT64_C(0) >> (65 - type.bits));
  switch (op) {
    case ir::ReduceOp::max:
      return number(-INFINITY, is_unsigned ? 0 : -highest - 1);
    case ir::ReduceOp::min:
      return number(INFINITY, highest);
    case ir::ReduceOp::bit_and:
      return number(0, is_unsigned ? highest : -1);
    default:
      return number(0, 0);
  }
}

// NaN operands of max and min are passed over, or kept.
Element reduction_step(ir::ReduceOp op, const Element& sum, Element x, bool keeps_nan) {
  using ir::BinaryOp;
  if (op == ir::ReduceOp::bit_and) return apply(BinaryOp::bit_and, sum, x);
  if (op == ir::ReduceOp::bit_or) return apply(BinaryOp::bit_or, sum, x);
  if (op == ir::ReduceOp::bit_xor) return apply(BinaryOp::bit_xor, sum, x);
  if (keeps_nan && x.type.is_float() && (std::isnan(sum.number) || std::isnan(x.number)))
    return apply(BinaryOp::add, sum, x);
  if (op == ir::ReduceOp::abs_sum || op == ir::ReduceOp::abs_max) x = apply(ir::MathFn::abs, x);
  if (op == ir::ReduceOp::sum || op == ir::ReduceOp::abs_sum) return apply(BinaryOp::add, sum, x);
  const BinaryOp better = op == ir::ReduceOp::min ? BinaryOp::lt : BinaryOp::gt;
  return apply(better, x, sum).truth() ? x : sum;
}

// Sums of 16-bit floats are kept in float32.
ir::DType accumulator(ir::DType type) { return type.is_float() && type.bits == 16 ? ir::kFloat32 : type; }

}  // namespace

Interpreter::Interpreter(const ir::Program& program, const std::vector<runtime::Argument>& arguments)
    : program_(program) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (const auto* buffer = std::get_if<ir::Buffer>(&program.parameters[k])) {
      bind(*buffer, std::get<runtime::TensorView>(arguments[k]));
      continue;
    }
    const ir::Var& var = std::get<ir::Var>(program.parameters[k]);
    if (const auto* integer = std::get_if<int64_t>(&arguments[k]))
      vars_[var.get()] = Element::integer(var->type, *integer);
    else
      vars_[var.get()] = Element::real(var->type, std::get<double>(arguments[k]));
  }
}

void Interpreter::bind(const ir::Buffer& buffer, const runtime::TensorView& tensor) {
  memory_[buffer.get()] = {buffer->type, tensor.shape, tensor.strides, static_cast<std::byte*>(tensor.data), true};
  for (size_t axis = 0; axis < buffer->rank(); ++axis)
    if (const auto* ref = std::get_if<ir::VarRef>(&buffer->shape[axis]->node))
      vars_[ref->var.get()] = Element::integer(ref->var->type, tensor.shape[axis]);
}

void Interpreter::run() {
  for (const ir::Kernel& kernel : program_.kernels) {
    const Indices grid = integers(kernel.grid);
    each({grid.rbegin(), grid.rend()}, [&](const Indices& block) {
      for (size_t axis = 0; axis < grid.size(); ++axis)
        vars_[kernel.block_vars[axis].get()] =
            Element::integer(kernel.block_vars[axis]->type, block[grid.size() - 1 - axis]);
      run_block(kernel);
    });
  }
}

void Interpreter::run_block(const ir::Kernel& kernel) {
  for (const ir::Buffer& buffer : kernel.allocations) {
    Array tile(buffer->type, integers(buffer->shape));
    const runtime::TensorView view = tile.view();
    auto& bytes = tiles_[buffer.get()];
    bytes.assign(tile.bytes.size(), std::byte{0});
    memory_[buffer.get()] = {buffer->type, view.shape, view.strides, bytes.data(), false};
  }
  run(kernel.body);
}

void Interpreter::each(const std::vector<int64_t>& extent, const std::function<void(const Indices&)>& body) {
  Indices at(extent.size(), 0);
  for (const int64_t size : extent)
    if (size <= 0) return;
  for (;;) {
    body(at);
    size_t axis = extent.size();
    while (axis > 0 && ++at[axis - 1] == extent[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

Interpreter::Indices Interpreter::integers(const std::vector<ir::Expr>& exprs) {
  Indices result;
  for (const ir::Expr& expr : exprs) result.push_back(integer(expr));
  return result;
}

bool Interpreter::inside(const Memory& memory, const Indices& at) {
  for (size_t axis = 0; axis < at.size(); ++axis)
    if (at[axis] < 0 || at[axis] >= memory.shape[axis]) return false;
  return true;
}

int64_t Interpreter::place(const Memory& memory, const Indices& at) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * memory.strides[axis];
  return offset;
}

Element Interpreter::read(const ir::Buffer& buffer, const Indices& at) {
  const Memory& memory = memory_.at(buffer.get());
  if (inside(memory, at)) return Element::load(memory.data, memory.type, place(memory, at));
  EXPECT_TRUE(memory.is_global) << "read outside tile " << buffer->name;
  return {memory.type};
}

void Interpreter::write(const ir::Buffer& buffer, const Indices& at, const Element& value) {
  const Memory& memory = memory_.at(buffer.get());
  if (inside(memory, at)) return value.store(memory.data, place(memory, at));
  EXPECT_TRUE(memory.is_global) << "write outside tile " << buffer->name;
}

Element Interpreter::evaluate(const ir::Expr& expr) {
  return std::visit(ir::overloaded{
                        [&](const ir::IntImm& imm) { return Element::integer(expr->type, imm.value); },
                        [&](const ir::FloatImm& imm) { return Element::real(expr->type, imm.value); },
                        [&](const ir::VarRef& ref) { return vars_.at(ref.var.get()); },
                        [&](const ir::Load& load) { return read(load.buffer, integers(load.indices)); },
                        [&](const ir::Unary& node) { return apply(node.op, evaluate(node.operand)); },
                        [&](const ir::Binary& node) {
                          const Element left = evaluate(node.left);
                          if (node.op == ir::BinaryOp::logical_and && !left.truth()) return left;
                          if (node.op == ir::BinaryOp::logical_or && left.truth()) return left;
                          return apply(node.op, left, evaluate(node.right));
                        },
                        [&](const ir::Math& node) { return apply(node.function, evaluate(node.argument)); },
                        [&](const ir::Select& node) {
                          return evaluate(evaluate(node.condition).truth() ? node.then : node.otherwise);
                        },
                        [&](const ir::Cast& node) { return converted(evaluate(node.value), expr->type); },
                        [&](const ir::Reinterpret& node) { return evaluate(node.value).reinterpret(expr->type); },
                    },
                    expr->node);
}

Element Interpreter::converted(const Element& value, ir::DType to) {
  met_undefined_ = met_undefined_ || !value.can_cast(to);
  return value.cast(to);
}

Interpreter::Flow Interpreter::run(const ir::Stmt& stmt) {
  return std::visit(ir::overloaded{
                        [&](const ir::For& loop) { return run(loop, 0); },
                        [&](const ir::While& loop) { return run(loop); },
                        [&](const ir::If& node) {
                          if (evaluate(node.condition).truth()) return run(node.then);
                          return node.otherwise ? run(node.otherwise) : Flow::normal;
                        },
                        [&](const ir::Let& let) {
                          vars_[let.var.get()] = evaluate(let.value);
                          return Flow::normal;
                        },
                        [&](const ir::Store& store) {
                          const Element value = evaluate(store.value);
                          write(store.buffer, integers(store.indices), value);
                          return Flow::normal;
                        },
                        [](const ir::Break&) { return Flow::broken; },
                        [](const ir::Continue&) { return Flow::continued; },
                        [](const ir::Sync&) { return Flow::normal; },  // blocks are run as one
                        [&](const ir::Block& block) { return run(block); },
                        [&](const auto& tile_operator) {
                          run(tile_operator);
                          return Flow::normal;
                        },
                    },
                    stmt->node);
}

Interpreter::Flow Interpreter::run(const ir::Block& block) {
  for (const ir::Stmt& stmt : block.body)
    if (const Flow flow = run(stmt); flow != Flow::normal) return flow;
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const ir::For& loop, size_t axis) {
  if (axis == loop.vars.size()) return run(loop.body);
  const int64_t extent = integer(loop.extents[axis]);
  for (int64_t i = 0; i < extent; ++i) {
    vars_[loop.vars[axis].get()] = Element::integer(loop.vars[axis]->type, i);
    if (run(loop, axis + 1) == Flow::broken) break;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const ir::While& loop) {
  while (evaluate(loop.condition).truth())
    if (run(loop.body) == Flow::broken) break;
  return Flow::normal;
}

void Interpreter::run(const ir::Copy& copy) {
  const Indices from = start(copy.source), to = start(copy.destination);
  std::vector<Element> values;
  each(copy.source.extent, [&](const Indices& at) { values.push_back(read(copy.source.buffer, plus(from, at))); });
  size_t next = 0;
  each(copy.source.extent, [&](const Indices& at) {
    write(copy.destination.buffer, plus(to, carry_over(at, copy.source, copy.destination)),
          converted(values[next++], copy.destination.buffer->type));
  });
}

void Interpreter::run(const ir::Fill& fill) {
  const Indices to = start(fill.destination);
  const Element value = evaluate(fill.value);
  each(fill.destination.extent, [&](const Indices& at) { write(fill.destination.buffer, plus(to, at), value); });
}

void Interpreter::run(const ir::Gemm& gemm) {
  const Indices a = start(gemm.a), b = start(gemm.b), c = start(gemm.c);
  const ir::DType type = targets::cpu::product_type(gemm);
  const auto at = [](Indices first, int64_t row, int64_t column, bool transposed) {
    first[first.size() - 2] += transposed ? column : row;
    first[first.size() - 1] += transposed ? row : column;
    return first;
  };
  const size_t rank_a = gemm.a.extent.size();
  const int64_t depth = gemm.a.extent[gemm.transpose_a ? rank_a - 2 : rank_a - 1];
  each({gemm.c.extent.end() - 2, gemm.c.extent.end()}, [&](const Indices& point) {
    const Indices target = at(c, point[0], point[1], false);
    Element sum = gemm.clear_accumulator ? Element{type} : read(gemm.c.buffer, target).cast(type);
    for (int64_t k = 0; k < depth; ++k) {
      const Element x = read(gemm.a.buffer, at(a, point[0], k, gemm.transpose_a)).cast(type);
      const Element y = read(gemm.b.buffer, at(b, k, point[1], gemm.transpose_b)).cast(type);
      sum = apply(ir::BinaryOp::add, sum, apply(ir::BinaryOp::mul, x, y));
    }
    write(gemm.c.buffer, target, sum.cast(gemm.c.buffer->type));
  });
}

void Interpreter::run(const ir::Reduce& reduce) {
  const Indices from = start(reduce.source), to = start(reduce.destination);
  const size_t axis = static_cast<size_t>(reduce.axis);
  const ir::DType type = accumulator(reduce.destination.buffer->type);
  std::vector<int64_t> outer = reduce.source.extent;
  outer[axis] = 1;
  each(outer, [&](const Indices& point) {
    Element sum = reduction_identity(reduce.op, type);
    for (int64_t k = 0; k < reduce.source.extent[axis]; ++k) {
      Indices at = plus(from, point);
      at[axis] += k;
      sum = reduction_step(reduce.op, sum, read(reduce.source.buffer, at).cast(type), reduce.nan_propagate);
    }
    Indices target = point;
    if (reduce.destination.extent.size() < point.size()) target.erase(target.begin() + reduce.axis);
    target = plus(to, target);
    if (!reduce.clear) {
      const Element old = read(reduce.destination.buffer, target).cast(type);
      const ir::ReduceOp join = reduce.op == ir::ReduceOp::abs_sum   ? ir::ReduceOp::sum
                                : reduce.op == ir::ReduceOp::abs_max ? ir::ReduceOp::max
                                                                     : reduce.op;
      sum = reduction_step(join, old, sum, reduce.nan_propagate);
    }
    write(reduce.destination.buffer, target, sum.cast(reduce.destination.buffer->type));
  });
}

void Interpreter::run(const ir::Scan& scan) {
  const Indices from = start(scan.source), to = start(scan.destination);
  const size_t axis = static_cast<size_t>(scan.axis);
  const ir::BinaryOp op = scan.op == ir::ScanOp::sum ? ir::BinaryOp::add : ir::BinaryOp::max;
  std::vector<int64_t> outer = scan.source.extent;
  outer[axis] = 1;
  each(outer, [&](const Indices& point) {
    std::optional<Element> sum;
    for (int64_t k = 0; k < scan.source.extent[axis]; ++k) {
      Indices step = point;
      step[axis] = scan.reverse ? scan.source.extent[axis] - 1 - k : k;
      const Element next = read(scan.source.buffer, plus(from, step));
      sum = sum ? apply(op, *sum, next) : next;
      write(scan.destination.buffer, plus(to, step), *sum);
    }
  });
}

void Interpreter::run(const ir::Atomic& atomic) {
  static constexpr ir::BinaryOp kUpdates[] = {ir::BinaryOp::add, ir::BinaryOp::min, ir::BinaryOp::max,
                                              ir::BinaryOp::bit_or};
  const Indices at = start(atomic.element);
  const Element old = read(atomic.element.buffer, at);
  if (atomic.op != ir::AtomicOp::load) {
    Element next = evaluate(atomic.value);
    if (atomic.op >= ir::AtomicOp::add) {
      const auto update = static_cast<size_t>(atomic.op) - static_cast<size_t>(ir::AtomicOp::add);
      next = apply(kUpdates[update], old, next);
    }
    write(atomic.element.buffer, at, next);
  }
  if (atomic.previous) vars_[atomic.previous.get()] = old;
}

// Blocks are run as one thread.
void Interpreter::run(const ir::AllReduce& reduce) {
  const Element value = evaluate(evaluate(reduce.condition).truth() ? reduce.value : reduce.identity);
  write(reduce.result.buffer, start(reduce.result), value);
}

}  // namespace tilepilot::testing
