#include "compiler/targets/c/events.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"
#include "compiler/targets/cpu/plan/operand_layout.h"

namespace tilepilot::targets::cpu {
namespace {

// A matrix operand where it lies: the last two axes of its region.
struct Operand {
  std::string at;
  int64_t stride, rows, columns;
  ir::DType type;
};

Operand operand(c::Context& context, const ir::Region& region) {
  const size_t rank = region.extent.size();
  const std::vector<int64_t> shape = c::extents(region.buffer);
  return {address(context, region.buffer, region.start), shape[rank - 1], region.extent[rank - 2],
          region.extent[rank - 1], region.buffer->type};
}

std::string rows_of(const Operand& matrix) {
  return fmt::format("rows<const {}>{{{}, {}}}", c::stored_type(matrix.type), matrix.at, matrix.stride);
}

std::string window_of(const Operand& matrix) {
  return fmt::format("window{{0, {}, 0, {}}}", matrix.rows, matrix.columns);
}

class GemmEmitter {
 public:
  GemmEmitter(c::Context& context, const ir::Gemm& gemm)
      : context_(context), gemm_(gemm), computed_(gemm_type(gemm)), type_(c::stored_type(computed_)) {
    const size_t rank_a = gemm.a.extent.size(), rank_c = gemm.c.extent.size();
    m_ = gemm.c.extent[rank_c - 2];
    n_ = gemm.c.extent[rank_c - 1];
    k_ = gemm.a.extent[gemm.transpose_a ? rank_a - 2 : rank_a - 1];
  }

  void run() {
    const Operand c = operand(context_, gemm_.c);
    if (gemm_.clear_accumulator && c.type == computed_)
      context_.body.line("fill_tile<{0}>(rows<{0}>{{{1}, {2}}}, {3}, {4}, 0);", type_, c.at, c.stride, m_, n_);
    int64_t stride_a = k_;
    const std::string a = left(stride_a);
    const std::string b = right();
    const std::string call = fmt::format("multiply_panels<{}, {}, {}, {}, {}>", type_, m_, n_, k_, stride_a);
    if (c.type == computed_) {
      context_.body.line("{}({}, {}, rows<{}>{{{}, {}}});", call, a, b, type_, c.at, c.stride);
      return;
    }
    const std::string sum = temporary("accumulator", m_ * n_);
    const std::string tile = fmt::format("rows<{}>{{{}, {}}}", type_, sum, n_);
    if (gemm_.clear_accumulator)
      context_.body.line("fill_tile<{}>({}, {}, {}, 0);", type_, tile, m_, n_);
    else
      context_.body.line("copy_tile({}, {}, {}, {});", tile, rows_of(c), m_, n_);
    context_.body.line("{}({}, {}, {});", call, a, b, tile);
    context_.body.line("copy_tile(rows<{}>{{{}, {}}}, rows<const {}>{{{}, {}}}, {}, {});", c::stored_type(c.type), c.at,
                       c.stride, type_, sum, n_, m_, n_);
  }

 private:
  c::Context& context_;
  const ir::Gemm& gemm_;
  ir::DType computed_;
  std::string type_;
  int64_t m_, n_, k_;

  std::string temporary(const std::string& wish, int64_t elements) {
    return context_.temporary(wish, type_, elements, computed_.bytes());
  }

  // A by rows, in the product's type: where it lies, or a packed copy.
  std::string left(int64_t& stride) {
    if (context_.layouts.contains(gemm_.a.buffer.get())) return context_.names.of(gemm_.a.buffer);
    const Operand a = operand(context_, gemm_.a);
    if (!gemm_.transpose_a && a.type == computed_) {
      stride = a.stride;
      return a.at;
    }
    std::string packed = temporary(gemm_.a.buffer->name + "_rows", m_ * k_);
    context_.body.line("{}(rows<{}>{{{}, {}}}, {}, {}, {}, {});", gemm_.transpose_a ? "load_transposed" : "load_tile",
                       type_, packed, k_, rows_of(a), m_, k_, window_of(a));
    return packed;
  }

  // B in panels.
  std::string right() {
    if (context_.layouts.contains(gemm_.b.buffer.get())) return context_.names.of(gemm_.b.buffer);
    const Operand b = operand(context_, gemm_.b);
    const int64_t padded = (n_ + kWidestPanel - 1) / kWidestPanel * kWidestPanel;
    std::string packed = temporary(gemm_.b.buffer->name + "_panels", padded * k_);
    context_.body.line("pack_panels{}({}, {}, {}, {}, {});", gemm_.transpose_b ? "_transposed" : "", packed, rows_of(b),
                       b.rows, b.columns, window_of(b));
    return packed;
  }
};

}  // namespace

void emit_gemm(c::Context& context, const ir::Gemm& gemm, Span span) {
  for (const ir::Region* region : {&gemm.a, &gemm.b, &gemm.c}) {
    if (region->buffer->scope == ir::Scope::global)
      return context.fail(span, fmt::format("`{}` is a global tensor; `T.gemm` works on tiles", region->buffer->name),
                          "copy it to a shared buffer or fragment first");
  }
  context.body.line("// gemm {} . {} -> {}", gemm.a.buffer->name, gemm.b.buffer->name, gemm.c.buffer->name);
  for (const ir::Region* region : {&gemm.a, &gemm.b, &gemm.c}) check_inside(context, *region);
  GemmEmitter(context, gemm).run();
}

}  // namespace tilepilot::targets::cpu
