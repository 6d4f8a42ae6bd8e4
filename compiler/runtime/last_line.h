// The last whole line of text that comes in pieces: what a process says of its progress.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tilepilot::runtime {

class LastLine {
 public:
  explicit LastLine(std::function<void(const std::string&)> told) : told_(std::move(told)) {}
  // Tells the last line that the piece ends, at most 200 bytes of it.
  void add(std::string_view text) {
    pending_ += text;
    const size_t end = pending_.rfind('\n');
    if (end == std::string::npos) return;
    const size_t before = end == 0 ? std::string::npos : pending_.rfind('\n', end - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    told_(pending_.substr(begin, std::min<size_t>(end - begin, 200)));
    pending_.erase(0, end + 1);
  }

 private:
  std::function<void(const std::string&)> told_;
  std::string pending_;
};

}  // namespace tilepilot::runtime
