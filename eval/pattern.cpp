#include "eval/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tilepilot::eval {
namespace {

// Wrong elements along one axis: how many at each coordinate.
struct AxisProfile {
  std::vector<int64_t> wrong;
  int64_t elements = 0;  // at one coordinate

  bool all_or_nothing() const {
    return std::all_of(wrong.begin(), wrong.end(), [&](int64_t count) { return count == 0 || count == elements; });
  }
};

std::vector<AxisProfile> profile_axes(const std::vector<char>& wrong, const std::vector<int64_t>& shape) {
  std::vector<AxisProfile> profiles(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    auto& profile = profiles[axis];
    profile.wrong.resize(static_cast<size_t>(shape[axis]));
    profile.elements = static_cast<int64_t>(wrong.size()) / shape[axis];
    for (size_t i = 0; i < wrong.size(); ++i) {
      if (wrong[i]) ++profile.wrong[(i / static_cast<size_t>(stride)) % static_cast<size_t>(shape[axis])];
    }
    stride *= shape[axis];
  }
  return profiles;
}

std::string axis_name(size_t axis, size_t rank) {
  if (axis + 1 == rank) return "column";
  if (axis + 2 == rank) return "row";
  return fmt::format("index of axis {}", axis);
}

std::string plural(int64_t count, const std::string& noun) {
  if (count == 1) return noun;
  if (noun.rfind("index", 0) == 0) return "indices" + noun.substr(5);
  return noun + "s";
}

// "only the last 24 columns", "rows 3 to 7", "every 2nd column from 1 on".
std::optional<std::string> describe_axis(const AxisProfile& profile, const std::string& noun) {
  auto extent = static_cast<int64_t>(profile.wrong.size());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < extent; ++i) {
    if (profile.wrong[static_cast<size_t>(i)] > 0) places.push_back(i);
  }
  auto count = static_cast<int64_t>(places.size());
  if (count == 0 || count == extent) return std::nullopt;
  int64_t first = places.front(), last = places.back();
  bool contiguous = last - first + 1 == count;
  std::string whole = profile.all_or_nothing() ? "" : "parts of ";
  std::string several = count == 1 ? noun : fmt::format("{} {}", count, plural(count, noun));
  if (contiguous && last == extent - 1) return fmt::format("only {}the last {}", whole, several);
  if (contiguous && first == 0) return fmt::format("only {}the first {}", whole, several);
  if (contiguous && count == 1) return fmt::format("only {}{} {}", whole, noun, first);
  if (contiguous) return fmt::format("only {}{} {} to {}", whole, plural(2, noun), first, last);
  int64_t step = count > 2 ? places[1] - places[0] : 0;
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i] - places[i - 1] != step) return std::nullopt;
  }
  if (step <= 1) return std::nullopt;
  std::string_view ending = step == 2 ? "nd" : step == 3 ? "rd" : "th";
  return fmt::format("only every {}{} {}, from {} on", step, ending, noun, first);
}

// actual = ratio * expected on (nearly) all elements that are wrong.
std::optional<double> common_ratio(const ValueReport& report, const std::vector<char>& wrong) {
  std::vector<double> ratios;
  for (size_t i = 0; i < wrong.size(); ++i) {
    if (wrong[i] && report.expected[i] != 0) ratios.push_back(report.actual[i] / report.expected[i]);
  }
  if (ratios.size() < 2) return std::nullopt;
  auto middle = ratios.begin() + static_cast<int64_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  double ratio = *middle;
  auto close = std::count_if(ratios.begin(), ratios.end(),
                             [&](double other) { return std::abs(other - ratio) <= 1e-2 * std::abs(ratio); });
  bool common = std::isfinite(ratio) && ratio != 0 && close * 10 >= static_cast<int64_t>(ratios.size()) * 9;
  return common ? std::optional(ratio) : std::nullopt;
}

// The largest relative error of the wrong elements, if all of them are nearly right and err in both directions.
std::optional<double> small_relative_error(const ValueReport& report, const std::vector<char>& wrong) {
  double largest = 0;
  bool above = false, below = false;
  for (size_t i = 0; i < wrong.size(); ++i) {
    if (!wrong[i]) continue;
    double difference = report.actual[i] - report.expected[i];
    above = above || difference > 0;
    below = below || difference < 0;
    largest = std::max(largest, std::abs(difference) / std::max(std::abs(report.expected[i]), 1e-300));
  }
  return above && below && largest < 0.02 ? std::optional(largest) : std::nullopt;
}

