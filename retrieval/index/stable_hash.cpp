#include "retrieval/index/stable_hash.h"

#include <fmt/format.h>

namespace tilepilot::retrieval {

uint64_t stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15u;
}

std::string stable_digest(std::string_view text) {
  uint64_t a = 0xcbf29ce484222325u, b = 0x84222325cbf29ce4u;
  for (char c : text) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    b = (b ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    b ^= b >> 29;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

std::string stable_digest(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (std::string_view text : texts) all += fmt::format("{}\x1f{}", text.size(), text);
  return stable_digest(all);
}

}  // namespace tilepilot::retrieval
