#include "eval/process/output_tap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "compiler/untrusted/printable.h"

namespace tilepilot::eval {
namespace {

std::pair<Descriptor, Descriptor> open_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return {Descriptor(), Descriptor()};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void write_all(int into, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(into, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

OutputTap::OutputTap(int into) : into_(into) {
  std::tie(read_end_, write_end_) = open_pipe();
  std::tie(stop_read_, stop_write_) = open_pipe();
  thread_ = std::thread([this] { carry(); });
}

OutputTap::~OutputTap() {
  close_write_end();
  { Descriptor closed = std::move(stop_write_); }
  thread_.join();
}

// Until the pipe ends, or it is empty and told to stop: a process that was killed may leave others that hold it open.
void OutputTap::carry() {
  std::string held;  // the first half of a character
  size_t kept = 0, dropped = 0;
  char buffer[1 << 14];
  while (true) {
    pollfd waiting[2] = {{read_end_.number(), POLLIN, 0}, {stop_read_.number(), POLLIN, 0}};
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) break;
    if (waiting[0].revents == 0 && waiting[1].revents != 0) break;
    if (waiting[0].revents == 0) continue;
    const ssize_t count = read(read_end_.number(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const size_t taken = std::min(static_cast<size_t>(count), kKept - kept);
    kept += taken;
    dropped += static_cast<size_t>(count) - taken;
    held.append(buffer, taken);
    const bool is_split = !held.empty() && held.back() == '\xc2';
    write_all(into_, printable(std::string_view(held).substr(0, held.size() - (is_split ? 1 : 0))));
    held = is_split ? "\xc2" : "";
  }
  if (dropped > 0) write_all(into_, fmt::format("\n... ({} more bytes of the candidate's output)\n", dropped));
}

}  // namespace tilepilot::eval
