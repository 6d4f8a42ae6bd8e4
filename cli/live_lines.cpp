#include "cli/live_lines.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "compiler/untrusted/printable.h"

namespace tilepilot::cli {
namespace {

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// As many of a text's characters (UTF-8) as fit a line.
std::string cut(const std::string& text, size_t width) {
  size_t characters = 0, end = 0;
  for (; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) continue;
    if (++characters > width) break;
  }
  return text.substr(0, end);
}

}  // namespace

void LiveLines::set(const std::string& name, const std::string& text) {
  clear();
  const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.name == name; });
  if (found == lines_.end()) {
    if (!text.empty()) lines_.push_back({name, text});
  } else if (text.empty()) {
    lines_.erase(found);
  } else {
    found->text = text;
  }
  draw();
}

void LiveLines::set_status(const std::string& text) {
  clear();
  status_ = text;
  draw();
}

void LiveLines::say(const std::string& line) {
  if (quiet_) return;
  clear();
  fmt::print(stderr, "{}\n", printable(line));
  draw();
}

void LiveLines::clear() {
  if (drawn_ > 0) fmt::print(stderr, "\x1b[{}A\r\x1b[J", drawn_);  // up, and away with what is below
  drawn_ = 0;
}

void LiveLines::draw() {
  if (!is_terminal_ || quiet_) return;
  const size_t width = terminal_width() - 1;
  for (const Line& line : lines_) fmt::print(stderr, "{}\n", cut(printable(line.name + "  " + line.text), width));
  if (!status_.empty()) fmt::print(stderr, "{}\n", cut(status_, width));
  drawn_ = lines_.size() + (status_.empty() ? 0 : 1);
  std::fflush(stderr);
}

}  // namespace tilepilot::cli
