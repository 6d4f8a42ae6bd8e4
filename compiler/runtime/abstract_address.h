// A name that sockets of this machine can have: it is no file, and is free again when its socket is closed.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tilepilot::runtime {

class AbstractAddress {
 public:
  // @pre at most 107 letters
  explicit AbstractAddress(std::string_view name)
      : length_(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    address_.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address_.sun_path + 1);  // a null byte comes first
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const { return length_; }

 private:
  sockaddr_un address_{};
  socklen_t length_;
};

}  // namespace tilepilot::runtime
