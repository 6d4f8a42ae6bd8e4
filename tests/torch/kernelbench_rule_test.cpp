// KernelBench's rule, as its script has it.
#include "eval/worker/judge/kernelbench_rule.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

namespace tilepilot::eval {
namespace {

// torch.manual_seed(42); [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(5)]
TEST(KernelBenchRule, DrawsTheSeedsOfItsScript) {
  EXPECT_THAT(kernelbench_seeds(5), ::testing::ElementsAre(734796314, 576165995, 2197670066, 839703249, 2584932063));
}

TEST(KernelBenchRule, KnowsHowLongItDraws) {
  EXPECT_EQ(seconds_to_draw(1000), 0);
  const double many = seconds_to_draw(int64_t{1} << 32);
  EXPECT_GT(many, 2);  // of no processor are they as fast as that
  EXPECT_LT(many, 1e5);
}

TEST(KernelBenchRule, IsAllclose) {
  auto expected = at::linspace(-2, 2, 1001);
  EXPECT_TRUE(all_close(expected.add(9e-5), expected, tolerance_of_kernelbench(at::kFloat)));
  EXPECT_FALSE(all_close(expected.add(1e-3), expected, tolerance_of_kernelbench(at::kFloat)));
  EXPECT_TRUE(all_close(expected.add(1e-3), expected, tolerance_of_kernelbench(at::kHalf)));
  auto broken = expected.clone();
  broken[3] = std::nan("");
  EXPECT_FALSE(all_close(broken, broken, 1e-2));
}

}  // namespace
}  // namespace tilepilot::eval
