// How the processes speak: length-prefixed JSON over a socket pair, file descriptors beside it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::eval {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

struct Message {
  nlohmann::json body;
  std::vector<Descriptor> descriptors;
};

class Wire {
 public:
  explicit Wire(Descriptor socket) : socket_(std::move(socket)) {}

  // False if the other side is gone, or takes nothing for so many seconds; 0: however long.
  bool send(const nlohmann::json& body, const std::vector<int>& descriptors = {}, double time_limit_s = 0);
  // Longer messages of the other side are malformed.
  void limit_body(uint64_t bytes) { max_body_ = bytes; }

  // Whether the next message, or the end of the other side, comes within so many seconds.
  bool await(double seconds) const;
  enum class Trouble { closed, timed_out, malformed };
  // The next message; nullopt: see trouble(). A limit of 0 waits for ever.
  std::optional<Message> receive(double time_limit_s = 0);
  Trouble trouble() const { return trouble_; }
  // To hand it to another process, which then speaks in place of this one.
  int descriptor() const { return socket_.number(); }

 private:
  bool read_bytes(char* into, size_t count, double deadline, std::vector<Descriptor>& descriptors);
  Descriptor socket_;
  Trouble trouble_ = Trouble::closed;
  uint64_t max_body_ = uint64_t{1} << 30;
};

// Two connected sockets, closed on exec.
std::pair<Descriptor, Descriptor> socket_pair();

// Seconds from a fixed point, never backwards.
double monotonic_seconds();

}  // namespace tilepilot::eval
