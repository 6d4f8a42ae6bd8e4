// Indented lines of C++.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tilepilot::targets::c {

class Writer {
 public:
  explicit Writer(int depth = 0) : depth_(depth) {}

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    put(fmt::format(format, std::forward<Args>(args)...));
  }
  void put(std::string_view text) {
    if (!text.empty()) text_.append(static_cast<size_t>(depth_) * 2, ' ').append(text);
    text_ += '\n';
  }
  // A line that opens a brace, and the line that closes it.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    put(fmt::format(format, std::forward<Args>(args)...) + " {");
    ++depth_;
  }
  void reopen(std::string_view text) {
    --depth_;
    put(fmt::format("}} {} {{", text));
    ++depth_;
  }
  void close(std::string_view after = "") {
    --depth_;
    put(fmt::format("}}{}", after));
  }
  void append(std::string_view lines) { text_ += lines; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_;
};

}  // namespace tilepilot::targets::c
