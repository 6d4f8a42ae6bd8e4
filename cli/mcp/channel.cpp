#include "cli/mcp/channel.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace tilepilot::cli::mcp {

LineReader::Got LineReader::next(std::string& line, int wait_ms) {
  for (;;) {
    if (const Got got = take(line); got != Got::nothing) return got;
    if (at_end_) return Got::end;
    if (!fill(wait_ms)) return Got::nothing;
  }
}

// The next line of what is pending. The last one need not end.
LineReader::Got LineReader::take(std::string& line) {
  for (;;) {
    size_t end = pending_.find('\n', looked_at_);
    if (end == std::string::npos) {
      looked_at_ = pending_.size();
      if (pending_.size() > longest_) {
        is_skipping_ = true;
        pending_.clear();
        looked_at_ = 0;
      }
      if (!at_end_ || (pending_.empty() && !is_skipping_)) return Got::nothing;
      end = pending_.size();
    }
    line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    looked_at_ = 0;
    if (std::exchange(is_skipping_, false) || line.size() > longest_) return Got::too_long;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) return Got::line;
  }
}

// False if nothing came.
bool LineReader::fill(int wait_ms) {
  pollfd waiting{descriptor_, POLLIN, 0};
  const int ready = poll(&waiting, 1, wait_ms);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return false;
  char buffer[1 << 16];
  const ssize_t count = read(descriptor_, buffer, sizeof buffer);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (count <= 0) at_end_ = true;
  if (count > 0) pending_.append(buffer, static_cast<size_t>(count));
  return true;
}

void Outbox::send(const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::lock_guard lock(mutex_);
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(descriptor_, line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting{descriptor_, POLLOUT, 0};
      poll(&waiting, 1, -1);
      continue;
    }
    if (count <= 0) return;  // nobody reads any more, and the end of the input will say so
    sent += static_cast<size_t>(count);
  }
}

}  // namespace tilepilot::cli::mcp
