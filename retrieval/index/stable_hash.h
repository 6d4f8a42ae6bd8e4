// Hashes that are the same on every machine and in every version, unlike std::hash: they are stored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tilepilot::retrieval {

// FNV-1a with a final mix.
uint64_t stable_hash(std::string_view text);

// 128 bits in hexadecimal: of two FNV-1a runs with different starts.
std::string stable_digest(std::string_view text);
// Of several texts, each with its own end.
std::string stable_digest(std::initializer_list<std::string_view> texts);

}  // namespace tilepilot::retrieval
