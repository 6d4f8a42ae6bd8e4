#include "eval/worker/truth/compare/comparison.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "eval/pattern.h"
#include "eval/torch/element_type.h"
#include "eval/worker/truth/compare/error_scan.h"

namespace tilepilot::eval {
namespace {

std::string shape_text(const at::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes().vec(), ", ")); }

std::vector<double> to_vector(const at::Tensor& tensor) {
  at::Tensor flat = tensor.cpu().to(at::kDouble).contiguous();
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
at::Tensor unmatched_specials(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& mask) {
  at::Tensor same = value.eq(eager).logical_or_(value.isnan().logical_and_(eager.isnan()));
  return mask.logical_not().logical_and_(same.logical_not_());
}

enum class Rule { max, rms, local, usual, lost, bias, fill };

// A part of an output as rows along its last axis, and the rule that it breaks.
struct WrongPart {
  at::Tensor value, eager, truth;
  std::vector<int64_t> sizes;
  const ErrorScale& scale;
  const ScaledError& allowed;
  Rule rule;

  // Of an element.
  double bound() const { return rule == Rule::lost ? kLostPart : of_rule(allowed); }
  bool is_relative() const { return rule == Rule::lost || rule == Rule::fill; }
  bool breaks(const ErrorScan& scan) const {
    return scan.specials_wrong || scan.not_finite || !(of_rule(scan.scaled) <= of_rule(allowed));
  }

 private:
  double of_rule(const ScaledError& error) const {
    switch (rule) {
      case Rule::max:
        return error.max;
      case Rule::rms:
        return error.rms;
      case Rule::local:
        return error.local;
      case Rule::usual:
        return error.usual;
      case Rule::lost:
        return error.lost;
      case Rule::bias:
        return error.bias;
      case Rule::fill:
        return error.fill;
    }
    return error.max;
  }
};

// The first rows that break the rule, not more than can be looked at in whole.
std::pair<int64_t, int64_t> rows_to_explain(const WrongPart& part) {
  constexpr int64_t kLookedAt = int64_t{1} << 22;
  const int64_t rows = part.truth.size(0), columns = part.truth.size(1);
  const int64_t step = std::max<int64_t>(1, kLookedAt / std::max<int64_t>(1, columns));
  for (int64_t begin = 0; rows > step && begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin);
    ErrorMeter meter(part.sizes, part.scale);
    meter.leave_out(begin);
    meter.add(part.value.narrow(0, begin, count), part.eager.narrow(0, begin, count),
              part.truth.narrow(0, begin, count));
    if (part.breaks(meter.finish())) return {begin, count};
  }
  return {0, std::min(rows, step)};
}

at::Tensor scales_of(const WrongPart& part, int64_t first_row, const at::Tensor& like) {
  at::Tensor scales = at::full_like(like, part.scale.rms);
  const at::Tensor held_alone = part.rule == Rule::fill ? like.abs().ge(part.scale.fill_limit) : like.ne(0);
  if (part.is_relative()) return scales.masked_fill_(held_alone, 0);
  if (part.rule != Rule::local) return scales;
  auto lower = [&](const std::vector<double>& by_place, int64_t begin, int64_t count, int64_t axis) {
    if (by_place.empty()) return;
    scales = at::minimum(scales, on_device(by_place, begin, count, at::kCPU).unsqueeze(axis));
  };
  lower(part.scale.rows, first_row, like.size(0), 1);
  lower(part.scale.columns, 0, like.size(1), 0);
  return scales;
}

