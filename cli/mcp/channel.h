// The two ends of the channel to a client: lines that come in, lines that go out.
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilepilot::cli::mcp {

// Lines of a descriptor, as they come. Blank lines are none.
class LineReader {
 public:
  // A line that is longer than `longest` bytes is dropped, and told.
  LineReader(int descriptor, size_t longest) : descriptor_(descriptor), longest_(longest) {}

  enum class Got { line, too_long, nothing, end };
  // Waits for so long at most; less than 0: as long as it takes.
  Got next(std::string& line, int wait_ms);

 private:
  Got take(std::string& line);
  bool fill(int wait_ms);

  int descriptor_;
  size_t longest_;
  std::string pending_;
  size_t looked_at_ = 0;  // of what is pending: there is no end of a line in it
  bool is_skipping_ = false, at_end_ = false;
};

// Messages, each a line. Several threads may send.
class Outbox {
 public:
  explicit Outbox(int descriptor) : descriptor_(descriptor) {}
  void send(const nlohmann::json& message);

 private:
  int descriptor_;
  std::mutex mutex_;
};

}  // namespace tilepilot::cli::mcp
