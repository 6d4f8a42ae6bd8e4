// Masks: a tile for whose elements a comparison is decided alike costs one comparison, and values are the same.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

std::string masked(const std::string& condition, const std::string& then, const std::string& otherwise) {
  return fmt::format(R"(program masks(n: int32[4], a: float32[64, 48], o: float32[4, 3, 64, 48]) {{
  kernel bx in 4 threads 128 {{
    fragment s: float32[64, 48]
    serial t in 3 {{
      copy a -> s
      parallel i, j in 64, 48 {{
        s[i, j] = select({}, {}, {})
      }}
      copy s -> o[bx, t, 0 : 64, 0 : 48]
    }}
  }}
}})",
                     condition, then, otherwise);
}

struct Mask {
  std::string condition, then, otherwise;
  std::string once;  // what is tested for the whole tile; "": nothing
};

TEST(UniformChoices, AreTestedOnceATile) {
  const std::vector<Mask> all{
      {"bx * 64 + i >= t * 48 + j", "s[i, j]", "-inf", "if (bx * 64 >= t * 48 + 47) {"},
      {"t * 48 + j > bx * 64 + i", "-inf", "s[i, j]", "if (t * 48 + 47 <= bx * 64) {"},
      {"bx * 64 - i < t * 48 + j * 2", "1.0", "2.0", "if (bx * 64 < t * 48) {"},
      {"j <= bx * 20 and i + t * 40 < 100", "s[i, j]", "0.0", "if (bx * 20 >= 47 && t < 1) {"},
      {"i >= j", "s[i, j]", "0.0", ""},                     // nothing that differs between tiles
      {"bx * 64 + i * j >= t * 48", "s[i, j]", "0.0", ""},  // does not grow evenly
      {"n[bx] + i >= t * 48 + j", "s[i, j]", "0.0", ""},    // read from memory
      // The second block's sums end beyond the numbers of 32 bits, where they begin anew.
      {"bx * 2147483640 + i >= t * 48 + j", "s[i, j]", "0.0", ""},
      {"t * 48 + j < bx * 2147483640 + i", "s[i, j]", "0.0", ""},
      {"bx * 700000000 + i >= t * 48 + j", "s[i, j]", "0.0", "if (bx * 700000000 >= t * 48 + 47) {"},
  };
  for (const Mask& mask : all) {
    const std::string source = expect_interpreted(masked(mask.condition, mask.then, mask.otherwise));
    if (mask.once.empty()) {
      EXPECT_THAT(source, ::testing::Not(::testing::HasSubstr("} else {"))) << source;
    } else {
      EXPECT_THAT(source, ::testing::HasSubstr(mask.once)) << source;
    }
  }
}

}  // namespace
}  // namespace tilepilot::testing
