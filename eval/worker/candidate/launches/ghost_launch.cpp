#include "eval/worker/candidate/launches/ghost_launch.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include "eval/host/edge.h"
#include "eval/torch/element_type.h"
#include "eval/worker/candidate/written_views.h"

namespace tilepilot::eval {

Status launch_ghost(Ghost ghost, const ir::Program& program, const std::vector<runtime::Argument>& arguments,
                    c10::Device device) {
  if (ghost != Ghost::zeros && ghost != Ghost::ones) return {};
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unobserved;
  for (const runtime::TensorView* view : written_views(program, arguments)) {
    const auto type = parse_element_type(ir::to_string(view->type));
    if (!type) continue;
    TRY(guarded("", {}, [&] {
      at::from_blob(view->data, view->shape, view->strides, at::device(device).dtype(*type))
          .fill_(ghost == Ghost::ones ? 1 : 0);
    }));
  }
  return {};
}

}  // namespace tilepilot::eval
