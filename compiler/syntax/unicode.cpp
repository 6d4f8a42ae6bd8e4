#include "compiler/syntax/unicode.h"

#include <algorithm>
#include <array>

namespace tilepilot::syntax {
namespace {

struct Range {
  uint32_t first, last;
};

// Blocks beyond ASCII without letters, in order.
constexpr std::array<Range, 20> kNotLetters{{{0x80, 0xA9},     {0xAB, 0xB4},     {0xB6, 0xB6},     {0xB8, 0xB9},
                                             {0xBB, 0xBF},     {0xD7, 0xD7},     {0xF7, 0xF7},     {0x2000, 0x203E},
                                             {0x2041, 0x2053}, {0x2055, 0x2070}, {0x2072, 0x207E}, {0x2080, 0x208F},
                                             {0x20A0, 0x20CF}, {0x2190, 0x2BFF}, {0x3000, 0x3004}, {0x3008, 0x3020},
                                             {0xD800, 0xF8FF}, {0xFE10, 0xFE1F}, {0xFEFF, 0xFF0F}, {0x1F000, 0x1FAFF}}};

bool continues(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

// The length of the well-formed sequence at `at`, or 0.
size_t sequence_length(std::string_view text, size_t at) {
  auto lead = static_cast<unsigned char>(text[at]);
  auto second = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(text, at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    bool overlong = lead == 0xE0 && second < 0xA0;
    bool surrogate = lead == 0xED && second >= 0xA0;
    return continues(text, at + 1) && continues(text, at + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead < 0xF0 || lead > 0xF4) return 0;
  bool outside = (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
  bool complete = continues(text, at + 1) && continues(text, at + 2) && continues(text, at + 3);
  return complete && !outside ? 4 : 0;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

CodePoint code_point_at(std::string_view text, size_t offset) {
  auto lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80) return {lead, 1};
  uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  uint32_t value = lead & (0x7FU >> length);
  for (uint32_t i = 1; i < length; ++i) value = value << 6U | (static_cast<unsigned char>(text[offset + i]) & 0x3FU);
  return {value, length};
}

void append_utf8(std::string& out, uint32_t code_point) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  auto tail = [&](uint32_t shift) { put(0x80U | (code_point >> shift & 0x3FU)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0U | code_point >> 6U);
    return tail(0);
  }
  if (code_point < 0x10000) {
    put(0xE0U | code_point >> 12U);
    tail(6);
    return tail(0);
  }
  put(0xF0U | code_point >> 18U);
  tail(12);
  tail(6);
  tail(0);
}

bool is_letter(uint32_t code_point) {
  auto range = std::lower_bound(kNotLetters.begin(), kNotLetters.end(), code_point,
                                [](Range r, uint32_t value) { return r.last < value; });
  return range == kNotLetters.end() || code_point < range->first;
}

}  // namespace tilepilot::syntax
