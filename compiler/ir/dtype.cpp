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
    NamedType{"int4", kInt4},
    NamedType{"uint4", kUInt4},
    NamedType{"float4_e2m1fn", kFloat4E2M1},
    NamedType{"tfloat32", kTensorFloat32},
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
  const bool standard_a = a.code == TypeCode::floating, standard_b = b.code == TypeCode::floating;
  if (a.code == TypeCode::bfloat && standard_b) return b;
  if (b.code == TypeCode::bfloat && standard_a) return a;
  if (a.bits != b.bits) return a.bits > b.bits ? a : b;
  if (standard_a != standard_b) return standard_a ? a : b;
  return a.code < b.code ? a : b;
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

bool has_common_type(DType a, DType b) {
  return a.code == b.code || !a.is_float() || !b.is_float() || a.bits != b.bits || a.bits > 8;
}

}  // namespace tilepilot::ir
