#include "eval/process/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

namespace tilepilot::eval {
namespace {

constexpr size_t kMaxDescriptors = 8;
constexpr int kMaxNesting = 100;            // no message of ours comes near; deeper ones would overflow stacks
constexpr size_t kPiece = size_t{1} << 20;  // memory for a body is taken as it comes, whatever its length claims

// Room for the descriptors that travel beside the bytes, aligned as the kernel wants it.
union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
};

void attach(msghdr& header, Control& control, const std::vector<int>& descriptors) {
  size_t size = sizeof(int) * descriptors.size();
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_SPACE(size);
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(entry), descriptors.data(), size);
}

void detach(msghdr& header, std::vector<Descriptor>& descriptors) {
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry; entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(entry) + i * sizeof(int), sizeof(int));
      Descriptor arrived(number);
      if (descriptors.size() < kMaxDescriptors) descriptors.push_back(std::move(arrived));
    }
  }
}

// Waits until there is something to read, or room to write; false if the deadline passed.
bool wait_ready(int socket, short event, double deadline) {
  while (true) {
    double left = deadline - monotonic_seconds();
    if (std::isfinite(deadline) && left <= 0) return false;
    pollfd entry{socket, event, 0};
    int limit_ms = std::isfinite(deadline) ? static_cast<int>(std::min(left * 1000 + 1, 1e6)) : -1;
    int ready = poll(&entry, 1, limit_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool is_nested_too_deeply(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (quoted && byte == '\\') ++at;
    if (byte == '"') quoted = !quoted;
    if (quoted) continue;
    if (byte == '[' || byte == '{') ++depth;
    if (byte == ']' || byte == '}') --depth;
    if (depth > kMaxNesting) return true;
  }
  return false;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

bool Wire::send(const nlohmann::json& body, const std::vector<int>& descriptors, double time_limit_s) {
  std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  uint64_t size = text.size();
  text.insert(0, reinterpret_cast<const char*>(&size), sizeof(size));
  size_t sent = 0;
  while (sent < text.size()) {
    const double deadline = time_limit_s > 0 ? monotonic_seconds() + time_limit_s : INFINITY;
    if (!wait_ready(socket_.number(), POLLOUT, deadline)) return false;
    iovec piece{text.data() + sent, text.size() - sent};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    Control control{};
    if (sent == 0 && !descriptors.empty()) attach(header, control, descriptors);
    ssize_t count = sendmsg(socket_.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

bool Wire::read_bytes(char* into, size_t count, double deadline, std::vector<Descriptor>& descriptors) {
  size_t done = 0;
  while (done < count) {
    if (!wait_ready(socket_.number(), POLLIN, deadline)) {
      trouble_ = Trouble::timed_out;
      return false;
    }
    iovec piece{into + done, count - done};
    Control control{};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof(control.bytes);
    ssize_t received = recvmsg(socket_.number(), &header, MSG_CMSG_CLOEXEC);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) {
      trouble_ = Trouble::closed;
      return false;
    }
    detach(header, descriptors);
    done += static_cast<size_t>(received);
  }
  return true;
}

bool Wire::await(double seconds) const { return wait_ready(socket_.number(), POLLIN, monotonic_seconds() + seconds); }

std::optional<Message> Wire::receive(double time_limit_s) {
  double deadline = time_limit_s > 0 ? monotonic_seconds() + time_limit_s : INFINITY;
  Message message;
  uint64_t size = 0;
  if (!read_bytes(reinterpret_cast<char*>(&size), sizeof(size), deadline, message.descriptors)) return std::nullopt;
  trouble_ = Trouble::malformed;
  if (size > max_body_) return std::nullopt;
  std::string text;
  while (text.size() < size) {
    const size_t begin = text.size(), piece = std::min<size_t>(size - begin, std::max(kPiece, begin));
    text.resize(begin + piece);
    if (!read_bytes(text.data() + begin, piece, deadline, message.descriptors)) return std::nullopt;
  }
  trouble_ = Trouble::malformed;
  if (is_nested_too_deeply(text)) return std::nullopt;
  message.body = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  trouble_ = Trouble::malformed;
  if (!message.body.is_object()) return std::nullopt;
  return message;
}

std::pair<Descriptor, Descriptor> socket_pair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {Descriptor(), Descriptor()};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tilepilot::eval
