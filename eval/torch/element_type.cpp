#include "eval/torch/element_type.h"

#include <array>
#include <utility>

namespace tilepilot::eval {
namespace {

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 14> kNames = {{
    {"float64", at::kDouble},
    {"float32", at::kFloat},
    {"float16", at::kHalf},
    {"bfloat16", at::kBFloat16},
    {"int64", at::kLong},
    {"int32", at::kInt},
    {"int16", at::kShort},
    {"int8", at::kChar},
    {"uint8", at::kByte},
    {"uint16", at::kUInt16},
    {"uint32", at::kUInt32},
    {"uint64", at::kUInt64},
    {"bool", at::kBool},
    {"complex64", at::kComplexFloat},
}};

}  // namespace

std::optional<at::ScalarType> parse_element_type(std::string_view name) {
  for (auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::string element_type_name(at::ScalarType type) {
  for (auto& [name, known] : kNames) {
    if (known == type) return std::string(name);
  }
  return c10::toString(type);
}

std::optional<at::ScalarType> type_of_option(std::string_view option) {
  if (option == "fp32") return at::kFloat;
  if (option == "fp16") return at::kHalf;
  if (option == "bf16") return at::kBFloat16;
  return std::nullopt;
}

}  // namespace tilepilot::eval
