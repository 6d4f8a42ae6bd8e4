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

// What the coordinates of an axis are called.
struct AxisNoun {
  std::string one, several, where;  // "row", "rows"; "index", "indices", " of axis 1 (channel or head)"
};

AxisNoun noun_of(size_t axis, size_t rank) {
  if (axis + 1 == rank) return {"column", "columns", ""};
  if (axis + 2 == rank) return {"row", "rows", ""};
  constexpr size_t kImages = 4;  // as [batch, channel, row, column], or [batch, head, row, column]
  return {"index", "indices",
          fmt::format(" of axis {}{}", axis, rank == kImages && axis == 1 ? " (channel or head)" : "")};
}

std::string counted(int64_t count, const AxisNoun& noun) {
  return count == 1 ? noun.one : fmt::format("{} {}", count, noun.several);
}

// The beginning and the end alone: "the first and the last 2 columns".
std::optional<std::string> both_ends(const std::vector<int64_t>& places, int64_t extent, const AxisNoun& noun) {
  int64_t before = 0, after = 0;
  const auto count = static_cast<int64_t>(places.size());
  while (before < count && places[static_cast<size_t>(before)] == before) ++before;
  while (after < count && places[static_cast<size_t>(count - 1 - after)] == extent - 1 - after) ++after;
  if (before == 0 || after == 0 || before + after != count) return std::nullopt;
  return fmt::format("the first {} and the last {}", counted(before, noun), counted(after, noun));
}

// The same places in each of several tiles: "the last 2 of every 16 columns".
std::optional<std::string> in_each_tile(const std::vector<int64_t>& places, int64_t extent, const AxisNoun& noun) {
  const auto is_run_start = [&](size_t i) { return i == 0 || places[i] != places[i - 1] + 1; };
  std::vector<int64_t> starts;
  for (size_t i = 0; i < places.size(); ++i)
    if (is_run_start(i)) starts.push_back(places[i]);
  if (starts.size() < 2) return std::nullopt;
  const int64_t tile = starts[1] - starts[0], length = static_cast<int64_t>(places.size() / starts.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const auto run = i / static_cast<size_t>(length);
    if (run >= starts.size() ||
        places[i] != starts[0] + static_cast<int64_t>(run) * tile + static_cast<int64_t>(i) % length)
      return std::nullopt;
  }
  const int64_t first = starts[0] % tile;
  // In all of the tiles, whole ones at least.
  if (starts[0] >= tile || starts.back() + tile < extent - tile + first + length || length < 2) return std::nullopt;
  const std::string part = first == 0 ? "the first"
                           : first + length == tile
                               ? "the last"
                               : fmt::format("numbers {} to {}, counted from 0,", first, first + length - 1);
  return first == 0 || first + length == tile ? fmt::format("{} {} of every {} {}", part, length, tile, noun.several)
                                              : fmt::format("{} of every {} {}", part, tile, noun.several);
}

std::optional<std::string> every_so_many(const std::vector<int64_t>& places, const AxisNoun& noun) {
  const int64_t step = places.size() > 2 ? places[1] - places[0] : 0;
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] - places[i - 1] != step) return std::nullopt;
  if (step <= 1) return std::nullopt;
  const std::string_view ending = step == 2 ? "nd" : step == 3 ? "rd" : "th";
  return fmt::format("every {}{} {}, from {} on", step, ending, noun.one, places.front());
}

// "the last 24 columns", "rows 3 to 7", "every 2nd column from 1 on".
std::optional<std::string> where_on_axis(const std::vector<int64_t>& places, int64_t extent, const AxisNoun& noun) {
  const auto count = static_cast<int64_t>(places.size());
  const int64_t first = places.front(), last = places.back();
  if (last - first + 1 == count) {
    if (last == extent - 1) return "the last " + counted(count, noun);
    if (first == 0) return "the first " + counted(count, noun);
    if (count == 1) return fmt::format("{} {}", noun.one, first);
    return fmt::format("{} {} to {}", noun.several, first, last);
  }
  if (auto ends = both_ends(places, extent, noun)) return ends;
  if (auto steps = every_so_many(places, noun)) return steps;
  return in_each_tile(places, extent, noun);
}

// "only parts of the last 24 columns".
std::optional<std::string> describe_axis(const AxisProfile& profile, const AxisNoun& noun) {
  const auto extent = static_cast<int64_t>(profile.wrong.size());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < extent; ++i)
    if (profile.wrong[static_cast<size_t>(i)] > 0) places.push_back(i);
  if (places.empty() || static_cast<int64_t>(places.size()) == extent) return std::nullopt;
  const auto where = where_on_axis(places, extent, noun);
  if (!where) return std::nullopt;
  return fmt::format("only {}{}{}", profile.all_or_nothing() ? "" : "parts of ", *where, noun.where);
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

// What is wrong in the planes of the last two axes, against the shapes that mistakes have there.
struct PlaneProfile {
  int64_t rows = 1, columns = 1, planes = 1;
  int64_t border = 0;               // all that is wrong lies so near to it
  bool above = true, below = true;  // the diagonal

  int64_t triangle() const { return planes * rows * (rows - 1) / 2; }
  int64_t frame() const {
    return planes *
           (rows * columns - std::max<int64_t>(0, rows - 2 * border) * std::max<int64_t>(0, columns - 2 * border));
  }
};

PlaneProfile profile_planes(const std::vector<char>& wrong, const std::vector<int64_t>& shape) {
  PlaneProfile profile;
  profile.rows = shape[shape.size() - 2];
  profile.columns = shape.back();
  profile.planes = static_cast<int64_t>(wrong.size()) / (profile.rows * profile.columns);
  for (size_t i = 0; i < wrong.size(); ++i) {
    if (!wrong[i]) continue;
    const auto place = static_cast<int64_t>(i);
    const int64_t row = place / profile.columns % profile.rows, column = place % profile.columns;
    profile.border =
        std::max(profile.border, 1 + std::min({row, column, profile.rows - 1 - row, profile.columns - 1 - column}));
    profile.above = profile.above && column > row;
    profile.below = profile.below && column < row;
  }
  return profile;
}

// A mask that is forgotten, or a padding: most of a triangle, or of a frame.
std::optional<std::string> describe_plane(const std::vector<char>& wrong, int64_t count,
                                          const std::vector<int64_t>& shape) {
  constexpr int64_t kFewest = 8;  // so many elements lie anywhere
  if (shape.size() < 2 || count < kFewest) return std::nullopt;
  const PlaneProfile profile = profile_planes(wrong, shape);
  if (profile.rows == profile.columns && 10 * count >= 9 * profile.triangle()) {
    if (profile.above) return "only above the diagonal, where the column is beyond the row";
    if (profile.below) return "only below the diagonal, where the row is beyond the column";
  }
  const bool is_thin = 4 * profile.border <= std::min(profile.rows, profile.columns);
  if (!is_thin || 2 * count < profile.frame()) return std::nullopt;
  return fmt::format("only at the border of rows and columns, within {} element{}", profile.border,
                     profile.border == 1 ? "" : "s");
}

std::string describe_places(const std::vector<char>& wrong, int64_t count, const std::vector<int64_t>& shape) {
  if (count == static_cast<int64_t>(wrong.size())) return "every element";
  if (const auto plane = describe_plane(wrong, count, shape)) return *plane;
  std::string text;
  auto profiles = profile_axes(wrong, shape);
  for (size_t axis = shape.size(); axis-- > 0;) {
    auto place = describe_axis(profiles[axis], noun_of(axis, shape.size()));
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
