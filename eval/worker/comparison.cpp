#include "eval/worker/comparison.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "eval/pattern.h"
#include "eval/torch/element_type.h"
#include "eval/worker/error_scan.h"

namespace tilepilot::eval {
namespace {

std::string shape_text(const at::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes().vec(), ", ")); }

at::Tensor finite_mask(const Expected& expected) {
  return at::isfinite(expected.truth).logical_and_(at::isfinite(expected.eager));
}

struct Scaled {
  at::Tensor mask, errors, weights;  // |value - truth|, |truth| + rms, both 0 and 1 outside the mask
};

Scaled scale(const at::Tensor& value, const Expected& expected, double rms) {
  Scaled scaled;
  scaled.mask = finite_mask(expected);
  at::Tensor zero = at::zeros({}, expected.truth.options()), one = at::ones({}, expected.truth.options());
  at::Tensor difference = value.to(at::kDouble).sub(expected.truth).abs_();
  scaled.errors = at::where(scaled.mask, difference, zero);
  scaled.weights = at::where(scaled.mask, expected.truth.abs().add_(rms), one);
  return scaled;
}

std::vector<double> to_vector(const at::Tensor& tensor) {
  at::Tensor flat = tensor.to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// Fills in where and how the values are wrong, and gives the worst element, or -1. Elements outside `mask` must be
// matched already.
int64_t describe(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& bound, OutputError& error) {
  auto actual_values = to_vector(actual), expected_values = to_vector(expected), bounds = to_vector(bound);
  auto wrong = describe_wrong_values({actual_values, expected_values, bounds, actual.sizes().vec()});
  error.fraction_wrong = static_cast<double>(wrong.count) / std::max<double>(1, static_cast<double>(bounds.size()));
  error.where = wrong.where;
  error.pattern = wrong.pattern;
  if (wrong.worst >= 0) error.bound = bounds[static_cast<size_t>(wrong.worst)];
  return wrong.worst;
}

std::string wrong_detail(const OutputError& error, double actual, double expected) {
  std::string place = fmt::format("{} (worst at {}: ", error.pattern, error.where);
  if (!std::isfinite(actual)) {
    return place + fmt::format("{} instead of {:.6g})", std::isnan(actual) ? "NaN" : "infinity", expected);
  }
  if (!std::isfinite(expected)) return place + fmt::format("{:.6g} instead of {:.6g})", actual, expected);
  return place + fmt::format("{:.6g} instead of {:.6g}, error {:.3g}, allowed {:.3g})", actual, expected,
                             std::abs(actual - expected), error.bound);
}

// Where truth or eager is not finite, the candidate must give what eager gives: NaN for NaN, the same infinity.
at::Tensor unmatched_specials(const at::Tensor& actual, const Expected& expected, const at::Tensor& mask) {
  at::Tensor value = actual.to(at::kDouble), eager = expected.eager.to(at::kDouble);
  at::Tensor same = value.eq(eager).logical_or_(value.isnan().logical_and_(eager.isnan()));
  return mask.logical_not().logical_and_(same.logical_not_());
}

// Where and how the values are wrong; slower than the scan that found that they are.
void explain(const at::Tensor& actual, const Expected& expected, const ErrorScan& scan, double allowed,
             Comparison& result) {
  auto& error = result.error;
  auto scaled = scale(actual, expected, scan.rms);
  at::Tensor specials = unmatched_specials(actual, expected, scaled.mask);
  // Special values that match are made equal, those that do not are wrong whatever the bound.
  at::Tensor looked_at = scaled.mask.logical_or(specials);
  at::Tensor zero = at::zeros({}, expected.truth.options());
  at::Tensor wanted = at::where(specials, expected.eager.to(at::kDouble), expected.truth);
  int64_t worst = describe(at::where(looked_at, actual.to(at::kDouble), zero), at::where(looked_at, wanted, zero),
                           scaled.weights.mul(allowed).where(specials.logical_not(), zero), error);
  if (!scan.specials_wrong) {
    worst = at::argmax(at::nan_to_num(scaled.errors.div(scaled.weights), INFINITY)).item<int64_t>();
    error.where = index_text(worst, actual.sizes().vec());
  }
  result.detail =
      wrong_detail(error, actual.reshape({-1})[worst].item<double>(), wanted.reshape({-1})[worst].item<double>());
}

enum class Explain { no, yes };

Comparison compare_floating(const at::Tensor& actual, const Expected& expected, const Allowance& allowance,
                            Explain wanted) {
  Comparison result;
  auto scan = scan_errors(actual, expected.eager, expected.truth);
  double allowed = scan.max_scaled <= allowance.scaled.max ? allowance.scaled.rms : allowance.scaled.max;
  result.error.max_abs = scan.max_abs;
  result.error.max_rel = scan.max_scaled;
  result.error.eager_max_abs = scan.eager_max_abs;
  result.error.bound = actual.numel() > 0 ? scan.largest_weight * allowed : 0;
  bool close = within({scan.max_scaled, scan.rms_scaled}, allowance.scaled);
  if (!scan.specials_wrong && !scan.not_finite && close) return result;
  result.outcome = scan.not_finite ? Outcome::not_finite : Outcome::wrong_values;
  if (wanted == Explain::yes) explain(actual, expected, scan, allowed, result);
  return result;
}

Comparison compare_integers(const at::Tensor& actual, const Expected& expected, const Allowance& allowance) {
  Comparison result;
  at::Tensor wrong = actual.ne(expected.eager).logical_and_(actual.ne(expected.truth));
  int64_t count = wrong.sum().item<int64_t>();
  if (actual.numel() > 0) {
    auto difference = actual.to(at::kDouble).sub(expected.eager.to(at::kDouble)).abs_();
    result.error.max_abs = difference.max().item<double>();
  }
  if (count <= allowance.differences) return result;
  result.outcome = Outcome::wrong_values;
  at::Tensor bound = at::where(wrong, at::zeros({}, at::kDouble), at::full({}, INFINITY, at::kDouble));
  describe(actual, expected.eager, bound, result.error);
  result.error.bound = 0;
  result.detail = fmt::format("{} of {} integers differ: {} (first looked at: {})", count, actual.numel(),
                              result.error.pattern, result.error.where);
  return result;
}

std::vector<int64_t> strides_of(const Expected& expected) {
  return expected.strides.empty() ? expected.eager.strides().vec() : expected.strides;
}

// The elements in some order without gaps or repetitions: a permutation of a row-major tensor.
bool is_dense(const CandidateOutput& actual) {
  auto sizes = actual.tensor.sizes();
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] > 1) axes.emplace_back(actual.strides[axis], sizes[axis]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t expected = 1;
  for (auto& [stride, extent] : axes) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

// Row-major, or the strides eager gave: what a caller may rely on. Axes of extent 1 have no say.
bool strides_fit(const CandidateOutput& actual, const Expected& model) {
  auto& eager = model.eager;
  auto strides = strides_of(model);
  bool row_major = true, as_eager = true;
  int64_t expected = 1;
  for (int64_t axis = eager.dim(); axis-- > 0;) {
    int64_t stride = actual.strides[static_cast<size_t>(axis)];
    if (eager.size(axis) > 1) {
      row_major = row_major && stride == expected;
      as_eager = as_eager && stride == strides[static_cast<size_t>(axis)];
    }
    expected *= eager.size(axis);
  }
  return row_major || as_eager || eager.numel() == 0;
}

Comparison wrong_form(Outcome outcome, std::string detail) { return {outcome, std::move(detail), {}, {}}; }

}  // namespace

