#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "show/drawings.h"

namespace tilepilot::show {
namespace {

constexpr double kLabels = 150, kWide = 1040, kHigh = 18, kLegendHigh = 18;

std::string_view style_of(Activity activity) {
  switch (activity) {
    case Activity::copy:
      return "tp-copy";
    case Activity::wait:
      return "tp-wait";
    case Activity::await:
      return "tp-await";
    case Activity::product:
      return "tp-product";
    case Activity::global:
      return "tp-global";
    case Activity::shared:
      return "tp-shared";
    case Activity::math:
      return "tp-math";
    case Activity::other:
      return "tp-other";
  }
  return "";
}

// The cycles that are drawn.
struct Window {
  double begin, end;
  double x(double cycle) const {
    return kLabels + kWide * (std::clamp(cycle, begin, end) - begin) / std::max(end - begin, 1.0);
  }
};

// From where it is asked for, so that segments are not too many.
Window window_of(const Timeline& timeline, size_t most) {
  const double from = std::min(timeline.from, timeline.cycles);
  std::vector<double> begins;
  for (const TimelineRow& row : timeline.rows)
    for (const Segment& segment : row.segments)
      if (segment.end > from) begins.push_back(segment.begin);
  if (begins.size() <= most) return {from, timeline.cycles};
  std::nth_element(begins.begin(), begins.begin() + static_cast<std::ptrdiff_t>(most), begins.end());
  return {from, begins[most]};
}

// A round number of cycles, about a tenth of all.
double step_of(double cycles) {
  const double power = std::pow(10, std::floor(std::log10(std::max(cycles / 8, 1.0))));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= cycles / 8) return factor * power;
  return 10 * power;
}

std::string title_of(const TimelineRow& row, const Segment& segment) {
  std::string text = fmt::format("{}: {}", row.label, segment.what);
  if (segment.count > 1) text += fmt::format(" x {}", segment.count);
  if (segment.bytes > 0) text += fmt::format(", {} bytes", segment.bytes);
  text += fmt::format(", cycles {:.0f} to {:.0f}", segment.begin, segment.end);
  return segment.line > 0 ? text + fmt::format(", line {}", segment.line) : text;
}

void draw_legend(Svg& svg, double y) {
  double x = kLabels;
  for (const Activity activity : {Activity::copy, Activity::wait, Activity::await, Activity::product, Activity::shared,
                                  Activity::global, Activity::math}) {
    svg.rect(x, y, 12, 12, style_of(activity));
    svg.text(x + 16, y + 11, name_of(activity));
    x += 34 + 7 * static_cast<double>(name_of(activity).size());
  }
}

// What each group takes beside its rows.
constexpr double kGroupHigh = 16;

double bottom_of(const Timeline& timeline, double top) {
  double y = top + kHigh * static_cast<double>(timeline.rows.size());
  for (size_t row = 0; row < timeline.rows.size(); ++row)
    if (row == 0 || timeline.rows[row].group != timeline.rows[row - 1].group) y += kGroupHigh;
  return y;
}

void draw_axis(Svg& svg, const Window& window, double top, double bottom) {
  const double step = step_of(window.end - window.begin);
  for (double at = std::ceil(window.begin / step) * step; at <= window.end; at += step) {
    const double x = window.x(at);
    svg.line(x, top + kGroupHigh, x, bottom + 4, "tp-axis");
    svg.text(x, bottom + 18, fmt::format("{:.0f}", at), "tp-t tp-m");
  }
  svg.text(kLabels + kWide, bottom + 34, "cycles", "tp-t tp-e");
}

void draw_rows(Svg& svg, const Timeline& timeline, const Window& window, double top) {
  double y = top;
  std::string group = "\n";
  for (const TimelineRow& row : timeline.rows) {
    if (row.group != group) {
      group = row.group;
      y += kGroupHigh;
      svg.text(4, y - 4, group.empty() ? "warps: all do the same" : group, "tp-b");
    }
    svg.text(kLabels - 6, y + 13, row.label, "tp-t tp-e");
    svg.line(kLabels, y + kHigh, kLabels + kWide, y + kHigh, "tp-axis");
    for (const Segment& segment : row.segments) {
      if (segment.begin >= window.end || segment.end <= window.begin) continue;
      const double begin = window.x(segment.begin), end = window.x(segment.end);
      svg.rect(begin, y + 2, end - begin, kHigh - 4, style_of(segment.activity),
               {title_of(row, segment), segment.line});
    }
    y += kHigh;
  }
}

}  // namespace

Svg draw(const Timeline& timeline, const DrawingLimits& limits) {
  Svg svg("timeline of a block");
  const Window window = window_of(timeline, limits.segments);
  std::string words = fmt::format("one block, {:.0f} cycles", timeline.cycles);
  if (timeline.tensor_busy > 0)
    words += fmt::format(
        "; tensor cores work in {:.0f} % of them, and during {:.0f} % of the time in which copies are "
        "in flight",
        100 * timeline.tensor_busy, 100 * timeline.copies_under_products);
  svg.caption(words, true);
  svg.caption(fmt::format("axis: {}", timeline.unit));
  std::string cut;
  if (timeline.is_cut)
    cut = fmt::format("the emulator stopped after {} steps, before the block's end. ", timeline.steps);
  if (timeline.unplaced > 0 && !timeline.is_cut)
    cut += fmt::format("{} of {} steps wait for something that never comes. ", timeline.unplaced, timeline.steps);
  if (window.begin > 0 || window.end < timeline.cycles)
    cut += fmt::format("Shown: cycles {:.0f} to {:.0f} of {:.0f}; `--from` shows others, `--json` has all.",
                       window.begin, window.end, timeline.cycles);
  if (!cut.empty()) svg.caption(cut);
  draw_legend(svg, svg.top());
  const double top = svg.top() + kLegendHigh, bottom = bottom_of(timeline, top);
  draw_axis(svg, window, top, bottom);
  draw_rows(svg, timeline, window, top);
  svg.extend(kLabels + kWide + 20, bottom + 38);
  return svg;
}

}  // namespace tilepilot::show
