#include "compiler/export/c_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/targets/c/names.h"

namespace tilepilot::exporting {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_identifier(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && !targets::c::is_reserved(name) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::string identifier_part_of(std::string_view name) {
  std::string result;
  for (const char c : name) result += is_letter(c) || is_digit(c) ? c : '_';
  return result;
}

std::string identifier_of(std::string_view name) {
  std::string result = identifier_part_of(name);
  if (result.empty() || is_digit(result[0])) result.insert(0, "_");
  // Names that begin so belong to the compiler, or to the code around the kernels.
  if (result.starts_with("_") || result == "tp" || result.starts_with("tp_")) result.insert(0, "x");
  return targets::c::is_reserved(result) ? result + "_" : result;
}

std::string upper_case(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

std::set<std::string> names_around() {
  return {"workspace", "stream",  "status",  "failed",  "on_device", "HostBuffer", "DeviceBuffer", "Type",    "int8_t",
          "int16_t",   "int32_t", "int64_t", "uint8_t", "uint16_t",  "uint32_t",   "uint64_t",     "exported"};
}

std::string UniqueNames::of(std::string_view wish, std::string_view with) {
  std::string name(wish);
  const auto is_taken = [&](const std::string& one) { return taken_.contains(one); };
  for (int number = 2; is_taken(name) || is_taken(name + std::string(with)); ++number)
    name = fmt::format("{}_{}", wish, number);
  taken_.insert({name, name + std::string(with)});
  return name;
}

std::string element_type(ir::DType type) {
  if (type == ir::kFloat32 || type == ir::kTensorFloat32) return "float";
  if (type == ir::kFloat64) return "double";
  if (type == ir::kFloat16 || type == ir::kBFloat16) return "uint16_t";
  if (type.is_bool() || type.is_float() || type.is_nibble()) return "uint8_t";
  return fmt::format("{}int{}_t", type.code == ir::TypeCode::unsigned_int ? "u" : "", int{type.bits});
}

std::string number_type(ir::DType type) {
  if (type.is_bool()) return "int";
  if (type.is_float()) return type == ir::kFloat64 ? "double" : "float";
  return fmt::format("{}int{}_t", type.code == ir::TypeCode::unsigned_int ? "u" : "", std::max<int>(8, type.bits));
}

}  // namespace tilepilot::exporting