std::optional<double> common_offset(const ValueReport& report, const std::vector<char>& wrong) {
  double low = INFINITY, high = -INFINITY;
  int64_t count = 0;
  for (size_t i = 0; i < wrong.size(); ++i) {
    if (!wrong[i]) continue;
    low = std::min(low, report.actual[i] - report.expected[i]);
    high = std::max(high, report.actual[i] - report.expected[i]);
    ++count;
  }
  double middle = (low + high) / 2;
  bool common = count > 1 && std::isfinite(middle) && high - low <= 1e-2 * std::abs(middle);
  return common ? std::optional(middle) : std::nullopt;
}

// What the wrong values look like: zeros, NaN, a constant, a multiple of what they should be.
std::string describe_values(const ValueReport& report, const std::vector<char>& wrong) {
  int64_t count = 0, nan = 0, zero = 0, same = 0;
  double first = 0;
  for (size_t i = 0; i < wrong.size(); ++i) {
    if (!wrong[i]) continue;
    double value = report.actual[i];
    if (count++ == 0) first = value;
    nan += std::isnan(value);
    zero += value == 0;
    same += value == first;
  }
  if (nan == count) return "NaN";
  if (nan > 0) return fmt::format("{} of them NaN", nan);
  if (zero == count) return "all zeros";
  if (same == count && count > 2) return fmt::format("all equal to {:.4g}", first);
  if (auto relative = small_relative_error(report, wrong)) {
    return fmt::format("within {:.1g} of right, relative: rounding, or lower precision inside", *relative);
  }
  if (auto ratio = common_ratio(report, wrong)) return fmt::format("ratio about {:.3g}", *ratio);
  if (auto offset = common_offset(report, wrong)) return fmt::format("off by about {:.4g}", *offset);
  return "";
}

std::string describe_places(const std::vector<char>& wrong, int64_t count, const std::vector<int64_t>& shape) {
  if (count == static_cast<int64_t>(wrong.size())) return "every element";
  std::string text;
  auto profiles = profile_axes(wrong, shape);
  for (size_t axis = shape.size(); axis-- > 0;) {
    auto place = describe_axis(profiles[axis], axis_name(axis, shape.size()));
    if (!place) continue;
    text += (text.empty() ? "" : " of ") + (text.empty() ? *place : place->substr(std::string("only ").size()));
  }
  if (!text.empty()) return text;
  double fraction = static_cast<double>(count) / static_cast<double>(wrong.size());
  return fraction > 0.01 ? fmt::format("{:.0f} % of the elements, scattered", fraction * 100)
                         : fmt::format("{} scattered {}", count, count == 1 ? "element" : "elements");
}

}  // namespace

std::string index_text(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % std::max<int64_t>(1, shape[axis]);
    flat /= std::max<int64_t>(1, shape[axis]);
  }
  std::string text;
  for (int64_t coordinate : index) text += (text.empty() ? "" : ", ") + std::to_string(coordinate);
  return "[" + text + "]";
}

WrongValues describe_wrong_values(const ValueReport& report) {
  WrongValues result;
  std::vector<char> wrong(report.actual.size());
  double worst_excess = -1;
  for (size_t i = 0; i < wrong.size(); ++i) {
    double error = std::abs(report.actual[i] - report.expected[i]);
    bool both_infinite = report.actual[i] == report.expected[i];
    wrong[i] = !(error <= report.bound[i]) && !both_infinite;
    if (!wrong[i]) continue;
    ++result.count;
    double excess = std::isnan(error) ? INFINITY : error;
    if (excess > worst_excess) {
      worst_excess = excess;
      result.worst = static_cast<int64_t>(i);
    }
  }
  if (result.count == 0) return result;
  result.where = index_text(result.worst, report.shape);
  result.pattern = describe_places(wrong, result.count, report.shape);
  std::string values = describe_values(report, wrong);
  if (!values.empty()) result.pattern += ", " + values;
  return result;
}

}  // namespace tilepilot::eval
