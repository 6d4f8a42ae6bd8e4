#include "compiler/ir/dtype.h"

#include <algorithm>
#include <array>

namespace tilepilot::ir {
namespace {

struct NamedType {
  std::string_view name;
  DType type;
};

// The first row of a type has its canonical name, the others are aliases.
constexpr std::array kNames{
    NamedType{"bool", kBool},
    NamedType{"int8", kInt8},
    NamedType{"int16", kInt16},
    NamedType{"int32", kInt32},
    NamedType{"int64", kInt64},
    NamedType{"uint8", kUInt8},
    NamedType{"uint16", kUInt16},
    NamedType{"uint32", kUInt32},
    NamedType{"uint64", kUInt64},
    NamedType{"float16", kFloat16},
    NamedType{"float32", kFloat32},
    NamedType{"float64", kFloat64},
    NamedType{"bfloat16", kBFloat16},
    NamedType{"float8_e4m3fn", kFloat8E4M3},
    NamedType{"float8_e5m2", kFloat8E5M2},
    NamedType{"float8_e8m0fnu", kFloat8E8M0},
    // aliases
    NamedType{"float", kFloat32},
    NamedType{"half", kFloat16},
    NamedType{"double", kFloat64},
    NamedType{"char", kInt8},
    NamedType{"short", kInt16},
    NamedType{"int", kInt32},
    NamedType{"long", kInt64},
    NamedType{"uchar", kUInt8},
    NamedType{"ushort", kUInt16},
    NamedType{"uint", kUInt32},
    NamedType{"ulong", kUInt64},
    NamedType{"float8_e4m3", kFloat8E4M3},
};

DType promote_floats(DType a, DType b) {
  if (a.bits == 8 || b.bits == 8) return a.bits >= b.bits ? a : b;
  if (a.code != b.code) return a.code == TypeCode::floating ? a : b;
  return a.bits >= b.bits ? a : b;
}

DType promote_ints(DType a, DType b) {
  if (a.bits != b.bits) return a.bits > b.bits ? a : b;
  return a.code == TypeCode::unsigned_int ? a : b;
}

}  // namespace

std::string to_string(DType type) {
  const auto* row = std::find_if(kNames.begin(), kNames.end(), [&](const NamedType& n) { return n.type == type; });
  return row == kNames.end() ? "unknown" + std::to_string(type.bits) : std::string(row->name);
}

std::optional<DType> parse_dtype(std::string_view name) {
  const auto* row = std::find_if(kNames.begin(), kNames.end(), [&](const NamedType& n) { return n.name == name; });
  if (row == kNames.end()) return std::nullopt;
  return row->type;
}

DType promote(DType a, DType b) {
  if (a == b || b.is_bool()) return a;
  if (a.is_bool()) return b;
  if (a.is_float() && b.is_float()) return promote_floats(a, b);
  if (a.is_float()) return a;
  if (b.is_float()) return b;
  return promote_ints(a, b);
}

}  // namespace tilepilot::ir
