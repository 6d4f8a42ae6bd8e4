#include "retrieval/index/sparse_vector.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace tilepilot::retrieval {
namespace {

static_assert(std::endian::native == std::endian::little, "databases move between machines as they are");

constexpr size_t kPairBytes = sizeof(uint16_t) + sizeof(float);

template <class Visit>
void for_each_pair(std::string_view packed, Visit visit) {
  for (size_t at = 0; at + kPairBytes <= packed.size(); at += kPairBytes) {
    uint16_t place = 0;
    float value = 0;
    std::memcpy(&place, packed.data() + at, sizeof place);
    std::memcpy(&value, packed.data() + at + sizeof place, sizeof value);
    visit(size_t{place}, value);
  }
}

}  // namespace

std::string pack(std::span<const float> vector) {
  std::string packed;
  for (size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] == 0) continue;
    const auto place = static_cast<uint16_t>(i);
    char pair[kPairBytes];
    std::memcpy(pair, &place, sizeof place);
    std::memcpy(pair + sizeof place, &vector[i], sizeof(float));
    packed.append(pair, kPairBytes);
  }
  return packed;
}

void unpack(std::string_view packed, std::span<float> vector) {
  for_each_pair(packed, [&](size_t place, float value) {
    if (place < vector.size()) vector[place] += value;
  });
}

double inner_product(std::string_view packed, std::span<const float> vector) {
  double sum = 0;
  for_each_pair(packed, [&](size_t place, float value) {
    if (place < vector.size()) sum += double{value} * double{vector[place]};
  });
  return sum;
}

}  // namespace tilepilot::retrieval
