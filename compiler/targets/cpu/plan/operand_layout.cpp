#include "compiler/targets/cpu/plan/operand_layout.h"

#include <unordered_set>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {
namespace {

class UseScan {
 public:
  explicit UseScan(const ir::Kernel& kernel) : refused_(ir::sharing_buffers(kernel)) {}

  OperandLayouts run(const ir::Stmt& body) {
    ir::walk(
        body, [&](const ir::Stmt& stmt) { on_stmt(stmt); }, [&](const ir::Expr& expr) { on_expr(expr); });
    for (const ir::BufferData* buffer : refused_) layouts_.erase(buffer);
    std::erase_if(layouts_, [&](const auto& entry) {
      return rounded_.contains(entry.first) && entry.second.computed != entry.first->type;
    });
    return std::move(layouts_);
  }

 private:
  OperandLayouts layouts_;
  std::unordered_set<const ir::BufferData*> refused_;
  std::unordered_set<const ir::BufferData*> rounded_;  // filled from another element type

  void refuse(const ir::Buffer& buffer) { refused_.insert(buffer.get()); }

  void on_expr(const ir::Expr& expr) {
    if (const auto* load = std::get_if<ir::Load>(&expr->node)) refuse(load->buffer);
  }

  void on_stmt(const ir::Stmt& stmt) {
    std::visit(ir::overloaded{
                   [&](const ir::Store& store) { refuse(store.buffer); },
                   [&](const ir::Copy& copy) { on_copy(copy); },
                   [&](const ir::Fill& fill) { require_whole(fill.destination); },
                   [&](const ir::Gemm& gemm) { on_gemm(gemm); },
                   [&](const auto&) {
                     const ir::Accesses accesses = ir::region_accesses(stmt);
                     for (const auto* regions : {&accesses.reads, &accesses.writes})
                       for (const ir::Region* region : *regions) refuse(region->buffer);
                   },
               },
               stmt->node);
  }

  void require_whole(const ir::Region& region) {
    if (!covers_buffer(region)) refuse(region.buffer);
  }

  void on_copy(const ir::Copy& copy) {
    refuse(copy.source.buffer);
    require_whole(copy.destination);
    // A copy that rounds, to a type narrower than the product's, cannot be skipped.
    const ir::DType from = copy.source.buffer->type, to = copy.destination.buffer->type;
    if (from != to) rounded_.insert(copy.destination.buffer.get());
    // The matrix that is read must have unit stride along its rows.
    const bool strided = !copy.source.buffer->strides.empty();
    if (strided || copy.source.extent.back() == 1) refuse(copy.destination.buffer);
  }

  void on_gemm(const ir::Gemm& gemm) {
    refuse(gemm.c.buffer);
    on_operand(gemm.a, {false, gemm.transpose_a, gemm_type(gemm)});
    on_operand(gemm.b, {true, gemm.transpose_b, gemm_type(gemm)});
  }

  void on_operand(const ir::Region& region, OperandLayout wanted) {
    const ir::Buffer& buffer = region.buffer;
    if (!covers_buffer(region) || buffer->rank() != 2 || buffer->scope == ir::Scope::global || region.extent[0] == 1 ||
        region.extent[1] == 1)
      return refuse(buffer);
    const auto [known, fresh] = layouts_.emplace(buffer.get(), wanted);
    const OperandLayout& layout = known->second;
    if (!fresh &&
        (layout.is_b != wanted.is_b || layout.transposed != wanted.transposed || layout.computed != wanted.computed))
      refuse(buffer);
  }
};

}  // namespace

OperandLayouts choose_operand_layouts(const ir::Kernel& kernel) {
  OperandLayouts layouts = UseScan(kernel).run(kernel.body);
  // Rows of A in the type of the product are what the buffer holds anyway.
  std::erase_if(layouts, [&](const auto& entry) {
    const auto& [buffer, layout] = entry;
    return !layout.is_b && !layout.transposed && layout.computed == buffer->type;
  });
  return layouts;
}

ir::DType gemm_type(const ir::Gemm& gemm) {
  const ir::DType a = gemm.a.buffer->type, b = gemm.b.buffer->type, c = gemm.c.buffer->type;
  if (a.is_float() || b.is_float() || c.is_float())
    return a == ir::kFloat64 || b == ir::kFloat64 || c == ir::kFloat64 ? ir::kFloat64 : ir::kFloat32;
  return c.bits == 64 ? ir::kInt64 : ir::kInt32;
}

int64_t packed_elements(const ir::Buffer& buffer, const OperandLayout& layout) {
  const int64_t first = ir::constant_int(buffer->shape[0]).value_or(0);
  const int64_t second = ir::constant_int(buffer->shape[1]).value_or(0);
  if (!layout.is_b) return first * second;
  const auto padded = [](int64_t n) { return (n + kWidestPanel - 1) / kWidestPanel * kWidestPanel; };
  return layout.transposed ? padded(first) * second : first * padded(second);
}

bool covers_buffer(const ir::Region& region) {
  for (size_t axis = 0; axis < region.extent.size(); ++axis) {
    const auto extent = ir::constant_int(region.buffer->shape[axis]);
    const auto start = ir::constant_int(region.start[axis]);
    if (!extent || *extent != region.extent[axis] || !start || *start != 0) return false;
  }
  return true;
}

}  // namespace tilepilot::targets::cpu
