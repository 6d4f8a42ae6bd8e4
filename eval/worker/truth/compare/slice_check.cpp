#include "eval/worker/truth/compare/slice_check.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

// Whether values agree with a truth, relative to the output's scale; of integers a few may differ (ties).
bool agree(const at::Tensor& values, const Expected& expected, double bound) {
  constexpr double kFew = 0.01;
  if (values.numel() == 0) return true;
  if (!values.is_floating_point())
    return static_cast<double>(integer_differences(values, expected.truth).count) <=
           kFew * static_cast<double>(values.numel());
  auto errors = scaled_errors(values, expected);
  return std::all_of(errors.begin(), errors.end(), [&](const ScaledError& error) { return error.max <= bound; });
}

// Whether eager has numbers where a truth, of a wider range, has none. In parts, as both may be large.
bool lacks_numbers(const SlicedReplay& replay, size_t index, const Expected& output) {
  if (!output.eager.is_floating_point()) return false;
  const auto ranges = replay.ranges();
  return std::any_of(ranges.begin(), ranges.end(), [&](const SlicedReplay::Range& range) {
    const at::Tensor none = replay.part_of(output.truth, index, range).isfinite().logical_not_();
    return none.logical_and_(replay.part_of(output.eager, index, range).isfinite()).any().item<bool>();
  });
}

double bound_of_eager(const at::Tensor& eager) {
  constexpr double kLeast = 0.01, kUnits = 32;
  if (!eager.is_floating_point()) return kLeast;
  return std::max(kLeast, kUnits * machine_epsilon(element_type_name(eager.scalar_type())));
}

}  // namespace

Status check_slices(const SlicedReplay& replay, const SlicedReplay::Call& call, const std::vector<Expected>& outputs) {
  constexpr double kSame = 1e-9;
  auto differs = [](size_t output, std::string_view from) {
    return make_error(DiagnosticKind::tensor_operation_failed, {},
                      fmt::format("output {} differs from {}", output, from));
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool right = agree(outputs[i].eager, outputs[i], bound_of_eager(outputs[i].eager));
    if (!right || lacks_numbers(replay, i, outputs[i])) return differs(i, "eager's");
  }
  const auto range = replay.shifted_slice();
  const auto shifted = TRY(replay.run_slice(range, call));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor part = replay.part_of(outputs[i].truth, i, range);
    if (!agree(shifted[i], {part, part}, kSame)) return differs(i, "that of other slices");
  }
  return {};
}

}  // namespace tilepilot::eval
