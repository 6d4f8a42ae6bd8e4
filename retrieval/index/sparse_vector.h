// How vectors are stored: most of a hashed vector's places are zero, and the others are written one after another, each
// as its place (16 bits) and its value (32 bits), little-endian.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tilepilot::retrieval {

std::string pack(std::span<const float> vector);

// Adds the stored vector to `vector`, whose other places stay as they are. Places beyond its end, and what follows a
// blob's last whole pair, are left out.
void unpack(std::string_view packed, std::span<float> vector);

// The inner product of a stored vector and `vector`.
double inner_product(std::string_view packed, std::span<const float> vector);

}  // namespace tilepilot::retrieval
