#include "show/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilepilot::show {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:  // XML has no other control characters
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

std::string number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string with_prefix(double value) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t power = 0;
  for (; std::abs(value) >= 999.5 && power + 1 < std::size(kPrefixes); ++power) value /= 1000;
  return fmt::format("{:.3g} {}", value, kPrefixes[power]);
}

std::string_view drawing_style() {
  return R"(.tp-t{fill:var(--tp-soft);font:12px system-ui,sans-serif}.tp-b{fill:var(--tp-ink);font:600 13px system-ui,sans-serif}
.tp-e{text-anchor:end}.tp-m{text-anchor:middle}.tp-c{fill:#1b1f24;font:10px ui-monospace,monospace;text-anchor:middle}
.tp-cell{stroke:#8c959f;stroke-width:.5}.tp-none{fill:none;stroke:var(--tp-line)}.tp-axis{stroke:var(--tp-line)}
.tp-copy{fill:var(--tp-copy)}.tp-wait{fill:var(--tp-wait)}.tp-product{fill:var(--tp-product)}.tp-await{fill:var(--tp-product);fill-opacity:.35}.tp-global{fill:var(--tp-global)}
.tp-shared{fill:var(--tp-shared)}.tp-math{fill:var(--tp-math)}.tp-other{fill:var(--tp-soft)}.tp-bad{fill:var(--tp-bad)}
.tp-roof{stroke:var(--tp-ink);stroke-width:2;fill:none}.tp-roof2{stroke:var(--tp-soft);stroke-width:1.5;stroke-dasharray:5 4;fill:none}
.tp-dot{fill:var(--tp-copy);stroke:var(--tp-ink);stroke-width:1.5}
:root{--tp-ink:#1b1f24;--tp-soft:#59636e;--tp-line:#d1d9e0;--tp-copy:#0969da;--tp-wait:#c4ccd4;--tp-product:#1a7f37;
--tp-global:#bf8700;--tp-shared:#8250df;--tp-math:#d1570b;--tp-bad:#cf222e}
@media (prefers-color-scheme:dark){:root{--tp-ink:#f0f6fc;--tp-soft:#9198a1;--tp-line:#3d444d;--tp-copy:#4493f8;--tp-wait:#4a525b;
--tp-product:#3fb950;--tp-global:#d29922;--tp-shared:#ab7df8;--tp-math:#f0883e;--tp-bad:#f85149}})";
}

void Svg::shape(std::string_view name, const std::string& attributes, std::string_view style, const About& about) {
  body_ += fmt::format("<{}{} {}=\"{}\"", name, attributes, style.starts_with("hsl") ? "fill" : "class", style);
  if (style.starts_with("hsl") && name == "rect") body_ += " class=\"tp-cell\"";
  if (about.line > 0) body_ += fmt::format(" data-line=\"{}\"", about.line);
  body_ += about.title.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(about.title), name);
}

void Svg::rect(double x, double y, double width, double height, std::string_view style, const About& about) {
  extend(x + width, y + height);
  shape("rect",
        fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(x), number(y), number(std::max(width, 0.2)),
                    number(height)),
        style, about);
}

void Svg::path(std::string_view data, std::string_view style, const About& about) {
  shape("path", fmt::format(" d=\"{}\"", data), style, about);
}

void Svg::circle(double x, double y, double radius, std::string_view style, const About& about) {
  extend(x + radius, y + radius);
  shape("circle", fmt::format(" cx=\"{}\" cy=\"{}\" r=\"{}\"", number(x), number(y), number(radius)), style, about);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  extend(std::max(x1, x2), std::max(y1, y2));
  shape("line", fmt::format(" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", number(x1), number(y1), number(x2), number(y2)),
        style, {});
}

void Svg::text(double x, double y, std::string_view content, std::string_view style) {
  body_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", number(x), number(y), style, escaped(content));
}

void Svg::extend(double width, double height) {
  width_ = std::max(width_, width);
  height_ = std::max(height_, height);
}

void Svg::caption(std::string content, bool is_title) { captions_.push_back({std::move(content), is_title}); }

std::string Svg::whole(std::string_view before, double top) const {
  const std::string width = number(std::ceil(width_) + 1), height = number(std::ceil(height_ - top) + 1);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 {2} {0} {1}\" "
      "role=\"img\" aria-label=\"{3}\" tabindex=\"0\">\n<title>{3}</title>\n{4}{5}</svg>\n",
      width, height, number(top), escaped(title_), before, body_);
}

std::string Svg::drawn() const { return whole("", top()); }

std::string Svg::standalone() const {
  std::string before = fmt::format("<style>{}</style>\n", drawing_style());
  for (size_t line = 0; line < captions_.size(); ++line)
    before += fmt::format("<text x=\"4\" y=\"{}\" class=\"{}\">{}</text>\n",
                          number(kCaptionHigh * static_cast<double>(line + 1) - 2),
                          captions_[line].is_title ? "tp-b" : "tp-t", escaped(captions_[line].content));
  return whole(before, 0);
}

std::string Svg::captions() const {
  std::string text;
  for (const Caption& caption : captions_)
    text += caption.is_title ? fmt::format("<p><b>{}</b></p>\n", escaped(caption.content))
                             : fmt::format("<p class=\"soft\">{}</p>\n", escaped(caption.content));
  return text;
}

}  // namespace tilepilot::show
