// The calls that no trial prescribes.
#include "eval/worker/judge/call_source.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

double share_of_equals(const at::Tensor& a, const at::Tensor& b) {
  return a.eq(b).to(at::kDouble).mean().item<double>();
}

// A program that keeps the answer to its last call alone meets traps that are like that call, also where a batch has
// one call, as of large inputs and on a busy machine.
TEST(CallSource, LikensTrapsToTheLastCall) {
  constexpr int kBatches = 400;
  auto reference = load_reference(testing::exported("tests/torch/models/scale_rows.py"));
  ASSERT_TRUE(reference.ok());
  auto side = ReferenceSide::make(*std::move(reference), {});
  ASSERT_TRUE(side.ok());
  CallSource source(**side, **(*side)->trial(0));
  at::Tensor last;
  int traps = 0, like_the_last = 0;
  for (int i = 0; i < kBatches; ++i) {
    const auto planned = source.next(1, 0);
    ASSERT_TRUE(planned.ok());
    const at::Tensor input = source.leaves_of(planned->batch, planned->batch.calls[0])[0].toTensor();
    if (planned->traps[0]) {
      ++traps;
      EXPECT_LT(share_of_equals(input, last), 1) << i;
      like_the_last += share_of_equals(input, last) > 0.4 ? 1 : 0;
    }
    last = input.clone();
  }
  EXPECT_GE(traps, kBatches / 8);
  EXPECT_GE(like_the_last, traps / 4);
}

}  // namespace
}  // namespace tilepilot::eval
