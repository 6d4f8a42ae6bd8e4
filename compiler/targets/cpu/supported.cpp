#include "compiler/targets/cpu/supported.h"

#include <fmt/format.h>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {
namespace {

Error unsupported(Span span, std::string message, std::string hint) {
  return make_error(DiagnosticKind::unsupported_tile_feature, span, std::move(message), std::move(hint));
}

Status check(const ir::Stmt& stmt) {
  if (const auto* call = ir::as<ir::ExternCall>(stmt))
    return unsupported(stmt->span,
                       fmt::format("`{}` is a function of foreign device source, which the CPU target does not compile",
                                   call->function),
                       "write what it does in the tile language");
  return {};
}

}  // namespace

Status check_supported(const ir::Program& program) {
  Status status;
  for (const ir::Kernel& kernel : program.kernels)
    ir::walk(
        kernel.body,
        [&](const ir::Stmt& stmt) {
          if (status.ok()) status = check(stmt);
        },
        [](const ir::Expr&) {});
  return status;
}

void announce_ignored(const ir::Program& program, DiagnosticList& warnings) {
  const auto ignore = [&](Span span, std::string_view what) {
    warnings.add({DiagnosticKind::ignored_request, span, fmt::format("`{}` has no effect on this target", what)});
  };
  for (const ir::Kernel& kernel : program.kernels) {
    if (kernel.fast_math) ignore(kernel.span, "TL_ENABLE_FAST_MATH");
    if (kernel.order.panel > 0) ignore(kernel.order.span, "T.use_swizzle");
    // One `T.annotate_layout` may name several tiles.
    for (size_t k = 0; k < kernel.layouts.size(); ++k)
      if (k == 0 || kernel.layouts[k].span != kernel.layouts[k - 1].span)
        ignore(kernel.layouts[k].span, "T.annotate_layout");
  }
}

}  // namespace tilepilot::targets::cpu
