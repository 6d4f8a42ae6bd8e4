// Many numbers divided by one: as exact as any division, whatever the numbers are.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRows = 48, kLength = 512;

std::string quotient_program(const std::string& body) {
  return R"(program divided(x: float32[48, 512], s: float32[48], y: float32[48, 512]) {
  kernel bx in 48 threads 32 {
    fragment row: float32[512]
    fragment divisor: float32[1]
    copy x[bx, 0 : 512] -> row
    copy s[bx : +1] -> divisor
    parallel i in 512 {
      )" +
         body +
         R"(
    }
    copy row -> y[bx, 0 : 512]
  }
})";
}

std::string source_of(const std::string& text) {
  auto code = targets::cuda::generate(parse(text), Architecture::sm_80);
  return code.ok() ? code->source : code.error().message;
}

TEST(EmulatedDivision, ByOneNumberIsExact) {
  EmulatedBatch batch(Architecture::sm_80);
  ASSERT_TRUE(batch.add(parse(quotient_program("row[i] = row[i] / divisor[0]"))).ok());
  EXPECT_THAT(batch.source(0), HasSubstr("reciprocal_quotient("));
  batch.compile(true);
  std::mt19937 random(3);
  const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  const auto ordinary = [&] {
    return std::bit_cast<float>(static_cast<uint32_t>((random() & 0x807fffffu) | (120 + random() % 16) << 23));
  };
  const std::vector<float> edges{0.0f,      -0.0f,           INFINITY,  -INFINITY,  NAN,      0x1p-149f,
                                 0x1p-126f, 0x1.8p-101f,     0x1p-100f, -0x1p-100f, 0x1p100f, 0x1p101f,
                                 1.0f,      0x1.fffffep127f, -1.0f,     3.0f};
  Array x(ir::kFloat32, {kRows, kLength}), s(ir::kFloat32, {kRows}), y(ir::kFloat32, {kRows, kLength});
  for (int64_t row = 0; row < kRows; ++row) {
    // Ordinary rows; those with one number at an edge; arbitrary bits. Divisors likewise.
    s.as<float>()[row] = row < 24 ? std::fabs(ordinary()) : row < 40 ? edges[size_t(row - 24)] : any();
    for (int64_t i = 0; i < kLength; ++i) x.as<float>()[row * kLength + i] = row % 3 == 2 ? any() : ordinary();
    if (row % 3 == 1) x.as<float>()[row * kLength + row * 7] = edges[size_t(row) % edges.size()];
  }
  EXPECT_EQ(batch.run(0, {x.view(), s.view(), y.view()}), "") << batch.source(0);
  for (int64_t k = 0; k < kRows * kLength; ++k) {
    const float dividend = x.as<float>()[k], divisor = s.as<float>()[k / kLength], got = y.as<float>()[k];
    const float wanted = dividend / divisor;
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << dividend << " / " << divisor;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(wanted)) << dividend << " / " << divisor;
    }
  }
}

TEST(EmulatedDivision, OfWhatTheLoopDoesNotShareIsPlain) {
  for (const char* body : {"row[i] = divisor[0] / row[i]", "row[i] = row[i] / 4.0"})
    EXPECT_THAT(source_of(quotient_program(body)), Not(HasSubstr("reciprocal_quotient("))) << body;
  EXPECT_THAT(source_of(quotient_program("row[i] = exp(row[i] / divisor[0]) / divisor[0]")),
              HasSubstr("reciprocal_quotient("));
}

}  // namespace
}  // namespace tilepilot::testing
