// SHA-256, to name cache entries by their content, and HMAC (RFC 2104), to know who wrote them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilepilot::runtime {

class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  // A string with its length, so that neighbours cannot run into each other.
  Sha256& add_field(std::string_view bytes);
  // The digest as 64 hexadecimal digits. Nothing may be added afterwards.
  std::string hex();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string pending_;  // less than a block
  uint64_t length_ = 0;

  void block(const unsigned char* bytes);
};

// As 64 hexadecimal digits: what only those can make who know the key.
std::string hmac_sha256(std::string_view key, std::string_view message);

}  // namespace tilepilot::runtime
