#include "compiler/layout/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>

namespace tilepilot::layout {
namespace {

bool is_layout(const std::vector<Mode>& modes) {
  int64_t size = 1, last = 0;
  for (const Mode& mode : modes) {
    int64_t span = 0;
    if (mode.extent < 1 || mode.stride < 0) return false;
    if (__builtin_mul_overflow(size, mode.extent, &size)) return false;
    if (__builtin_mul_overflow(mode.extent, mode.stride, &span)) return false;
    if (__builtin_add_overflow(last, span - mode.stride, &last)) return false;
  }
  return last < INT64_MAX;
}

// A mode with what its digit counts for in the index.
struct PlacedMode {
  Mode mode;
  int64_t weight = 1;
};

// Modes of more than one value, largest stride first.
std::vector<PlacedMode> by_falling_stride(const Layout& layout) {
  std::vector<PlacedMode> placed;
  int64_t weight = 1;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent > 1) placed.push_back({mode, weight});
    weight *= mode.extent;
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedMode& a, const PlacedMode& b) { return a.mode.stride > b.mode.stride; });
  return placed;
}

// Finds all ways to make a value of the modes from `at` on.
class PreimageSearch {
 public:
  explicit PreimageSearch(const Layout& layout) : modes_(by_falling_stride(layout)), reach_(modes_.size() + 1, 0) {
    for (size_t i = modes_.size(); i-- > 0;) {
      reach_[i] = reach_[i + 1] + (modes_[i].mode.extent - 1) * modes_[i].mode.stride;
    }
  }

  void find(size_t at, int64_t value, int64_t index) {
    if (value < 0 || value > reach_[at]) return;
    if (at == modes_.size()) return found_.push_back(index);
    const auto& [mode, weight] = modes_[at];
    int64_t first = 0, last = mode.extent - 1;
    if (mode.stride > 0) {
      // The other modes reach no further than reach_[at + 1].
      first = std::max<int64_t>(0, value - reach_[at + 1] + mode.stride - 1) / mode.stride;
      last = std::min(last, value / mode.stride);
    }
    for (int64_t digit = first; digit <= last; ++digit) {
      find(at + 1, value - digit * mode.stride, index + digit * weight);
    }
  }

  std::vector<int64_t> take() && {
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  std::vector<PlacedMode> modes_;
  std::vector<int64_t> reach_;  // the largest sum of the modes from here on
  std::vector<int64_t> found_;
};

// Each stride is larger than all that the smaller ones add up to: then no value comes twice.
bool is_nested(const Layout& layout) {
  int64_t reach = 0;
  std::vector<PlacedMode> modes = by_falling_stride(layout);
  for (auto it = modes.rbegin(); it != modes.rend(); ++it) {
    if (it->mode.stride <= reach) return false;
    reach += (it->mode.extent - 1) * it->mode.stride;
  }
  return true;
}

// One number, or several in brackets; takes them off the front of `text`.
std::optional<std::vector<int64_t>> read_numbers(std::string_view& text) {
  const bool bracketed = !text.empty() && text.front() == '(';
  std::vector<int64_t> numbers;
  do {
    if (bracketed) text.remove_prefix(1);  // the bracket or the comma
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(size_t(end - text.data()));
    numbers.push_back(number);
  } while (bracketed && !text.empty() && text.front() == ',');
  if (!bracketed) return numbers;
  if (text.empty() || text.front() != ')') return std::nullopt;
  text.remove_prefix(1);
  return numbers;
}

}  // namespace

Layout::Layout(std::vector<Mode> modes) : modes_(std::move(modes)) { assert(is_layout(modes_)); }

std::optional<Layout> Layout::checked(std::vector<Mode> modes) {
  if (!is_layout(modes)) return std::nullopt;
  return Layout(std::move(modes));
}

int64_t Layout::size() const {
  int64_t size = 1;
  for (const Mode& mode : modes_) size *= mode.extent;
  return size;
}

int64_t Layout::cosize() const {
  int64_t last = 0;
  for (const Mode& mode : modes_) last += (mode.extent - 1) * mode.stride;
  return last + 1;
}

int64_t Layout::operator()(int64_t index) const {
  int64_t value = 0;
  for (const Mode& mode : modes_) {
    value += index % mode.extent * mode.stride;
    index /= mode.extent;
  }
  assert(index == 0);
  return value;
}

std::vector<int64_t> digits(const Layout& layout, int64_t index) {
  std::vector<int64_t> digits;
  for (const Mode& mode : layout.modes()) {
    digits.push_back(index % mode.extent);
    index /= mode.extent;
  }
  assert(index == 0);
  return digits;
}

std::vector<int64_t> preimages(const Layout& layout, int64_t value) {
  PreimageSearch search(layout);
  search.find(0, value, 0);
  return std::move(search).take();
}

Layout coalesce(const Layout& layout) {
  std::vector<Mode> modes;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent == 1) continue;
    if (!modes.empty() && mode.stride == modes.back().extent * modes.back().stride) {
      modes.back().extent *= mode.extent;
    } else {
      modes.push_back(mode);
    }
  }
  return Layout(std::move(modes));
}

bool equal_functions(const Layout& a, const Layout& b) { return coalesce(a) == coalesce(b); }

Layout concatenated(const Layout& a, const Layout& b) {
  std::vector<Mode> modes = a.modes();
  modes.insert(modes.end(), b.modes().begin(), b.modes().end());
  return Layout(std::move(modes));
}

bool is_injective(const Layout& layout) {
  if (is_nested(layout)) return true;
  if (layout.cosize() < layout.size()) return false;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < layout.size(); ++i) values.push_back(layout(i));
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

// Sums that give each value of an interval once are nested without gaps: each mode steps by what the smaller ones
// cover (de Bruijn's theorem on factorising intervals).
bool is_bijective(const Layout& layout, int64_t count) {
  int64_t covered = 1;
  std::vector<PlacedMode> modes = by_falling_stride(layout);
  for (auto it = modes.rbegin(); it != modes.rend(); ++it) {
    if (it->mode.stride != covered) return false;
    covered *= it->mode.extent;
  }
  return covered == count;
}

std::string to_text(const Layout& layout) {
  const std::vector<Mode>& modes = layout.modes();
  if (modes.empty()) return "1:0";
  if (modes.size() == 1) return fmt::format("{}:{}", modes[0].extent, modes[0].stride);
  std::vector<int64_t> extents, strides;
  for (const Mode& mode : modes) {
    extents.push_back(mode.extent);
    strides.push_back(mode.stride);
  }
  return fmt::format("({}):({})", fmt::join(extents, ","), fmt::join(strides, ","));
}

std::optional<Layout> read_layout(std::string_view text) {
  const auto extents = read_numbers(text);
  if (!extents || text.empty() || text.front() != ':') return std::nullopt;
  text.remove_prefix(1);
  const auto strides = read_numbers(text);
  if (!strides || !text.empty() || strides->size() != extents->size()) return std::nullopt;
  std::vector<Mode> modes;
  for (size_t i = 0; i < extents->size(); ++i) modes.push_back({(*extents)[i], (*strides)[i]});
  return Layout::checked(std::move(modes));
}

}  // namespace tilepilot::layout