// Where and how the values are wrong; slower than the scan that found that they are. Gives the flat index of the worst
// element in the part.
int64_t explain(const WrongPart& part, bool specials_wrong, Comparison& result) {
  auto& error = result.error;
  const auto [first, count] = rows_to_explain(part);
  const bool whole = count == part.truth.size(0);
  auto rows_of = [begin = first, rows = count](const at::Tensor& tensor) {
    return tensor.narrow(0, begin, rows).cpu().to(at::kDouble);
  };
  const at::Tensor value = rows_of(part.value), eager = rows_of(part.eager), truth = rows_of(part.truth);
  const at::Tensor mask = truth.isfinite().logical_and_(eager.isfinite());
  const at::Tensor zero = at::zeros({}, at::kDouble), one = at::ones({}, at::kDouble);
  const at::Tensor weights = at::where(mask, truth.abs().add_(scales_of(part, first, truth)), one);
  const at::Tensor errors = at::where(mask, value.sub(truth).abs_(), zero);
  const at::Tensor specials = unmatched_specials(value, eager, mask);
  // Special values that match are made equal, those that do not are wrong whatever the bound.
  const at::Tensor looked_at = mask.logical_or(specials), wanted = at::where(specials, eager, truth);
  std::vector<int64_t> shape = whole ? part.sizes : truth.sizes().vec();
  int64_t worst =
      describe(at::where(looked_at, value, zero).reshape(shape), at::where(looked_at, wanted, zero).reshape(shape),
               weights.mul(part.bound()).where(specials.logical_not(), zero).reshape(shape), error);
  if (!specials_wrong) worst = at::argmax(at::nan_to_num(errors.div(weights), INFINITY)).item<int64_t>();
  const double shown = value.reshape({-1})[worst].item<double>(), right = wanted.reshape({-1})[worst].item<double>();
  error.where = index_text(worst + first * truth.size(1), part.sizes);
  error.bound = weights.reshape({-1})[worst].item<double>() * part.bound();
  result.detail = wrong_detail(error, shown, right);
  return worst + first * truth.size(1);
}

enum class Explain { no, yes };

at::Tensor part_of(const at::Tensor& tensor, const OutputPart& part) {
  return tensor.narrow(part.axis, part.begin, part.length);
}

// The part that is the whole.
OutputPart whole_of(const at::Tensor& tensor) { return {0, 0, tensor.dim() > 0 ? tensor.size(0) : 1}; }

Expected part_of(const Expected& expected, const OutputPart& part) {
  if (expected.truth.dim() == 0) return expected;
  return {part_of(expected.eager, part), part_of(expected.truth, part), {}};
}

std::vector<OutputPart> parts_or_whole(const std::vector<OutputPart>& parts, const at::Tensor& tensor) {
  return parts.empty() ? std::vector{whole_of(tensor)} : parts;
}

Rule broken_rule(const ErrorScan& scan, const ScaledError& allowed) {
  if (!(scan.scaled.max <= allowed.max)) return Rule::max;
  if (!(scan.scaled.rms <= allowed.rms)) return Rule::rms;
  if (!(scan.scaled.local <= allowed.local)) return Rule::local;
  if (!(scan.scaled.usual <= allowed.usual)) return Rule::usual;
  if (!(scan.scaled.lost <= allowed.lost)) return Rule::lost;
  return !(scan.scaled.bias <= allowed.bias) ? Rule::bias : Rule::fill;
}

void keep_worst(const ErrorScan& scan, double allowed, OutputError& error) {
  auto larger = [](double& kept, double other) {
    if (!(other <= kept)) kept = other;  // NaN is worse than any
  };
  larger(error.max_abs, scan.max_abs);
  larger(error.max_rel, scan.scaled.max);
  larger(error.eager_max_abs, scan.eager_max_abs);
  larger(error.bound, scan.largest_weight * allowed);
}

// In a part of an output, `where` counts from the beginning of the output.
std::string place_in_whole(int64_t flat, const at::Tensor& part, const OutputPart& place, const at::Tensor& whole) {
  std::vector<int64_t> shape = part.sizes().vec(), index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  if (!index.empty()) index[static_cast<size_t>(place.axis)] += place.begin;
  int64_t there = 0;
  for (size_t axis = 0; axis < index.size(); ++axis)
    there = there * whole.size(static_cast<int64_t>(axis)) + index[axis];
  return index_text(there, whole.sizes().vec());
}

at::Tensor as_rows(const at::Tensor& tensor) { return tensor.reshape({-1, RowShape(tensor.sizes()).columns}); }

