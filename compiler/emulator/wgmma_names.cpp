#include "compiler/emulator/wgmma_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

namespace tilepilot::emulator {
namespace {

constexpr std::string_view kPrefix = "wgmma_m64n", kDefinition = "TP_INLINE void wgmma_m64n";

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The type of an element in generated code; PTX's name otherwise.
std::string_view element_type(std::string_view ptx) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"f16", "float16"},      {"bf16", "bfloat16"},    {"tf32", "tfloat32"}, {"f32", "float"}, {"s32", "int32_t"},
      {"e4m3", "float8_e4m3"}, {"e5m2", "float8_e5m2"}, {"s8", "int8_t"},     {"u8", "uint8_t"}};
  for (const auto& [name, type] : kTypes)
    if (name == ptx) return type;
  return {};
}

struct Name {
  int n = 0, k = 0;
  std::vector<std::string_view> parts;  // three types, then what is special
  bool has(std::string_view part) const { return std::find(parts.begin() + 3, parts.end(), part) != parts.end(); }
};

std::optional<Name> parsed(std::string_view name) {
  Name found;
  const char* const end = name.data() + name.size();
  const auto [after_n, no_n] = std::from_chars(name.data() + kPrefix.size(), end, found.n);
  if (no_n != std::errc() || after_n == end || *after_n != 'k') return std::nullopt;
  const auto [after_k, no_k] = std::from_chars(after_n + 1, end, found.k);
  if (no_k != std::errc()) return std::nullopt;
  std::string_view rest(after_k, static_cast<size_t>(end - after_k));
  while (!rest.empty() && rest.front() == '_') {
    rest.remove_prefix(1);
    found.parts.push_back(rest.substr(0, rest.find('_')));
    rest.remove_prefix(found.parts.back().size());
  }
  if (found.parts.size() < 3) return std::nullopt;
  for (size_t k = 0; k < 3; ++k)
    if (element_type(found.parts[k]).empty()) return std::nullopt;
  return found;
}

std::string definition(std::string_view name, const Name& shape) {
  const bool in_registers = shape.has("ra");
  const auto number = [&](size_t k, int shift) {
    return fmt::format("emulated::operand_of<{}>::number << {}", element_type(shape.parts[k]), shift);
  };
  const std::string made = fmt::format("{{{}, {}, {} | {} | {}, {}, {}, {}}}", shape.n, shape.k, number(0, 0),
                                       number(1, 4), number(2, 8), in_registers, shape.has("ta"), shape.has("tb"));
  if (in_registers) {
    return fmt::format(
        "template <class C, class A>\nTP_INLINE void {0}(C&& c, A&& a, uint64_t b, bool accumulate) {{\n"
        "  emulated::wgmma_of_registers<16>({1}, emulated::address_of(c), emulated::address_of(a), b, "
        "accumulate);\n}}\n",
        name, made);
  }
  return fmt::format(
      "template <class C>\nTP_INLINE void {0}(C&& c, uint64_t a, uint64_t b, bool accumulate) {{\n"
      "  emulated::wgmma({1}, emulated::address_of(c), a, b, accumulate);\n}}\n",
      name, made);
}

}  // namespace

std::string without_wgmma(const std::string& source) {
  std::string rest;
  size_t at = 0;
  for (size_t found = 0; (found = source.find(kDefinition, at)) != std::string::npos;) {
    const size_t end = source.find("\n}\n", found);
    rest += source.substr(at, found - at);
    if (end == std::string::npos) return rest;
    at = end + 3;
  }
  return rest + source.substr(at);
}

std::string wgmma_functions(const std::string& source) {
  std::set<std::string_view> names;
  for (size_t at = 0; (at = source.find(kPrefix, at)) != std::string::npos;) {
    size_t end = at;
    while (end < source.size() && is_name_part(source[end])) ++end;
    if (at == 0 || !is_name_part(source[at - 1])) names.insert(std::string_view(source).substr(at, end - at));
    at = end;
  }
  std::string text;
  for (const std::string_view name : names)
    if (const auto shape = parsed(name)) text += definition(name, *shape);
  return text;
}

}  // namespace tilepilot::emulator
