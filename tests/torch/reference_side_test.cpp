// What the judge keeps of a model.
#include "eval/worker/reference_side.h"

#include <gmock/gmock.h>

#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<ReferenceSide> side_with(const ReferenceOptions& options) {
  auto reference = load_reference(testing::exported("tests/torch/models/scale_rows.py"));
  EXPECT_TRUE(reference.ok());
  auto side = ReferenceSide::make(*std::move(reference), options);
  EXPECT_TRUE(side.ok());
  return side.ok() ? *std::move(side) : nullptr;
}

TEST(ReferenceSide, MakesFewerTrialsOfWhatMemoryHoldsNotFiveTimes) {
  const auto all = side_with({}), some = side_with({.memory_bytes = 1});
  EXPECT_EQ(all->trials().size(), 5u);
  EXPECT_THAT(all->notes(), Not(Contains(HasSubstr("trials instead of"))));
  ASSERT_EQ(some->trials().size(), 2u);
  EXPECT_THAT(some->notes(), Contains(HasSubstr("2 trials instead of 5")));
  EXPECT_NE(some->trials()[0].weights, some->trials()[1].weights);
}

}  // namespace
}  // namespace tilepilot::eval
