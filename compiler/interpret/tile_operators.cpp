#include "compiler/interpret/tile_operators.h"

#include "compiler/interpret/reduction.h"
#include "compiler/ir/visit.h"

namespace tilepilot::interpret {
namespace {

using ir::BinaryOp;

// A region whose starts are known.
struct Box {
  const ir::Region& region;
  Indices start;
};

// A start that a tensor held may be the last integer there is: the place wraps, and is outside all the same.
int64_t moved(int64_t start, int64_t by) {
  return static_cast<int64_t>(static_cast<uint64_t>(start) + static_cast<uint64_t>(by));
}

// Offsets along the axes of extent above 1, spread over another region's axes.
Indices carry_over(const Indices& offsets, const Indices& from, const Indices& to) {
  Indices result(to.size(), 0);
  size_t axis = 0;
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] == 1) continue;
    while (to[axis] == 1) ++axis;
    result[axis++] = offsets[k];
  }
  return result;
}

// Products are computed in float32 or float64, or in int32 or int64.
ir::DType product_type(const ir::Gemm& gemm) {
  const ir::DType a = gemm.a.buffer->type, c = gemm.c.buffer->type;
  if (!c.is_float()) return c.bits == 64 ? ir::kInt64 : ir::kInt32;
  return a == ir::kFloat64 || c == ir::kFloat64 ? ir::kFloat64 : ir::kFloat32;
}

class Operators {
 public:
  Operators(const Evaluator& in, Span span) : in_(in), span_(span) {}

  void run(const ir::Copy& n) {
    const Box from = box(n.source), to = box(n.destination);
    std::vector<Element> values;
    each(n.source.extent, [&](const Indices& at) { values.push_back(read(from, at)); });
    size_t next = 0;
    each(n.source.extent,
         [&](const Indices& at) { write(to, carry_over(at, n.source.extent, n.destination.extent), values[next++]); });
  }

  void run(const ir::Fill& n) {
    const Box to = box(n.destination);
    const Element value = in_.value(n.value);
    each(n.destination.extent, [&](const Indices& at) { write(to, at, value); });
  }

  // c is read first: its sum goes on.
  void run(const ir::Gemm& n) {
    const ir::DType type = product_type(n);
    if (type == ir::kFloat32) multiply<float>(n, type);
    if (type == ir::kFloat64) multiply<double>(n, type);
    if (type == ir::kInt32) multiply<uint32_t>(n, type);
    if (type == ir::kInt64) multiply<uint64_t>(n, type);
  }

  void run(const ir::Reduce& n) {
    const Box from = box(n.source), to = box(n.destination);
    const auto axis = static_cast<size_t>(n.axis);
    const bool keeps_axis = n.destination.extent.size() == n.source.extent.size();
    const Reduction reduction{n.op, n.nan_propagate};
    const ir::DType type = Reduction::accumulator(n.destination.buffer->type);
    std::vector<Element> results;
    each(n.destination.extent, [&](const Indices& at) {
      Indices point = at;
      if (!keeps_axis) point.insert(point.begin() + n.axis, 0);
      Element sum = reduction.identity(type);
      for (point[axis] = 0; point[axis] < n.source.extent[axis]; ++point[axis])
        sum = reduction.step(sum, read(from, point).cast(type));
      results.push_back(n.clear ? sum : reduction.join(read(to, at).cast(type), sum));
    });
    write_all(to, n.destination.extent, results);
  }

  void run(const ir::Scan& n) {
    const Box from = box(n.source), to = box(n.destination);
    const auto axis = static_cast<size_t>(n.axis);
    const BinaryOp op = n.op == ir::ScanOp::sum ? BinaryOp::add : BinaryOp::max;
    Indices lines = n.source.extent;
    const int64_t length = std::exchange(lines[axis], 1);
    each(lines, [&](Indices at) {
      std::optional<Element> sum;
      for (int64_t k = 0; k < length; ++k) {
        at[axis] = n.reverse ? length - 1 - k : k;
        const Element next = read(from, at);
        sum = sum ? apply(op, *sum, next) : next;
        write(to, at, *sum);
      }
    });
  }

 private:
  const Evaluator& in_;
  Span span_;
  Indices place_;

