#include "compiler/targets/c/functions.h"

#include <algorithm>
#include <array>

namespace tilepilot::targets::c {
namespace {

using ir::BinaryOp;
using ir::MathFn;

// Short names for the rows.
enum : unsigned { kFast = 1, kExact = 2, kCall = 4, kCallOfDoubles = 8 };
constexpr MathFunction row(MathFn function, std::string_view name, unsigned traits) {
  return {function,
          name,
          (traits & kFast) != 0,
          (traits & kExact) != 0,
          (traits & kCall) != 0,
          (traits & (kCall | kCallOfDoubles)) != 0};
}

// In the order of the enumeration.
constexpr std::array kFunctions = {
    row(MathFn::exp, "exp_of", kFast | kCallOfDoubles),
    row(MathFn::exp2, "exp2_of", kFast | kCallOfDoubles),
    row(MathFn::exp10, "exp10_of", kFast | kCallOfDoubles),
    row(MathFn::log, "log_of", kFast | kCallOfDoubles),
    row(MathFn::log2, "log2_of", kFast | kCallOfDoubles),
    row(MathFn::log10, "log10_of", kFast | kCallOfDoubles),
    row(MathFn::log1p, "log1p_of", kCallOfDoubles),
    row(MathFn::sqrt, "sqrt_of", kFast),
    row(MathFn::rsqrt, "rsqrt_of", kFast),
    row(MathFn::sin, "sin_of", kFast | kCallOfDoubles),
    row(MathFn::cos, "cos_of", kFast | kCallOfDoubles),
    row(MathFn::tan, "tan_of", kFast | kCallOfDoubles),
    row(MathFn::sinh, "sinh_of", kCall),
    row(MathFn::cosh, "cosh_of", kCall),
    row(MathFn::tanh, "tanh_of", kFast | kCallOfDoubles),
    row(MathFn::asin, "asin_of", kCall),
    row(MathFn::acos, "acos_of", kCall),
    row(MathFn::atan, "atan_of", kCall),
    row(MathFn::asinh, "asinh_of", kCall),
    row(MathFn::acosh, "acosh_of", kCall),
    row(MathFn::atanh, "atanh_of", kCall),
    row(MathFn::erf, "erf_of", kCallOfDoubles),
    row(MathFn::sigmoid, "sigmoid_of", kFast | kCallOfDoubles),
    row(MathFn::abs, "abs_of", kExact),
    row(MathFn::floor, "floor_of", kExact),
    row(MathFn::ceil, "ceil_of", kExact),
    row(MathFn::round, "rint_of", kExact),
    row(MathFn::trunc, "trunc_of", kExact),
    row(MathFn::leading_zeros, "leading_zeros_of", 0),
    row(MathFn::popcount, "popcount_of", 0),
    row(MathFn::isnan, "is_nan", kExact),
    row(MathFn::isinf, "is_inf", kExact),
    row(MathFn::isfinite, "is_finite", kExact),
};
constexpr bool are_in_order() {
  for (size_t i = 0; i < kFunctions.size(); ++i)
    if (kFunctions[i].function != static_cast<MathFn>(i)) return false;
  return kFunctions.size() == static_cast<size_t>(MathFn::isfinite) + 1;
}
static_assert(are_in_order());

constexpr std::array kCalls = {BinaryOp::pow,   BinaryOp::atan2,     BinaryOp::hypot,
                               BinaryOp::ldexp, BinaryOp::nextafter, BinaryOp::fmod};

}  // namespace

const MathFunction& function_of(MathFn function) { return kFunctions[static_cast<size_t>(function)]; }

bool is_call(BinaryOp op) { return std::find(kCalls.begin(), kCalls.end(), op) != kCalls.end(); }

std::vector<std::string_view> library_names() {
  std::vector<std::string_view> names;
  for (const MathFunction& each : kFunctions)
    if (each.is_call) names.push_back(ir::to_string(each.function));
  for (const BinaryOp op : kCalls) names.push_back(ir::to_string(op));
  return names;
}

}  // namespace tilepilot::targets::c
