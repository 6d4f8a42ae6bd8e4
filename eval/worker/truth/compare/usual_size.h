// How large elements usually are, by which roundings of sums are measured.
#pragma once

#include <ATen/core/Tensor.h>

namespace tilepilot::eval {

// A fill (-1e9 in masked scores): elements within `kOfOneFill` of the largest, and nothing else down to `kBeyond` times
// below it.
inline constexpr double kOfOneFill = 4, kBeyond = 256;

// The rms of the elements of `made` (float64) that have their terms in common, as far as shapes show it: a row's
// (keeping its axis), so that rows far below the others are held against themselves; of short rows, all. Elements that
// are not finite have no size, and fills do not count: what is left may be 2^44 times smaller than they are, if it is
// not the roundings of a sum that cancels, as below 2^-44 it is where `may_cancel`.
at::Tensor usual_size(const at::Tensor& made, bool may_cancel);

}  // namespace tilepilot::eval
