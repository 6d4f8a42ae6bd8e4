#include "eval/worker/truth/stress/end_slices.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

namespace tilepilot::eval {

// Where one element decides (`any`, a largest), an end that is left out shows only if it alone decides.
at::Tensor with_other_end(const at::Tensor& tensor, EndForm form, Draws& draws) {
  if (tensor.dim() < form.axis || tensor.numel() < 2) return tensor;
  at::Tensor place = at::zeros_like(tensor, tensor.options().dtype(at::kBool));
  const int64_t index = form.first ? 0 : -1;
  if (form.axis == 0)
    place.view(-1)[index].fill_(true);
  else
    place.select(-form.axis, index).fill_(true);
  // One element is on the other side; of many, half.
  const at::Tensor high = form.axis == 0 ? at::full_like(place, !form.others_positive) : draws.uniform().lt(0.5);
  if (!tensor.is_floating_point()) return at::where(place, high, at::full_like(high, form.others_positive));
  const double far = std::ldexp(1.0, form.power);
  const at::Tensor size = tensor.abs(), end = size.mul(far);
  // In half of the rows the others are as far away: beyond what they may be compared with.
  const at::Tensor others = at::where(uniform_by_row(tensor, draws).lt(0.5), size.add(1).mul(far), size);
  return at::where(place, at::where(high, end, end.neg()), form.others_positive ? others : others.neg());
}

std::vector<StressPlan> end_plans(const std::vector<at::Tensor>& inputs, bool narrow, bool further) {
  constexpr int64_t kMostAxes = 4, kFirstAxes = 2;
  int64_t axes = 0;
  for (const at::Tensor& input : inputs) axes = std::max(axes, std::min(input.dim(), kMostAxes));
  std::vector<StressPlan> plans;
  for (int axis = 0; axis <= axes; ++axis) {
    for (EndForm form : {EndForm{axis, false, false}, EndForm{axis, false, true}, EndForm{axis, true, false},
                         EndForm{axis, true, true}}) {
      if (further == (axis > 0 && axis <= kFirstAxes && !form.first)) continue;
      StressPlan& plan = plans.emplace_back(StressPlan{StressKind::ends, {}});
      for (const int power : {narrow ? 4 : 8, 2, 0}) {
        form.power = power;
        plan.strengths.push_back(form.strength());
      }
    }
  }
  return plans;
}

}  // namespace tilepilot::eval
