#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "show/drawings.h"

namespace tilepilot::show {
namespace {

constexpr double kLeft = 70, kWide = 560, kHigh = 320;

// Both axes are logarithmic.
struct Axes {
  double low_x, high_x, low_y, high_y;  // powers of ten
  double top;                           // in the drawing
  double x(double value) const { return kLeft + kWide * (std::log10(value) - low_x) / (high_x - low_x); }
  double y(double value) const { return top + kHigh * (1 - (std::log10(value) - low_y) / (high_y - low_y)); }
};

Axes axes_of(const RooflinePicture& roofline, double reached, double top) {
  double least = 1e300, most = 0;
  for (const Ceiling& ceiling : roofline.ceilings) {
    if (ceiling.flops_per_s <= 0) continue;
    least = std::min(least, ceiling.flops_per_s);
    most = std::max(most, ceiling.flops_per_s);
  }
  const double ridge = most / roofline.bytes_per_s, intensity = std::max(roofline.intensity(), 1e-6);
  Axes axes{};
  axes.top = top;
  axes.low_x = std::floor(std::log10(std::min({least / roofline.bytes_per_s / 10, intensity / 2, 1.0})));
  axes.high_x = std::ceil(std::log10(std::max(ridge * 10, intensity * 2)));
  const double low = std::min(roofline.bytes_per_s * std::pow(10, axes.low_x), reached > 0 ? reached / 2 : 1e300);
  axes.low_y = std::floor(std::log10(low));
  axes.high_y = std::ceil(std::log10(most * 1.5));
  return axes;
}

void draw_axes(Svg& svg, const Axes& axes) {
  for (double power = axes.low_x; power <= axes.high_x; ++power) {
    const double x = axes.x(std::pow(10, power));
    svg.line(x, axes.top, x, axes.top + kHigh, "tp-axis");
    svg.text(x, axes.top + kHigh + 16, fmt::format("{:g}", std::pow(10, power)), "tp-t tp-m");
  }
  for (double power = axes.low_y; power <= axes.high_y; ++power) {
    const double y = axes.y(std::pow(10, power));
    svg.line(kLeft, y, kLeft + kWide, y, "tp-axis");
    svg.text(kLeft - 6, y + 4, with_prefix(std::pow(10, power)), "tp-t tp-e");
  }
  svg.text(kLeft + kWide, axes.top + kHigh + 34, "FLOP/s over FLOP for each byte that must move", "tp-t tp-e");
}

void draw_roofs(Svg& svg, const Axes& axes, const RooflinePicture& roofline) {
  const double start = std::pow(10, axes.low_x);
  bool own = true;
  double above = 0;
  for (const Ceiling& ceiling : roofline.ceilings) {
    if (ceiling.flops_per_s <= 0) continue;
    const double ridge = ceiling.flops_per_s / roofline.bytes_per_s;
    const std::string path =
        fmt::format("M{} {}L{} {}H{}", number(axes.x(start)), number(axes.y(start * roofline.bytes_per_s)),
                    number(axes.x(ridge)), number(axes.y(ceiling.flops_per_s)), number(kLeft + kWide));
    svg.path(path, own ? "tp-roof" : "tp-roof2",
             {fmt::format("{}: {}FLOP/s; memory: {}B/s", ceiling.name, with_prefix(ceiling.flops_per_s),
                          with_prefix(roofline.bytes_per_s))});
    double y = axes.y(ceiling.flops_per_s) - 6;
    if (above > 0 && std::abs(y - above) < 14) y = above + 28;  // under its line
    svg.text(kLeft + kWide, y, fmt::format("{}: {}FLOP/s", ceiling.name, with_prefix(ceiling.flops_per_s)),
             "tp-t tp-e");
    above = y;
    own = false;
  }
  svg.text(axes.x(start) + 6, axes.top + kHigh - 8, fmt::format("memory: {}B/s", with_prefix(roofline.bytes_per_s)));
}

// Where nothing is written beside the dot: under it, else over it.
double height_beside(const Axes& axes, const RooflinePicture& roofline, double dot) {
  for (const double y : {dot + 18, dot - 10, dot + 34})
    if (std::all_of(roofline.ceilings.begin(), roofline.ceilings.end(), [&](const Ceiling& ceiling) {
          return ceiling.flops_per_s <= 0 || std::abs(axes.y(ceiling.flops_per_s) - 3 - y) > 16;
        }))
      return y;
  return dot + 4;
}

void draw_dot(Svg& svg, const Axes& axes, const RooflinePicture& roofline, double reached) {
  const double x = axes.x(roofline.intensity()), y = axes.y(reached);
  const double roof = std::min(roofline.intensity() * roofline.bytes_per_s, roofline.ceilings.front().flops_per_s);
  const std::string words =
      fmt::format("{}FLOP/s, {:.0f} % of the roofline", with_prefix(reached), 100 * reached / roof);
  svg.circle(x, y, 6, "tp-dot",
             {fmt::format("{} in {:.3g} us, {}", words, roofline.seconds * 1e6, roofline.time_from)});
  svg.text(x + 10, height_beside(axes, roofline, y), words, "tp-b");
  svg.extend(x + 10 + 8 * static_cast<double>(words.size()), 0);
}

}  // namespace

Svg draw(const RooflinePicture& roofline) {
  Svg svg("roofline");
  const double reached = roofline.seconds > 0 ? roofline.flops / roofline.seconds : 0;
  svg.caption(roofline.machine, true);
  const std::string about = roofline.exact ? "" : "about ";
  svg.caption(fmt::format("{}{}B that must move, {}{}FLOP: {:.3g} FLOP/B", about, with_prefix(roofline.bytes), about,
                          with_prefix(roofline.flops), roofline.intensity()));
  if (roofline.bytes_per_s <= 0 || roofline.bytes <= 0 || roofline.flops <= 0) {
    std::string words = roofline.flops <= 0 ? "it computes nothing that counts: no dot" : "no rates are known: no dot";
    if (roofline.seconds > 0 && roofline.bytes_per_s > 0)
      words = fmt::format("it computes nothing that counts: {:.3g} us, {}, are {}B/s, {:.0f} % of the memory's rate",
                          roofline.seconds * 1e6, roofline.time_from, with_prefix(roofline.bytes / roofline.seconds),
                          100 * roofline.bytes / roofline.seconds / roofline.bytes_per_s);
    svg.caption(words);
    svg.extend(kWide, svg.top());
    return svg;
  }
  if (roofline.seconds > 0)
    svg.caption(fmt::format("{:.3g} us, {}{}", roofline.seconds * 1e6, roofline.time_from,
                            roofline.bound.empty() ? "" : "; it goes to: " + roofline.bound));
  const Axes axes = axes_of(roofline, reached, svg.top() + 12);
  draw_axes(svg, axes);
  draw_roofs(svg, axes, roofline);
  if (reached > 0) {
    draw_dot(svg, axes, roofline, reached);
  } else {
    const double x = axes.x(roofline.intensity());
    svg.line(x, axes.top, x, axes.top + kHigh, "tp-roof2");
    svg.text(x + 6, axes.top + 14, "this kernel: no time is known");
  }
  svg.extend(kLeft + kWide + 10, axes.top + kHigh + 42);
  return svg;
}

}  // namespace tilepilot::show
