// Element types of tiles and tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilepilot::ir {

enum class TypeCode : uint8_t {
  boolean,
  signed_int,
  unsigned_int,
  floating,
  bfloat,
  // 8 bits (OCP 8-bit floating point specification, revision 1.0). Conversions to them saturate.
  float_e4m3,  // no infinity, largest 448
  float_e5m2,
  float_e8m0,  // a power of two, no sign, no zero
};

struct DType {
  TypeCode code = TypeCode::floating;
  uint8_t bits = 32;

  int bytes() const { return (bits + 7) / 8; }
  bool is_bool() const { return code == TypeCode::boolean; }
  bool is_float() const { return code >= TypeCode::floating; }
  bool is_int() const { return code == TypeCode::signed_int || code == TypeCode::unsigned_int; }
  friend bool operator==(const DType&, const DType&) = default;
};

inline constexpr DType kBool{TypeCode::boolean, 8};
inline constexpr DType kInt8{TypeCode::signed_int, 8}, kInt16{TypeCode::signed_int, 16},
    kInt32{TypeCode::signed_int, 32}, kInt64{TypeCode::signed_int, 64};
inline constexpr DType kUInt8{TypeCode::unsigned_int, 8}, kUInt16{TypeCode::unsigned_int, 16},
    kUInt32{TypeCode::unsigned_int, 32}, kUInt64{TypeCode::unsigned_int, 64};
inline constexpr DType kFloat16{TypeCode::floating, 16}, kFloat32{TypeCode::floating, 32},
    kFloat64{TypeCode::floating, 64};
inline constexpr DType kBFloat16{TypeCode::bfloat, 16};
inline constexpr DType kFloat8E4M3{TypeCode::float_e4m3, 8}, kFloat8E5M2{TypeCode::float_e5m2, 8},
    kFloat8E8M0{TypeCode::float_e8m0, 8};

// The canonical name: "float16", "bfloat16", "int32", "bool".
std::string to_string(DType type);
// Accepts canonical names and TileLang's aliases ("float" = float32, "half", "int" = int32, ...).
std::optional<DType> parse_dtype(std::string_view name);
// The type of `a op b` (reference/tilelang.md section 1.9).
DType promote(DType a, DType b);

}  // namespace tilepilot::ir
