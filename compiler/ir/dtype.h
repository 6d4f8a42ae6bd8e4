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
  // 4 bits (OCP microscaling formats specification, revision 1.0): no infinity, no NaN, largest 6. Saturates; NaN
  // becomes the largest number.
  float_e2m1,
  // 32 bits in memory, of which the significand's last 13 mean nothing. Conversions round them off, ties away from
  // zero.
  tensor_float,
};

struct DType {
  TypeCode code = TypeCode::floating;
  uint8_t bits = 32;

  // Of one element that stands alone; in memory that others see two elements of 4 bits share a byte.
  int bytes() const { return (bits + 7) / 8; }
  bool is_bool() const { return code == TypeCode::boolean; }
  bool is_float() const { return code >= TypeCode::floating; }
  bool is_int() const { return code == TypeCode::signed_int || code == TypeCode::unsigned_int; }
  // Its numbers are float32's, but not all of them: computed in float32 and rounded.
  bool is_small_float() const { return is_float() && (bits < 32 || code == TypeCode::tensor_float); }
  // Two elements a byte, the first one in the lower half. Rows of tensors have an even number of elements.
  bool is_nibble() const { return bits == 4; }
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
inline constexpr DType kInt4{TypeCode::signed_int, 4}, kUInt4{TypeCode::unsigned_int, 4},
    kFloat4E2M1{TypeCode::float_e2m1, 4};
inline constexpr DType kTensorFloat32{TypeCode::tensor_float, 32};

// The canonical name: "float16", "bfloat16", "int32", "bool".
std::string to_string(DType type);
// Accepts canonical names and TileLang's aliases ("float" = float32, "half", "int" = int32, ...).
std::optional<DType> parse_dtype(std::string_view name);
// The type of `a op b`: of two floats the wider, and float16 or float32 rather than another of their width; a float
// rather than an integer; of two integers the wider, and the unsigned one of a width. Two different floats of 8 bits,
// or of 4, have none: then one of them.
DType promote(DType a, DType b);
bool has_common_type(DType a, DType b);

}  // namespace tilepilot::ir
