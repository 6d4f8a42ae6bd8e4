#include "compiler/ir/dtype.h"

#include <gtest/gtest.h>

#include <array>

namespace tilepilot::ir {
namespace {

constexpr std::array kAll{kBool,   kInt8,   kInt16,   kInt32,   kInt64,   kUInt8,   kUInt16,
                          kUInt32, kUInt64, kFloat16, kFloat32, kFloat64, kBFloat16};

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

TEST(DTypeTest, PromotionOfTheReference) {
  EXPECT_EQ(promote(kFloat16, kFloat32), kFloat32);
  EXPECT_EQ(promote(kInt64, kFloat16), kFloat16);
  EXPECT_EQ(promote(kBFloat16, kFloat16), kFloat16);
  EXPECT_EQ(promote(kBFloat16, kFloat32), kFloat32);
  EXPECT_EQ(promote(kBFloat16, kInt32), kBFloat16);
  EXPECT_EQ(promote(kInt8, kInt32), kInt32);
  EXPECT_EQ(promote(kInt32, kUInt32), kUInt32);
  EXPECT_EQ(promote(kInt64, kUInt32), kInt64);
  EXPECT_EQ(promote(kBool, kInt8), kInt8);
  EXPECT_EQ(promote(kBool, kBool), kBool);
}

TEST(DTypeTest, PromotionIsSymmetricAndGivesOneOfBoth) {
  for (const DType a : kAll) {
    EXPECT_EQ(promote(a, a), a);
    for (const DType b : kAll) {
      const DType result = promote(a, b);
      EXPECT_EQ(result, promote(b, a));
      EXPECT_TRUE(result == a || result == b);
    }
  }
}

}  // namespace
}  // namespace tilepilot::ir