Comparison compare_floating(const at::Tensor& actual, const Expected& whole, const Allowance& allowance,
                            Explain wanted) {
  Comparison result;
  const auto parts = parts_or_whole(allowance.parts, actual);
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor value = actual.dim() > 0 ? part_of(actual, parts[i]) : actual;
    const Expected expected = part_of(whole, parts[i]);
    const ScaledError& allowed = allowance.scaled.at(i);
    const ErrorScale scale = scale_of(expected.eager, expected.truth);
    const ErrorScan scan = scan_errors(value, expected.eager, expected.truth, scale);
    const bool right = within(scan.scaled, allowed);
    keep_worst(scan, allowed.max, result.error);
    if (!scan.specials_wrong && !scan.not_finite && right) continue;
    result.outcome = scan.not_finite ? Outcome::not_finite : Outcome::wrong_values;
    if (wanted == Explain::no) return result;
    const WrongPart wrong{
        as_rows(value), as_rows(expected.eager),   as_rows(expected.truth), value.sizes().vec(), scale,
        allowed,        broken_rule(scan, allowed)};
    const int64_t worst = explain(wrong, scan.specials_wrong, result);
    if (allowance.parts.empty()) return result;
    const std::string there = place_in_whole(worst, value, parts[i], actual);
    result.detail.replace(result.detail.find(result.error.where), result.error.where.size(), there);
    result.error.where = there;
    return result;
  }
  return result;
}

Comparison compare_integers(const at::Tensor& given, const Expected& expected, const Allowance& allowance) {
  Comparison result;
  const at::Tensor actual = given.to(expected.eager.device()), truth = expected.truth.to(expected.eager.device());
  at::Tensor wrong = actual.ne(expected.eager).logical_and_(actual.ne(truth));
  int64_t count = wrong.sum().item<int64_t>();
  if (actual.numel() > 0) {
    auto difference = actual.to(at::kDouble).sub(expected.eager.to(at::kDouble)).abs_();
    result.error.max_abs = difference.max().item<double>();
  }
  at::Tensor far = wrong;
  if (count > 0 && std::isfinite(allowance.difference_size)) {
    const at::Tensor value = actual.to(at::kDouble);
    far = value.sub(expected.eager.to(at::kDouble))
              .abs_()
              .gt(allowance.difference_size)
              .logical_and_(value.sub(truth.to(at::kDouble)).abs_().gt(allowance.difference_size));
  }
  const bool any_far = std::isfinite(allowance.difference_size) && count > 0 && far.any().item<bool>();
  if (count <= allowance.differences && !any_far) return result;
  if (any_far) wrong = far;
  if (any_far) count = far.sum().item<int64_t>();
  result.outcome = Outcome::wrong_values;
  at::Tensor bound = at::where(wrong.cpu(), at::zeros({}, at::kDouble), at::full({}, INFINITY, at::kDouble));
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

std::vector<ScaledError> scaled_errors(const at::Tensor& value, const Expected& expected,
                                       const std::vector<OutputPart>& parts) {
  std::vector<ScaledError> errors;
  for (auto& part : parts_or_whole(parts, value)) {
    const Expected piece = part_of(expected, part);
    const auto scan = scan_errors(value.dim() > 0 ? part_of(value, part) : value, piece.eager, piece.truth,
                                  scale_of(piece.eager, piece.truth));
    errors.push_back(scan.scaled);
  }
  return errors;
}

IntegerDifferences integer_differences(const at::Tensor& a, const at::Tensor& b) {
  IntegerDifferences found;
  if (a.numel() == 0 || a.is_complex()) return found;
  const at::Tensor other = b.to(a.device());
  found.count = a.ne(other).sum().item<int64_t>();
  if (found.count == 0) return found;
  const at::Tensor value = other.to(at::kDouble);
  found.largest = a.to(at::kDouble).sub(value).abs_().max().item<double>();
  found.range = value.max().item<double>() - value.min().item<double>();
  return found;
}

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

Allowance Allowance::times(double factor) const {
  Allowance wide = *this;
  for (ScaledError& allowed : wide.scaled) {
    allowed.max *= factor;
    allowed.rms *= factor;
    allowed.local *= factor;
    allowed.usual *= factor;
    allowed.lost *= factor;
    allowed.bias *= factor;
    allowed.fill *= factor;
  }
  return wide;
}

Comparison compare(const CandidateOutput& actual, const Expected& expected, const Allowance& allowance) {
  return compare_forms_and_values(actual, expected, allowance, Explain::yes);
}

bool passes(const CandidateOutput& actual, const Expected& expected, const Allowance& allowance) {
  return compare_forms_and_values(actual, expected, allowance, Explain::no).outcome == Outcome::verified;
}

}  // namespace tilepilot::eval