  // Until the next call.
  const Indices& place(const Box& box, const Indices& at) {
    place_ = box.start;
    for (size_t k = 0; k < at.size(); ++k) place_[k] = moved(place_[k], at[k]);
    return place_;
  }
  // The elements of a matrix, row by row, as numbers of T: an unsigned one has an integer's bits, and wraps as it does.
  template <class T>
  std::vector<T> numbers(const Box& box, const Indices& extent, bool transposed, ir::DType type) {
    const auto rows = static_cast<size_t>(extent[extent.size() - 2]), columns = static_cast<size_t>(extent.back());
    std::vector<T> result(rows * columns);
    size_t next = 0;
    each(extent, [&](const Indices& at) {
      const Element element = read(box, at).cast(type);
      const size_t place = transposed ? next % columns * rows + next / columns : next;
      result[place] = std::is_floating_point_v<T> ? static_cast<T>(element.number) : static_cast<T>(element.whole);
      ++next;
    });
    return result;
  }

  template <class T>
  void multiply(const ir::Gemm& n, ir::DType type) {
    const Box c = box(n.c);
    const std::vector<T> a = numbers<T>(box(n.a), n.a.extent, n.transpose_a, type);
    const std::vector<T> b = numbers<T>(box(n.b), n.b.extent, n.transpose_b, type);
    const auto columns = static_cast<size_t>(n.c.extent.back());
    const size_t rows = static_cast<size_t>(n.c.extent[n.c.extent.size() - 2]), depth = rows == 0 ? 0 : a.size() / rows;
    std::vector<Element> sums;
    each(n.c.extent, [&](const Indices& at) {
      const auto row = static_cast<size_t>(at[at.size() - 2]), column = static_cast<size_t>(at.back());
      const Element start = n.clear_accumulator ? Element::zero(type) : read(c, at).cast(type);
      T sum = std::is_floating_point_v<T> ? static_cast<T>(start.number) : static_cast<T>(start.whole);
      for (size_t k = 0; k < depth; ++k) {
        const T product = a[row * depth + k] * b[k * columns + column];
        sum = sum + product;
      }
      sums.push_back(std::is_floating_point_v<T> ? Element::real(type, static_cast<double>(sum))
                                                 : Element::integer(type, static_cast<int64_t>(sum)));
    });
    write_all(c, n.c.extent, sums);
  }

  Box box(const ir::Region& region) const { return {region, in_.integers(region.start)}; }

  Element read(const Box& box, const Indices& at) { return in_.read(box.region.buffer, place(box, at), span_); }
  void write(const Box& box, const Indices& at, const Element& value) {
    const ir::Buffer& buffer = box.region.buffer;
    in_.write(buffer, place(box, at), in_.converted(value, buffer->type, span_), span_);
  }
  void write_all(const Box& box, const Indices& extent, const std::vector<Element>& values) {
    size_t next = 0;
    each(extent, [&](const Indices& at) { write(box, at, values[next++]); });
  }
};

// By AtomicOp, from `add` on.
constexpr BinaryOp kUpdates[] = {BinaryOp::add, BinaryOp::min, BinaryOp::max, BinaryOp::bit_or};

}  // namespace

void run_tile_operator(const Evaluator& in, const ir::Stmt& stmt) {
  Operators operators(in, stmt->span);
  std::visit(ir::overloaded{
                 [&](const ir::Copy& n) { operators.run(n); },
                 [&](const ir::Fill& n) { operators.run(n); },
                 [&](const ir::Gemm& n) { operators.run(n); },
                 [&](const ir::Reduce& n) { operators.run(n); },
                 [&](const ir::Scan& n) { operators.run(n); },
                 [](const auto&) {},
             },
             stmt->node);
}

Element run_atomic(const Evaluator& in, const ir::Atomic& atomic, Span span) {
  const Indices at = in.integers(atomic.element.start);
  const ir::Buffer& buffer = atomic.element.buffer;
  const bool reads = atomic.op != ir::AtomicOp::store || atomic.previous;
  const Element before = reads ? in.read(buffer, at, span) : Element::zero(buffer->type);
  if (atomic.op == ir::AtomicOp::load) return before;
  Element next = in.value(atomic.value);
  if (atomic.op >= ir::AtomicOp::add)
    next = apply(kUpdates[static_cast<size_t>(atomic.op) - static_cast<size_t>(ir::AtomicOp::add)], before, next);
  in.write(buffer, at, next, span);
  return before;
}

}  // namespace tilepilot::interpret
