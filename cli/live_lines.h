// Progress of several things at once. On a terminal: a line each that is written anew, below them a status line, and
// what has ended above. Elsewhere: a plain line for whatever ends.
#pragma once

#include <string>
#include <vector>

namespace tilepilot::cli {

class LiveLines {
 public:
  // `quiet`: nothing is shown.
  LiveLines(bool is_terminal, bool quiet) : is_terminal_(is_terminal), quiet_(quiet) {}
  ~LiveLines() { clear(); }
  LiveLines(const LiveLines&) = delete;

  // A line for what is called so; an empty text takes it away.
  void set(const std::string& name, const std::string& text);
  void set_status(const std::string& text);
  // A line that stays.
  void say(const std::string& line);

 private:
  struct Line {
    std::string name, text;
  };
  void clear();
  void draw();

  bool is_terminal_, quiet_;
  std::vector<Line> lines_;
  std::string status_;
  size_t drawn_ = 0;  // lines that stand on the terminal now
};

}  // namespace tilepilot::cli
