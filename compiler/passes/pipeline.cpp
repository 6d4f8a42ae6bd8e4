#include "compiler/passes/pipeline.h"

#include <fmt/format.h>

#include "compiler/ir/verify/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/assumptions.h"
#include "compiler/passes/algebra/simplify.h"
#include "compiler/passes/fuse_elementwise.h"
#include "compiler/passes/grid_sync.h"
#include "compiler/passes/iterations/iteration_variables.h"
#include "compiler/passes/iterations/overlapping_copies.h"
#include "compiler/passes/pack_nibbles.h"
#include "compiler/passes/threads/thread_fragments.h"
#include "compiler/passes/threads/thread_regions.h"
#include "compiler/passes/threads/thread_sync.h"

namespace tilepilot::passes {
namespace {

Status check(std::string_view pass, const ir::Program& program) {
  DiagnosticList diagnostics;
  if (ir::verify(program, diagnostics)) return {};
  Diagnostic first = diagnostics.items().front();
  first.message = fmt::format("after `{}`: {}", pass, first.message);
  first.hint = "this is a defect of the compiler, not of the program";
  return make_error(std::move(first));
}

Result<ir::Program> assumption_program(const ir::Program& program) { return collect_assumptions(program); }
Result<ir::Program> variable_program(const ir::Program& program) {
  return iteration_variables(program, ir::LoopKind::vectorized);
}
Result<ir::Program> fragment_program(const ir::Program& program) { return thread_fragments(program); }
Result<ir::Program> sync_program(const ir::Program& program) { return thread_sync(program); }
Result<ir::Program> simplify_program(const ir::Program& program) { return simplify(program); }
Result<ir::Program> copy_program(const ir::Program& program) { return overlapping_copies(program); }
Result<ir::Program> fuse_program(const ir::Program& program) { return fuse_elementwise(program); }

}  // namespace

Result<ir::Program> explicit_threads(const ir::Program& program) {
  return thread_sync(thread_fragments(iteration_variables(TRY(grid_sync(collect_assumptions(program))))));
}

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes{
      {"assumptions", "take out what the program promises", assumption_program},
      {"grid_sync", "end a kernel at each grid barrier", grid_sync},
      // Before passes that ask which local buffers threads have for themselves.
      {"iteration_variables", "give each iteration of a parallel loop its own variables", variable_program},
      {"thread_fragments", "tell fragments that threads hold for themselves from tiles of the block", fragment_program},
      {"thread_sync", "place barriers where a thread accesses what another one has accessed", sync_program},
      {"thread_regions",
       "turn the statements of threads between barriers into parallel loops over the threads, roles into concurrent "
       "ones",
       thread_regions},
      {"simplify", "decide and shorten what constants and ranges allow", simplify_program},
      // After simplify: boxes are compared by their extents, and axes of extent 1 would hide that they are equal.
      {"fuse_elementwise", "join element-wise statements whose tiles then need no memory", fuse_program},
      // After fusion, which would join what it takes apart.
      {"overlapping_copies", "read all of a box before another one of its buffer is written", copy_program},
      // After fusion, which sees elements; before what simplifies the places of bytes.
      {"pack_nibbles", "keep elements of 4 bits that others see two a byte", pack_nibbles},
      // After fusion: tiles have become definitions, some of them only names of others.
      {"simplify_again", "clear up after fusion", simplify_program},
  };
  return passes;
}

Result<ir::Program> run_pipeline(const ir::Program& program, const PipelineOptions& options) {
  if (options.observer) options.observer("stage", program);
  if (options.verify_after_each) TRY(check("stage", program));
  ir::Program current = program;
  for (const Pass& pass : pipeline()) {
    ir::Program next = TRY(pass.run(current));
    if (ir::same_nodes(current, next)) continue;
    current = std::move(next);
    if (options.observer) options.observer(pass.name, current);
    if (options.verify_after_each) TRY(check(pass.name, current));
  }
  return current;
}

}  // namespace tilepilot::passes
