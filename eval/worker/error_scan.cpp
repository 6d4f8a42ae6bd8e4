#include "eval/worker/error_scan.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "eval/torch/threads.h"

namespace tilepilot::eval {
namespace {

constexpr int64_t kChunk = 2048;        // elements converted at a time, on the stack
constexpr int64_t kPart = 32 * kChunk;  // elements summed by one thread; fixed, so that sums do not depend on threads

using Buffer = std::array<double, kChunk>;

at::Tensor readable(const at::Tensor& tensor) {
  auto type = tensor.scalar_type();
  bool known = type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
  return (known ? tensor : tensor.to(at::kDouble)).contiguous();
}

void load(const at::Tensor& tensor, int64_t begin, int64_t count, Buffer& into) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, tensor.scalar_type(), "load", [&] {
    const scalar_t* from = tensor.const_data_ptr<scalar_t>() + begin;
    for (int64_t i = 0; i < count; ++i) into[static_cast<size_t>(i)] = static_cast<double>(from[i]);
  });
}

struct Part {
  double squares = 0, max = 0, max_abs = 0, eager_max_abs = 0, largest = 0;
  int64_t count = 0;
  bool nan = false, not_finite = false, specials_wrong = false;

  void add(const Part& other) {
    squares += other.squares;
    max = std::max(max, other.max);
    max_abs = std::max(max_abs, other.max_abs);
    eager_max_abs = std::max(eager_max_abs, other.eager_max_abs);
    largest = std::max(largest, other.largest);
    count += other.count;
    nan |= other.nan;
    not_finite |= other.not_finite;
    specials_wrong |= other.specials_wrong;
  }
};

// `body(begin, count, part)` on every chunk; the parts are added in order.
template <class Body>
Part in_parts(int64_t numel, const Body& body) {
  std::vector<Part> parts(static_cast<size_t>((numel + kPart - 1) / kPart));
  libtorch_threads()(static_cast<int64_t>(parts.size()), [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      int64_t begin = p * kPart, end = std::min(begin + kPart, numel);
      for (; begin < end; begin += kChunk) body(begin, std::min(kChunk, end - begin), parts[static_cast<size_t>(p)]);
    }
  });
  Part total;
  for (auto& part : parts) total.add(part);
  return total;
}

void compare_element(double value, double eager, double truth, double rms, Part& part) {
  if (!std::isfinite(truth) || !std::isfinite(eager)) {
    part.specials_wrong |= !(value == eager || (std::isnan(value) && std::isnan(eager)));
    return;
  }
  double weight = std::abs(truth) + rms, error = std::abs(value - truth), scaled = error / weight;
  part.nan |= std::isnan(value);
  part.not_finite |= !std::isfinite(value);
  part.squares += scaled * scaled;
  part.max = std::max(part.max, scaled);
  part.max_abs = std::max(part.max_abs, error);
  part.eager_max_abs = std::max(part.eager_max_abs, std::abs(eager - truth));
  part.largest = std::max(part.largest, weight);
}

}  // namespace

ErrorScan scan_errors(const at::Tensor& given_value, const at::Tensor& given_eager, const at::Tensor& given_truth) {
  at::Tensor value = readable(given_value), eager = readable(given_eager), truth = readable(given_truth);
  int64_t numel = truth.numel();
  if (numel == 0) return {};
  Part size = in_parts(numel, [&](int64_t begin, int64_t count, Part& part) {
    Buffer e, t;
    load(eager, begin, count, e);
    load(truth, begin, count, t);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      if (!std::isfinite(t[i]) || !std::isfinite(e[i])) continue;
      part.squares += t[i] * t[i];
      ++part.count;
    }
  });
  double rms = size.count > 0 && size.squares > 0 ? std::sqrt(size.squares / static_cast<double>(size.count)) : 1;
  Part all = in_parts(numel, [&](int64_t begin, int64_t count, Part& part) {
    Buffer v, e, t;
    load(value, begin, count, v);
    load(eager, begin, count, e);
    load(truth, begin, count, t);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) compare_element(v[i], e[i], t[i], rms, part);
  });
  ErrorScan scan;
  scan.rms = rms;
  double nan = std::numeric_limits<double>::quiet_NaN();
  scan.max_scaled = all.nan ? nan : all.max;
  scan.rms_scaled = all.nan ? nan : std::sqrt(all.squares / static_cast<double>(numel));
  scan.max_abs = all.nan ? nan : all.max_abs;
  scan.eager_max_abs = all.eager_max_abs;
  if (size.count > 0) scan.largest_weight = size.count < numel ? std::max(1.0, all.largest) : all.largest;
  scan.not_finite = all.not_finite;
  scan.specials_wrong = all.specials_wrong;
  return scan;
}

}  // namespace tilepilot::eval
