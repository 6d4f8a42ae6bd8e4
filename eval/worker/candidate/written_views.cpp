#include "eval/worker/candidate/written_views.h"

#include <algorithm>

#include "compiler/ir/effects.h"

namespace tilepilot::eval {

std::vector<const runtime::TensorView*> written_views(const ir::Program& program,
                                                      const std::vector<runtime::Argument>& arguments) {
  ir::BufferSet written;
  for (const ir::Kernel& kernel : program.kernels) written.merge(ir::memory_effects_of(kernel.body).writes);
  std::vector<const runtime::TensorView*> views;
  for (size_t i = 0; i < std::min(program.parameters.size(), arguments.size()); ++i) {
    const auto* buffer = std::get_if<ir::Buffer>(&program.parameters[i]);
    const auto* view = std::get_if<runtime::TensorView>(&arguments[i]);
    if (buffer && view && view->data && written.contains(ir::memory_of(*buffer))) views.push_back(view);
  }
  return views;
}

}  // namespace tilepilot::eval
