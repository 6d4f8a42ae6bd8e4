#include "eval/worker/digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

// Four independent lanes of multiply and rotate: as fast as memory, and any changed bit changes the result.
uint64_t hash_bytes(const char* data, size_t size) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t position = 0;
  for (; position + sizeof(lanes) <= size; position += sizeof(lanes)) {
    uint64_t words[4];
    std::memcpy(words, data + position, sizeof(words));
    for (int i = 0; i < 4; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * kMultiplier;
      lanes[i] ^= lanes[i] >> 29;
    }
  }
  uint64_t result = size;
  for (; position < size; ++position) result = (result ^ static_cast<unsigned char>(data[position])) * kMultiplier;
  for (uint64_t lane : lanes) result = ((result ^ lane) * kMultiplier) ^ (result >> 31);
  return result;
}

}  // namespace

std::string digest_of(const at::Tensor& tensor) {
  at::Tensor elements = tensor.contiguous().cpu();
  auto* data = static_cast<const char*>(elements.const_data_ptr());
  return fmt::format("{}[{}]:{:016x}", element_type_name(tensor.scalar_type()), fmt::join(tensor.sizes().vec(), ","),
                     hash_bytes(data, elements.nbytes()));
}

}  // namespace tilepilot::eval
