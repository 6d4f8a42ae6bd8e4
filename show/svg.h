// The pieces of an SVG drawing. Texts may hold anything; they are escaped here and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

  // A line above the drawing, in a page a paragraph that wraps. @pre nothing is drawn yet
  void caption(std::string content, bool is_title = false);
  // Where the drawing begins, below them.
  double top() const { return kCaptionHigh * static_cast<double>(captions_.size()) + 6; }

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
  std::string drawn() const;  // inside a page, beside what captions() says
  // As HTML.
  std::string captions() const;
  std::string standalone() const;  // a file

 private:
  static constexpr double kCaptionHigh = 18;

  struct Caption {
    std::string content;
    bool is_title;
  };

  std::string title_, body_;
  std::vector<Caption> captions_;
  double width_ = 0, height_ = 0;

  void shape(std::string_view name, const std::string& attributes, std::string_view style, const About& about);
  std::string whole(std::string_view before, double top) const;
};

}  // namespace tilepilot::show
