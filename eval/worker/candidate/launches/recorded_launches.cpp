#include "eval/worker/candidate/launches/recorded_launches.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include "eval/host/edge.h"
#include "eval/torch/element_type.h"
#include "eval/worker/candidate/written_views.h"

namespace tilepilot::eval {

void RecordedLaunches::add(const ir::Program& program, const std::vector<runtime::Argument>& arguments) {
  if (!complete_) return;
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unobserved;
  RecordedLaunch launch{program.name, program.kernels.empty() ? program.span : program.kernels[0].span, {}};
  complete_ = launches_.size() < kMostLaunches;
  for (const runtime::TensorView* view : written_views(program, arguments)) {
    const auto type = parse_element_type(ir::to_string(view->type));
    if (!type) continue;  // none that the model computes in
    int64_t bytes = static_cast<int64_t>(c10::elementSize(*type));
    for (const int64_t extent : view->shape) bytes *= extent;
    bytes_ += bytes;
    complete_ = complete_ && bytes_ <= kMostBytes;
    if (!complete_ || bytes == 0) continue;
    const auto copied = guarded("", {}, [&] {
      const at::Tensor there = at::from_blob(view->data, view->shape, view->strides, at::device(device_).dtype(*type));
      launch.written.push_back(there.clone(at::MemoryFormat::Contiguous));
    });
    complete_ = copied.ok();
  }
  if (complete_) launches_.push_back(std::move(launch));
}

}  // namespace tilepilot::eval
