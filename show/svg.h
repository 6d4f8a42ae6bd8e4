// The pieces of an SVG drawing. Texts may hold anything; they are escaped here and nowhere else.
#pragma once

#include <string>
#include <string_view>

namespace tilepilot::show {

// For text and attributes of XML and HTML.
std::string escaped(std::string_view text);
// With at most one digit behind the point.
std::string number(double value);
// "1.05 M", "674 T", of three digits.
std::string with_prefix(double value);

// Colours of drawings, light and dark; a page has it once, a file of its own has it inside.
std::string_view drawing_style();

// What a shape says of itself, by a tooltip and by the line of the program that it belongs to; 0: none.
struct About {
  std::string title = {};
  int line = 0;
};

class Svg {
 public:
  // `title` names the drawing for who cannot see it.
  explicit Svg(std::string title) : title_(std::move(title)) {}

  // `style`: classes, or a colour that begins with `hsl`.
  void rect(double x, double y, double width, double height, std::string_view style, const About& about = {});
  void path(std::string_view data, std::string_view style, const About& about = {});
  void circle(double x, double y, double radius, std::string_view style, const About& about = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void text(double x, double y, std::string_view content, std::string_view style = "tp-t");
  // Room for what was drawn.
  void extend(double width, double height);

  double width() const { return width_; }
  double height() const { return height_; }
  std::string drawn() const;       // inside a page
  std::string standalone() const;  // a file

 private:
  std::string title_, body_;
  double width_ = 0, height_ = 0;

  void shape(std::string_view name, const std::string& attributes, std::string_view style, const About& about);
  std::string whole(std::string_view style) const;
};

}  // namespace tilepilot::show
