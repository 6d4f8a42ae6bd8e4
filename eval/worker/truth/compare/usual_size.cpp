#include "eval/worker/truth/compare/usual_size.h"

#include <ATen/Functions.h>

#include <cmath>

namespace tilepilot::eval {
namespace {

// Which elements of each row of `size` (absolute values, zero where they do not count) are its fill.
at::Tensor fills_of(const at::Tensor& size, bool may_cancel) {
  // Where exact terms cancel, float64 leaves that much of them; what is smaller still was never part of such a sum.
  constexpr double kLeft = 0x1p-44, kNeverLeft = 0x1p-60;
  const at::Tensor largest = size.amax(-1, /*keepdim=*/true), of_fill = size.ge(largest.div(kOfOneFill));
  const at::Tensor next = size.masked_fill(of_fill, 0).amax(-1, true);
  at::Tensor has_fill = next.gt(0).logical_and_(next.le(largest.div(kBeyond)));
  if (may_cancel) {
    const at::Tensor share = next.div(largest);
    has_fill.logical_and_(share.gt(kLeft).logical_or_(share.lt(kNeverLeft)));
  }
  return of_fill.logical_and(has_fill);
}

}  // namespace

at::Tensor usual_size(const at::Tensor& made, bool may_cancel) {
  constexpr int64_t kFewest = 8;
  constexpr int kMostFills = 3;  // masks that are added are fills of several sizes
  const bool has_rows = made.dim() > 1 && made.size(-1) >= kFewest;
  const at::Tensor rows = has_rows ? made : made.reshape({1, -1});
  at::Tensor counts = rows.isfinite();
  at::Tensor size = at::where(counts, rows.abs(), at::zeros({}, rows.options()));
  for (int i = 0; i < kMostFills; ++i) {
    const at::Tensor fills = fills_of(size, may_cancel);
    if (!fills.any().item<bool>()) break;
    counts.logical_and_(fills.logical_not());
    size.masked_fill_(fills, 0);
  }
  const at::Tensor rms = size.square_().sum(-1, true).div_(counts.sum(-1, true).clamp_min_(1)).sqrt_();
  return has_rows ? rms : rms.reshape({});
}

}  // namespace tilepilot::eval
