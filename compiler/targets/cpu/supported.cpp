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
  const auto* sync = ir::as<ir::Sync>(stmt);
  if (sync && sync->scope == ir::SyncScope::grid)
    return unsupported(stmt->span, "the CPU target has no barrier of all blocks",
                       "end the kernel and open another `with T.Kernel(...)`");
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

}  // namespace tilepilot::targets::cpu
