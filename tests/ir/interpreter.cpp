#include "interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/fold.h"

namespace tilepilot::ir::testing {
namespace {

using passes::round_to;

enum class Flow { next, break_loop, continue_loop };

// The bits of a 16-bit float with `exponent_bits`; every value of the type is found by its order.
uint64_t small_float_bits(double value, int exponent_bits) {
  const int significand_bits = 15 - exponent_bits;
  const uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << significand_bits;
  if (std::isnan(value)) return infinity | 1;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int stored = std::max(exponent - 1 + bias, 0);
  const int unit = (stored == 0 ? 1 : stored) - bias - significand_bits;
  const auto significand = uint64_t(std::ldexp(std::fabs(value), -unit));
  const uint64_t hidden = stored == 0 ? 0 : uint64_t{1} << significand_bits;
  return sign | uint64_t(stored) << significand_bits | (significand - hidden);
}

double small_float(uint64_t bits, int exponent_bits) {
  const int significand_bits = 15 - exponent_bits;
  const auto exponent = int(bits >> significand_bits & ((1u << exponent_bits) - 1));
  const auto significand = double(bits & ((1u << significand_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = significand != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(significand, 1 - bias - significand_bits);
  } else {
    value = std::ldexp(significand + double(1 << significand_bits), exponent - bias - significand_bits);
  }
  return bits & 0x8000 ? -value : value;
}

template <class To, class From>
To bit_copy(From from) {
  To to;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// Float arithmetic in the type: half types in float32, rounded once.
template <class F>
double in_type(DType type, F&& compute) {
  return type == kFloat64 ? compute(double{}) : round_to(double(compute(float{})), type);
}

double binary_float(BinaryOp op, double a, double b, DType type) {
  return in_type(type, [&](auto zero) {
    using T = decltype(zero);
    const T x = T(a), y = T(b);
    switch (op) {
      case BinaryOp::add:
        return T(x + y);
      case BinaryOp::sub:
        return T(x - y);
      case BinaryOp::mul:
        return T(x * y);
      case BinaryOp::div:
        return T(x / y);
      case BinaryOp::min:
        return x < y ? x : y;
      case BinaryOp::max:
        return x > y ? x : y;
      default:
        return T(std::pow(x, y));
    }
  });
}

double math_float(MathFn function, double a, DType type) {
  return in_type(type, [&](auto zero) {
    using T = decltype(zero);
    const T x = T(a);
    switch (function) {
      case MathFn::exp:
        return T(std::exp(x));
      case MathFn::exp2:
        return T(std::exp2(x));
      case MathFn::exp10:
        return T(std::pow(T(10), x));
      case MathFn::log:
        return T(std::log(x));
      case MathFn::log2:
        return T(std::log2(x));
      case MathFn::log10:
        return T(std::log10(x));
      case MathFn::log1p:
        return T(std::log1p(x));
      case MathFn::sqrt:
        return T(std::sqrt(x));
      case MathFn::rsqrt:
        return T(1 / std::sqrt(x));
      case MathFn::sin:
        return T(std::sin(x));
      case MathFn::cos:
        return T(std::cos(x));
      case MathFn::tan:
        return T(std::tan(x));
      case MathFn::sinh:
        return T(std::sinh(x));
      case MathFn::cosh:
        return T(std::cosh(x));
      case MathFn::tanh:
        return T(std::tanh(x));
      case MathFn::asin:
        return T(std::asin(x));
      case MathFn::acos:
        return T(std::acos(x));
      case MathFn::atan:
        return T(std::atan(x));
      case MathFn::erf:
        return T(std::erf(x));
      case MathFn::sigmoid:
        return T(1 / (1 + std::exp(-x)));
      case MathFn::abs:
        return T(std::fabs(x));
      case MathFn::floor:
        return T(std::floor(x));
      case MathFn::ceil:
        return T(std::ceil(x));
      case MathFn::round:
        return T(std::nearbyint(x));
      case MathFn::trunc:
        return T(std::trunc(x));
      default:
        return x;
    }
  });
}

bool test_float(MathFn function, double x) {
  return function == MathFn::isnan ? std::isnan(x) : function == MathFn::isinf ? std::isinf(x) : std::isfinite(x);
}

Wide whole(Element e, DType type) { return type == kUInt64 ? Wide{uint64_t(e.i)} : Wide{e.i}; }

template <class T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    default:
      return a >= b;
  }
}

int64_t binary_int(BinaryOp op, Wide a, Wide b, DType type) {
  switch (op) {
    case BinaryOp::add:
      return wrap(a + b, type);
    case BinaryOp::sub:
      return wrap(a - b, type);
    case BinaryOp::mul:
      return wrap(Wide{int64_t(a)} * int64_t(b), type);
    case BinaryOp::floor_div:
      return wrap(floor_div(a, b), type);
    case BinaryOp::floor_mod:
      return wrap(floor_mod(a, b), type);
    case BinaryOp::min:
      return wrap(std::min(a, b), type);
    case BinaryOp::max:
      return wrap(std::max(a, b), type);
    case BinaryOp::shl:
      return wrap(a * (Wide{1} << int(b)), type);
    case BinaryOp::shr:
      return wrap(a >> int(b), type);
    case BinaryOp::bit_and:
      return wrap(a & b, type);
    case BinaryOp::bit_or:
      return wrap(a | b, type);
    default:
      return wrap(a ^ b, type);
  }
}

Element converted(Element e, DType from, DType to) {
  if (from.is_float() && to.is_float()) return {0, round_to(e.f, to)};
  if (from.is_float() && to.is_bool()) return {e.f != 0, 0};
  if (from.is_float()) {
    // Out of range has no meaning; take the nearest.
    if (std::isnan(e.f)) return {0, 0};
    const double clamped = std::clamp(std::trunc(e.f), -0x1p62, 0x1p62);
    return {wrap(Wide(clamped), to), 0};
  }
  if (to.is_float()) return {0, round_to(double(whole(e, from)), to)};
  return {wrap(whole(e, from), to), 0};
}

class Machine {
 public:
  Machine(const Program& program, Arguments& arguments, int64_t budget) : budget_(budget) {
    for (size_t k = 0; k < program.symbols.size(); ++k) vars_[program.symbols[k].get()] = {arguments.symbols[k], 0};
    size_t buffer = 0, scalar = 0;
    for (const auto& parameter : program.parameters) {
      if (const auto* v = std::get_if<Var>(&parameter)) vars_[v->get()] = arguments.scalars[scalar++];
      if (const auto* b = std::get_if<Buffer>(&parameter)) memory_[b->get()] = &arguments.buffers[buffer++];
    }
    for (const Kernel& kernel : program.kernels) run(kernel);
  }

  // Then every loop ends at once, and the results mean nothing.
  bool exhausted() const { return budget_ < 0; }

 private:
  int64_t budget_;
  std::unordered_map<const VarData*, Element> vars_;
  std::unordered_map<const BufferData*, std::vector<Element>*> memory_;
  std::unordered_map<const BufferData*, std::vector<Element>> tiles_;

  void spend() { --budget_; }

  void run(const Kernel& kernel) {
    std::vector<int64_t> grid;
    for (const Expr& e : kernel.grid) grid.push_back(eval(e).i);
    grid.resize(3, 1);
    for (int64_t z = 0; z < grid[2]; ++z) {
      for (int64_t y = 0; y < grid[1]; ++y) {
        for (int64_t x = 0; x < grid[0] && !exhausted(); ++x) run_block(kernel, {x, y, z});
      }
    }
  }

  void run_block(const Kernel& kernel, const std::vector<int64_t>& at) {
    for (size_t k = 0; k < kernel.block_vars.size(); ++k) vars_[kernel.block_vars[k].get()] = {at[k], 0};
    for (const Buffer& b : kernel.allocations) {
      int64_t size = 1;
      for (const Expr& extent : b->shape) size *= eval(extent).i;
      tiles_[b.get()].assign(size_t(size), Element{77, 77.0});
      memory_[b.get()] = &tiles_[b.get()];
    }
    run(kernel.body);
  }

  // Memory ------------------------------------------------------------------------------------------------------------

  // Null outside the buffer.
  Element* at(const Buffer& b, const std::vector<int64_t>& indices) {
    int64_t offset = 0;
    for (size_t k = 0; k < indices.size(); ++k) {
      const int64_t extent = eval(b->shape[k]).i;
      if (indices[k] < 0 || indices[k] >= extent) return nullptr;
      offset = offset * extent + indices[k];
    }
    return &(*memory_.at(b.get()))[size_t(offset)];
  }
  Element read(const Buffer& b, const std::vector<int64_t>& indices) {
    const Element* e = at(b, indices);
    return e ? *e : Element{};
  }
  void write(const Buffer& b, const std::vector<int64_t>& indices, Element value) {
    if (Element* e = at(b, indices)) *e = value;
  }

  std::vector<int64_t> eval(const std::vector<Expr>& exprs) {
    std::vector<int64_t> result;
    for (const Expr& e : exprs) result.push_back(eval(e).i);
    return result;
  }

  // Calls `f` with the indices of each element of the region, row-major.
  template <class F>
  void for_each(const Region& region, F f) {
    const std::vector<int64_t> start = eval(region.start);
    std::vector<int64_t> point(start.size(), 0);
    for (;;) {
      spend();
      std::vector<int64_t> indices(start.size());
      for (size_t k = 0; k < start.size(); ++k) indices[k] = start[k] + point[k];
      f(indices, point);
      size_t axis = start.size();
      while (axis > 0 && ++point[axis - 1] == region.extent[axis - 1]) point[--axis] = 0;
      if (axis == 0) return;
    }
  }

  std::vector<Element> contents(const Region& region) {
    std::vector<Element> result;
    for_each(region, [&](const auto& indices, const auto&) { result.push_back(read(region.buffer, indices)); });
    return result;
  }

  // Expressions -------------------------------------------------------------------------------------------------------

  Element eval(const Expr& e) {
    spend();
    return std::visit(
        overloaded{
            [&](const IntImm& n) {
              return Element{n.value, 0};
            },
            [&](const FloatImm& n) {
              return Element{0, round_to(n.value, e->type)};
            },
            [&](const VarRef& n) { return vars_.at(n.var.get()); },
            [&](const Load& n) { return read(n.buffer, eval(n.indices)); },
            [&](const Unary& n) { return eval_unary(n, e->type); },
            [&](const Binary& n) { return eval_binary(n, e->type); },
            [&](const Math& n) { return eval_math(n, e->type); },
            [&](const Select& n) { return eval(n.condition).i ? eval(n.then) : eval(n.otherwise); },
            [&](const Cast& n) { return converted(eval(n.value), n.value->type, e->type); },
            [&](const Reinterpret& n) { return from_bits(to_bits(eval(n.value), n.value->type), e->type); },
        },
        e->node);
  }

  Element eval_unary(const Unary& n, DType type) {
    const Element x = eval(n.operand);
    if (n.op == UnaryOp::logical_not) return {!x.i, 0};
    if (n.op == UnaryOp::bit_not) return {wrap(~Wide{x.i}, type), 0};
    return type.is_float() ? Element{0, -x.f} : Element{wrap(-Wide{x.i}, type), 0};
  }

  Element eval_binary(const Binary& n, DType type) {
    const Element a = eval(n.left);
    if (n.op == BinaryOp::logical_and) return {a.i ? eval(n.right).i : 0, 0};
    if (n.op == BinaryOp::logical_or) return {a.i ? 1 : eval(n.right).i, 0};
    const Element b = eval(n.right);
    const DType operand = n.left->type;
    const bool compares = n.op >= BinaryOp::eq;
    if (operand.is_float()) {
      if (compares) return {compare(n.op, a.f, b.f), 0};
      return {0, binary_float(n.op, a.f, b.f, type)};
    }
    if (compares) return {compare(n.op, whole(a, operand), whole(b, operand)), 0};
    return {binary_int(n.op, whole(a, operand), whole(b, operand), type), 0};
  }

  Element eval_math(const Math& n, DType type) {
    const Element x = eval(n.argument);
    if (type.is_bool()) return {test_float(n.function, x.f), 0};
    if (type.is_float()) return {0, math_float(n.function, x.f, type)};
    const Wide value = whole(x, type);
    return {wrap(value < 0 ? -value : value, type), 0};
  }

  // Statements --------------------------------------------------------------------------------------------------------

  Flow run(const Stmt& s) {
    spend();
    return std::visit(overloaded{
                          [&](const For& n) { return loop(n); },
                          [&](const While& n) {
                            while (!exhausted() && eval(n.condition).i && run(n.body) != Flow::break_loop) {}
                            return Flow::next;
                          },
                          [&](const If& n) {
                            if (eval(n.condition).i) return run(n.then);
                            return n.otherwise ? run(n.otherwise) : Flow::next;
                          },
                          [&](const Let& n) {
                            vars_[n.var.get()] = eval(n.value);
                            return Flow::next;
                          },
                          [&](const Store& n) {
                            const auto indices = eval(n.indices);
                            write(n.buffer, indices, eval(n.value));
                            return Flow::next;
                          },
                          [](const Break&) { return Flow::break_loop; },
                          [](const Continue&) { return Flow::continue_loop; },
                          [](const Sync&) { return Flow::next; },  // blocks are run as one
                          [&](const Block& n) {
                            for (const Stmt& child : n.body) {
                              if (const Flow flow = run(child); flow != Flow::next) return flow;
                            }
                            return Flow::next;
                          },
                          [&](const Copy& n) { return copy(n), Flow::next; },
                          [&](const Fill& n) {
                            const Element value = eval(n.value);
                            for_each(n.destination, [&](const auto& indices, const auto&) {
                              write(n.destination.buffer, indices, value);
                            });
                            return Flow::next;
                          },
                          [&](const Gemm& n) { return gemm(n), Flow::next; },
                          [&](const Reduce& n) { return reduce(n), Flow::next; },
                          [&](const Scan& n) { return scan(n), Flow::next; },
                          [&](const Atomic& n) { return atomic(n), Flow::next; },
                          [&](const AllReduce& n) {  // blocks are run as one thread
                            const Element value = eval(eval(n.condition).i ? n.value : n.identity);
                            write(n.result.buffer, eval(n.result.start), value);
                            return Flow::next;
                          },
                      },
                      s->node);
  }

  Flow loop(const For& n) { return iterate(n, eval(n.extents), 0), Flow::next; }

  // False if the loop was left.
  bool iterate(const For& n, const std::vector<int64_t>& extents, size_t axis) {
    if (axis == extents.size()) return run(n.body) != Flow::break_loop;
    for (int64_t k = 0; k < extents[axis] && !exhausted(); ++k) {
      vars_[n.vars[axis].get()] = {k, 0};
      if (!iterate(n, extents, axis + 1)) return false;
    }
    return true;
  }

  void copy(const Copy& n) {
    const std::vector<Element> values = contents(n.source);
    size_t next = 0;
    for_each(n.destination, [&](const auto& indices, const auto&) {
      write(n.destination.buffer, indices,
            converted(values[next++], n.source.buffer->type, n.destination.buffer->type));
    });
  }

  void gemm(const Gemm& n) {
    const auto a = contents(n.a), b = contents(n.b);
    const DType in = n.a.buffer->type, out = n.c.buffer->type;
    const size_t rank = n.c.extent.size();
    const int64_t rows = n.c.extent[rank - 2], columns = n.c.extent[rank - 1], depth = int64_t(a.size()) / rows;
    for_each(n.c, [&](const auto& indices, const auto& point) {
      const int64_t i = point[rank - 2], j = point[rank - 1];
      Element sum;
      for (int64_t k = 0; k < depth; ++k) {
        spend();
        const Element x = a[size_t(n.transpose_a ? k * rows + i : i * depth + k)];
        const Element y = b[size_t(n.transpose_b ? j * depth + k : k * columns + j)];
        sum.f += x.f * y.f;
        if (!in.is_float()) sum.i = wrap(sum.i + whole(x, in) * whole(y, in), out);
      }
      const Element old = n.clear_accumulator ? Element{} : read(n.c.buffer, indices);
      write(n.c.buffer, indices, {out.is_float() ? 0 : wrap(Wide{sum.i} + old.i, out), round_to(sum.f + old.f, out)});
    });
  }

  Element combine(ReduceOp op, Element a, Element b, DType type) {
    constexpr BinaryOp kWith[] = {BinaryOp::add, BinaryOp::max,     BinaryOp::min,    BinaryOp::add,
                                  BinaryOp::max, BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};
    const BinaryOp with = kWith[size_t(op)];
    if (type.is_float()) return {0, binary_float(with, a.f, b.f, type)};
    return {binary_int(with, whole(a, type), whole(b, type), type), 0};
  }

  void scan(const Scan& n) {
    const DType type = n.source.buffer->type;
    const auto values = contents(n.source);
    const int64_t count = n.source.extent[size_t(n.axis)];
    for_each(n.destination, [&](const auto& indices, const auto& point) {
      // The elements up to this one, in the order of the scan.
      std::optional<Element> result;
      const int64_t last = n.reverse ? count - 1 - point[size_t(n.axis)] : point[size_t(n.axis)];
      for (int64_t k = 0; k <= last; ++k) {
        auto source = point;
        source[size_t(n.axis)] = n.reverse ? count - 1 - k : k;
        int64_t offset = 0;
        for (size_t axis = 0; axis < source.size(); ++axis) offset = offset * n.source.extent[axis] + source[axis];
        const Element value = values[size_t(offset)];
        result = result ? combine(n.op == ScanOp::sum ? ReduceOp::sum : ReduceOp::max, *result, value, type) : value;
      }
      write(n.destination.buffer, indices, *result);
    });
  }

  void atomic(const Atomic& n) {
    const auto indices = eval(n.element.start);
    const DType type = n.element.buffer->type;
    const Element old = read(n.element.buffer, indices);
    if (n.op != AtomicOp::load) write(n.element.buffer, indices, updated(n, old, eval(n.value), type));
    if (n.previous) vars_[n.previous.get()] = old;
  }

  Element updated(const Atomic& n, Element old, Element value, DType type) {
    switch (n.op) {
      case AtomicOp::add:
        return combine(ReduceOp::sum, old, value, type);
      case AtomicOp::min:
        return combine(ReduceOp::min, old, value, type);
      case AtomicOp::max:
        return combine(ReduceOp::max, old, value, type);
      case AtomicOp::bit_or:
        return {old.i | value.i, 0};
      default:
        return value;
    }
  }

  void reduce(const Reduce& n) {
    const DType from = n.source.buffer->type, to = n.destination.buffer->type;
    const auto values = contents(n.source);
    const bool keeps_axis = n.destination.extent.size() == n.source.extent.size();
    const int64_t count = n.source.extent[size_t(n.axis)];
    for_each(n.destination, [&](const auto& indices, const auto& point) {
      std::optional<Element> result;
      for (int64_t k = 0; k < count; ++k) {
        auto source = point;
        if (keeps_axis) source[size_t(n.axis)] = k;
        if (!keeps_axis) source.insert(source.begin() + n.axis, k);
        int64_t offset = 0;
        for (size_t axis = 0; axis < source.size(); ++axis) offset = offset * n.source.extent[axis] + source[axis];
        Element value = converted(values[size_t(offset)], from, to);
        if (n.op == ReduceOp::abs_sum || n.op == ReduceOp::abs_max) value = {std::abs(value.i), std::fabs(value.f)};
        result = result ? combine(n.op, *result, value, to) : value;
      }
      if (!n.clear) result = combine(n.op, *result, read(n.destination.buffer, indices), to);
      write(n.destination.buffer, indices, *result);
    });
  }
};

int64_t symbolic_extent(const Expr& e, const Program& program, const Arguments& arguments) {
  if (const auto value = constant_int(e)) return *value;
  const Var& symbol = std::get<VarRef>(e->node).var;
  const auto found = std::find(program.symbols.begin(), program.symbols.end(), symbol);
  return arguments.symbols[size_t(found - program.symbols.begin())];
}

}  // namespace

uint64_t to_bits(Element element, DType type) {
  if (type == kFloat64) return bit_copy<uint64_t>(element.f);
  if (type == kFloat32) return bit_copy<uint32_t>(float(element.f));
  if (type == kFloat16) return small_float_bits(element.f, 5);
  if (type == kBFloat16) return small_float_bits(element.f, 8);
  return uint64_t(element.i) & (type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1);
}

Element from_bits(uint64_t bits, DType type) {
  if (type == kFloat64) return {0, bit_copy<double>(bits)};
  if (type == kFloat32) return {0, double(bit_copy<float>(uint32_t(bits)))};
  if (type == kFloat16) return {0, small_float(bits, 5)};
  if (type == kBFloat16) return {0, small_float(bits, 8)};
  return {wrap(Wide{bits}, type), 0};
}

Arguments random_arguments(const Program& program, uint32_t seed) {
  std::mt19937 random(seed);
  const auto element = [&](DType type) {
    if (type.is_float()) return Element{0, round_to(double(random() % 512) / 64 - 4, type)};
    return Element{wrap(type.is_bool() ? Wide(random() % 2) : Wide(random() % 40) - 20, type), 0};
  };
  Arguments result;
  for (size_t k = 0; k < program.symbols.size(); ++k) result.symbols.push_back(1 + random() % 12);
  for (const auto& parameter : program.parameters) {
    if (const auto* v = std::get_if<Var>(&parameter)) result.scalars.push_back(element((*v)->type));
    const auto* b = std::get_if<Buffer>(&parameter);
    if (!b) continue;
    int64_t size = 1;
    for (const Expr& extent : (*b)->shape) size *= symbolic_extent(extent, program, result);
    result.buffers.emplace_back();
    for (int64_t k = 0; k < size; ++k) result.buffers.back().push_back(element((*b)->type));
  }
  return result;
}

bool interpret(const Program& program, Arguments& arguments, int64_t budget) {
  return !Machine(program, arguments, budget).exhausted();
}

}  // namespace tilepilot::ir::testing
