#include "compiler/layout/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace tilepilot::layout {
namespace {

std::nullopt_t refused(std::string* why, std::string reason) {
  if (why != nullptr) *why = std::move(reason);
  return std::nullopt;
}

// One composition under way: how far the digits of the outer layout are filled by the modes done so far.
class Composition {
 public:
  Composition(const Layout& outer, std::string* why)
      : outer_(coalesce(outer)), filled_(outer_.modes().size(), 0), why_(why) {}

  // outer o mode, cut where it first carries.
  std::optional<Layout> add(Mode mode) {
    const Mode whole = mode;
    std::vector<Mode> cut;
    while (mode.extent > 1) {
      const int64_t run = std::min(run_of(mode.stride), mode.extent);
      if (mode.extent % run != 0) {
        return refused(why_, fmt::format("{}:{} carries in {} after {} steps, which do not divide {}", whole.extent,
                                         whole.stride, to_text(outer_), run, mode.extent));
      }
      fill(mode.stride, run);
      cut.push_back({run, outer_(mode.stride)});
      mode = {mode.extent / run, run == mode.extent ? 0 : mode.stride * run};
    }
    return Layout(std::move(cut));
  }

  // Whether all modes together stay within the digits.
  bool carries() const {
    for (size_t i = 0; i < filled_.size(); ++i) {
      if (filled_[i] >= outer_.modes()[i].extent) return true;
    }
    return false;
  }

 private:
  // How many multiples of `stride`, 0 among them, come before a digit overflows.
  int64_t run_of(int64_t stride) const {
    int64_t run = INT64_MAX;
    const std::vector<int64_t> step = digits(outer_, stride);
    for (size_t i = 0; i < step.size(); ++i) {
      if (step[i] > 0) run = std::min(run, (outer_.modes()[i].extent - 1) / step[i] + 1);
    }
    return run;
  }
  void fill(int64_t stride, int64_t extent) {
    const std::vector<int64_t> step = digits(outer_, stride);
    for (size_t i = 0; i < step.size(); ++i) filled_[i] += (extent - 1) * step[i];
  }

  Layout outer_;
  std::vector<int64_t> filled_;
  std::string* why_;
};

// Modes of more than one value, smallest stride first.
std::vector<Mode> by_rising_stride(const Layout& layout) {
  std::vector<Mode> modes = layout.modes();
  modes.erase(std::remove_if(modes.begin(), modes.end(), [](const Mode& mode) { return mode.extent == 1; }),
              modes.end());
  std::stable_sort(modes.begin(), modes.end(), [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  return modes;
}

std::string sum_text(const std::vector<Layout>& parts) {
  Layout all;
  for (const Layout& part : parts) all = concatenated(all, part);
  return to_text(all);
}

}  // namespace

std::optional<std::vector<Layout>> compose(const Layout& outer, const std::vector<Layout>& inner, std::string* why) {
  int64_t last = 0;
  for (const Layout& part : inner) last += part.cosize() - 1;
  if (last >= outer.size()) {
    return refused(why, fmt::format("{} reaches {}, beyond the {} indices of {}", sum_text(inner), last, outer.size(),
                                    to_text(outer)));
  }
  Composition composition(outer, why);
  std::vector<Layout> results;
  for (const Layout& part : inner) {
    Layout result;
    for (const Mode& mode : part.modes()) {
      const auto cut = composition.add(mode);
      if (!cut) return std::nullopt;
      result = concatenated(result, *cut);
    }
    results.push_back(std::move(result));
  }
  if (composition.carries()) {
    return refused(why, fmt::format("the modes of {} together carry in {}", sum_text(inner), to_text(outer)));
  }
  return results;
}

std::optional<Layout> compose(const Layout& outer, const Layout& inner, std::string* why) {
  auto parts = compose(outer, std::vector{inner}, why);
  if (!parts) return std::nullopt;
  return std::move(parts->front());
}

std::optional<int64_t> period(const Layout& layout, std::string* why) {
  int64_t covered = 1;
  for (const Mode& mode : by_rising_stride(layout)) {
    if (mode.stride == 0 || mode.stride % covered != 0) {
      return refused(why, fmt::format("{} steps by {}, no multiple of the {} that smaller strides cover",
                                      to_text(layout), mode.stride, covered));
    }
    covered = mode.stride * mode.extent;
  }
  return covered;
}

std::optional<Layout> complement(const Layout& layout, int64_t count, std::string* why) {
  const auto repeats = period(layout, why);
  if (!repeats) return std::nullopt;
  if (count < 1 || count % *repeats != 0) {
    return refused(why, fmt::format("{} repeats after {}, which does not divide {}", to_text(layout), *repeats, count));
  }
  std::vector<Mode> gaps;
  int64_t covered = 1;
  const auto fill_to = [&](int64_t stride) {
    if (stride > covered) gaps.push_back({stride / covered, covered});
  };
  for (const Mode& mode : by_rising_stride(layout)) {
    fill_to(mode.stride);
    covered = mode.stride * mode.extent;
  }
  fill_to(count);
  return coalesce(Layout(std::move(gaps)));
}

Layout right_inverse(const Layout& layout) {
  std::vector<Mode> modes;
  int64_t covered = 1;
  for (bool found = true; found;) {
    found = false;
    int64_t weight = 1;
    for (const Mode& mode : layout.modes()) {
      if (mode.extent > 1 && mode.stride == covered) {
        modes.push_back({mode.extent, weight});
        covered *= mode.extent;
        found = true;
        break;
      }
      weight *= mode.extent;
    }
  }
  return coalesce(Layout(std::move(modes)));
}

std::optional<Layout> left_inverse(const Layout& layout, std::string* why) {
  const auto count = period(layout, why);
  if (!count) return std::nullopt;
  return right_inverse(concatenated(layout, *complement(layout, *count)));
}

std::optional<Divided> logical_divide(const Layout& layout, const Layout& tiler, std::string* why) {
  const auto rest = complement(tiler, layout.size(), why);
  if (!rest) return std::nullopt;
  auto parts = compose(layout, {tiler, *rest}, why);
  if (!parts) return std::nullopt;
  return Divided{std::move((*parts)[0]), std::move((*parts)[1])};
}

std::optional<Layout> logical_product(const Layout& tile, const Layout& order, std::string* why) {
  const auto count = period(tile, why);
  if (!count) return std::nullopt;
  // One period leaves room for this many copies.
  const int64_t copies = *count / tile.size();
  const int64_t periods = (order.cosize() + copies - 1) / copies;
  return compose(*complement(tile, *count * periods), order, why);
}

std::optional<Layout> layout_of_values(std::span<const int64_t> values) {
  const int64_t size = int64_t(values.size());
  const auto value = [&](int64_t i) { return values[size_t(i)]; };
  if (size == 0 || value(0) != 0 || *std::min_element(values.begin(), values.end()) < 0) return std::nullopt;
  std::vector<Mode> modes;
  for (int64_t weight = 1; weight < size;) {
    const int64_t stride = value(weight);
    int64_t run = 2;
    while (run * weight < size && value(run * weight) - value((run - 1) * weight) == stride) ++run;
    if (size % (run * weight) != 0) return std::nullopt;
    modes.push_back({run, stride});
    weight *= run;
  }
  auto layout = Layout::checked(std::move(modes));
  for (int64_t i = 0; layout && i < size; ++i) {
    if ((*layout)(i) != value(i)) return std::nullopt;
  }
  return layout;
}

}  // namespace tilepilot::layout
