// Registers that a program may read before it writes them hold numbers that show; others are left as they are.
#include <gmock/gmock.h>

#include "compiler/targets/cuda/codegen.h"
#include "tests/cpu/kernel_fixture.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

std::string sums_of_products(const std::string& before) {
  return R"(program product(x: float16[64, 64], y: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a: float16[64, 64]
    fragment c: float32[64, 64]
    fragment r: float32[64]
    copy x[0 : 64, 0 : 64] -> a
    )" + before +
         R"(
    gemm c += a @ a
    reduce sum c -> r axis 1
    copy c -> y[0 : 64, 0 : 64]
    parallel i in 64 { y[i, 0] = r[i] }
  }
})";
}

TEST(UnwrittenRegisters, ArePoisonedWhereAProgramReadsThem) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    const auto cleared = targets::cuda::generate(parse(sums_of_products("fill c = 0.0")), architecture);
    const auto not_cleared = targets::cuda::generate(parse(sums_of_products("")), architecture);
    ASSERT_TRUE(cleared.ok() && not_cleared.ok());
    EXPECT_THAT(cleared->source, Not(HasSubstr("poison(")));
    EXPECT_THAT(not_cleared->source, HasSubstr("poison(c);"));
    EXPECT_THAT(not_cleared->source, Not(HasSubstr("poison(r);")));
  }
}

}  // namespace
}  // namespace tilepilot::testing