ScaledError scaled_error(const at::Tensor& value, const Expected& expected) {
  auto scan = scan_errors(value, expected.eager, expected.truth);
  return {scan.max_scaled, scan.rms_scaled};
}

int64_t count_differences(const at::Tensor& a, const at::Tensor& b) { return a.ne(b).sum().item<int64_t>(); }

namespace {

Comparison compare_forms_and_values(const CandidateOutput& candidate, const Expected& expected,
                                    const Allowance& allowance, Explain wanted) {
  auto& eager = expected.eager;
  auto& actual = candidate.tensor;
  const bool is_wide = allowance.float32_too && actual.scalar_type() == at::kFloat &&
                       (eager.scalar_type() == at::kHalf || eager.scalar_type() == at::kBFloat16);
  if (is_wide) {
    const at::Tensor rounded = actual.to(eager.scalar_type());
    Comparison result = compare_forms_and_values({rounded, candidate.strides}, expected, allowance, wanted);
    if (result.outcome == Outcome::verified && result.note.empty())
      result.note = fmt::format("is float32, as the model's own would be, where the model judged here gives {}",
                                element_type_name(eager.scalar_type()));
    return result;
  }
  if (actual.sizes() != eager.sizes()) {
    return wrong_form(Outcome::wrong_shape,
                      fmt::format("has shape {} instead of {}", shape_text(actual), shape_text(eager)));
  }
  if (actual.scalar_type() != eager.scalar_type()) {
    return wrong_form(Outcome::wrong_dtype,
                      fmt::format("has element type {} instead of {}", element_type_name(actual.scalar_type()),
                                  element_type_name(eager.scalar_type())));
  }
  const bool usual = strides_fit(candidate, expected);
  if (!usual && !is_dense(candidate)) {
    return wrong_form(Outcome::wrong_strides,
                      fmt::format("has strides [{}]: neither the model's [{}] nor those of a tensor without gaps",
                                  fmt::join(candidate.strides, ", "), fmt::join(strides_of(expected), ", ")));
  }
  Comparison result = eager.is_floating_point() ? compare_floating(actual, expected, allowance, wanted)
                                                : compare_integers(actual, expected, allowance);
  if (!usual && result.outcome == Outcome::verified) {
    result.note = fmt::format("has strides [{}] where the model's has [{}]: `.view` on it may fail for callers",
                              fmt::join(candidate.strides, ", "), fmt::join(strides_of(expected), ", "));
  }
  return result;
}

}  // namespace

Comparison compare(const CandidateOutput& actual, const Expected& expected, const Allowance& allowance) {
  return compare_forms_and_values(actual, expected, allowance, Explain::yes);
}

bool passes(const CandidateOutput& actual, const Expected& expected, const Allowance& allowance) {
  return compare_forms_and_values(actual, expected, allowance, Explain::no).outcome == Outcome::verified;
}

}  // namespace tilepilot::eval
