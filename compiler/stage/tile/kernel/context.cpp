#include "compiler/stage/tile/kernel/context.h"

#include <fmt/format.h>

#include "compiler/ir/out_of_bounds.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::stage {

void TileContext::announce_ignored(const std::string& request, Span span) {
  if (!announced_.insert(request).second) return;
  interpreter.diagnostics().add(
      {DiagnosticKind::ignored_request, span, fmt::format("{} has no effect on this target", request)});
}

ir::Program TileContext::finished(ir::Program program) {
  for (ir::Kernel& kernel : program.kernels) {
    const ir::Replacements wider = ir::wider_fragments(kernel);
    for (const ir::OutOfBoundsAccess& access : ir::accesses_out_of_bounds(kernel)) {
      const std::string extent = ir::to_text(access.buffer->shape[access.axis]);
      Diagnostic warning{DiagnosticKind::access_outside_tile,
                         access.span,
                         fmt::format("the index on axis {} of `{}` runs from {} to {}, and the axis has {} elements",
                                     access.axis, access.buffer->name, access.range.lo, access.range.hi, extent),
                         {{access.buffer->span, fmt::format("`{}` is allocated here", access.buffer->name)}},
                         wider.contains(access.buffer.get())
                             ? "the fragment is made as large as that: allocate it so"
                             : "what lies outside is not there: guard the access with `if`, or make the tile larger"};
      interpreter.diagnostics().add(std::move(warning));
    }
    kernel = ir::replace_buffers(kernel, wider);
    kernel.fast_math |= fast_math;
  }
  if (options.on_program) options.on_program(program);
  return program;
}

}  // namespace tilepilot::stage
