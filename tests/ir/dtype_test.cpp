#include "compiler/ir/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <vector>

namespace tilepilot::ir {
namespace {

constexpr std::array kAll{kBool,       kInt4,    kInt8,     kInt16,         kInt32,      kInt64,      kUInt4,
                          kUInt8,      kUInt16,  kUInt32,   kUInt64,        kFloat4E2M1, kFloat8E4M3, kFloat8E5M2,
                          kFloat8E8M0, kFloat16, kBFloat16, kTensorFloat32, kFloat32,    kFloat64};

TEST(DTypeTest, CanonicalNamesReadBack) {
  for (const DType type : kAll) EXPECT_EQ(parse_dtype(to_string(type)), type) << to_string(type);
}

TEST(DTypeTest, Aliases) {
  EXPECT_EQ(parse_dtype("float"), kFloat32);
  EXPECT_EQ(parse_dtype("half"), kFloat16);
  EXPECT_EQ(parse_dtype("double"), kFloat64);
  EXPECT_EQ(parse_dtype("int"), kInt32);
  EXPECT_EQ(parse_dtype("long"), kInt64);
  EXPECT_EQ(parse_dtype("uint"), kUInt32);
  EXPECT_EQ(parse_dtype("quadruple"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

// Row by row the type of each with each, in the order of `kAll`; `-` where there is none.
constexpr const char* kNames = "bool i4 i8 i16 i32 i64 u4 u8 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64";
constexpr std::array kPromotions{
    "bool i4 i8 i16 i32 i64 u4 u8 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "i4 i4 i8 i16 i32 i64 u4 u8 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "i8 i8 i8 i16 i32 i64 i8 u8 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "i16 i16 i16 i16 i32 i64 i16 i16 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "i32 i32 i32 i32 i32 i64 i32 i32 i32 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "u4 u4 i8 i16 i32 i64 u4 u8 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "u8 u8 u8 i16 i32 i64 u8 u8 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "u16 u16 u16 u16 i32 i64 u16 u16 u16 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "u32 u32 u32 u32 u32 i64 u32 u32 u32 u32 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 e4m3 e5m2 e8m0 f16 bf16 tf32 f32 f64",
    "e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 - - f16 bf16 tf32 f32 f64",
    "e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 - e5m2 - f16 bf16 tf32 f32 f64",
    "e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 e8m0 - - e8m0 f16 bf16 tf32 f32 f64",
    "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 tf32 f32 f64",
    "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f16 bf16 tf32 f32 f64",
    "tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 f32 f64",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64",
};

std::vector<std::string> words(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(DTypeTest, EveryPairIsPromotedAsTheReferenceSays) {
  const std::vector<std::string> names = words(kNames);
  ASSERT_EQ(names.size(), kAll.size());
  ASSERT_EQ(kPromotions.size(), kAll.size());
  for (size_t row = 0; row < kAll.size(); ++row) {
    const std::vector<std::string> expected = words(kPromotions[row]);
    ASSERT_EQ(expected.size(), kAll.size());
    for (size_t column = 0; column < kAll.size(); ++column) {
      const DType a = kAll[row], b = kAll[column];
      EXPECT_EQ(has_common_type(a, b), expected[column] != "-") << to_string(a) << ", " << to_string(b);
      if (!has_common_type(a, b)) continue;
      const auto found = std::find(kAll.begin(), kAll.end(), promote(a, b)) - kAll.begin();
      EXPECT_EQ(names[size_t(found)], expected[column]) << to_string(a) << ", " << to_string(b);
    }
  }
}

}  // namespace
}  // namespace tilepilot::ir
