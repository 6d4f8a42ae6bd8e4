// Which of ATen's operators each policy lets `forward` call, as the dispatcher sees them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "eval/worker/candidate/aten_policy.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

// What the policy says of `run`; empty: nothing.
template <class Run>
std::string complaint(AtenPolicy policy, const Run& run) {
  stage::StatementMarker place;
  place.file = 0;
  place.offset = 17;
  AtenWatch watch(policy, place);
  run();
  auto status = watch.status();
  if (status.ok()) return "";
  EXPECT_EQ(status.error().kind, DiagnosticKind::forbidden);
  EXPECT_EQ(status.error().span.begin, 17u);
  return status.error().message;
}

TEST(AtenPolicy, ReadsTheNames) {
  EXPECT_EQ(parse_aten_policy("none"), AtenPolicy::none);
  EXPECT_EQ(parse_aten_policy("hybrid"), AtenPolicy::hybrid);
  EXPECT_EQ(parse_aten_policy("all"), std::nullopt);
}

TEST(AtenPolicy, KnowsWhatOperatorsDo) {
  EXPECT_EQ(aten_work("aten::view"), AtenWork::none);
  EXPECT_EQ(aten_work("aten::empty"), AtenWork::none);
  EXPECT_EQ(aten_work("aten::copy_"), AtenWork::moves);
  EXPECT_EQ(aten_work("aten::zeros_like"), AtenWork::moves);
  EXPECT_EQ(aten_work("aten::reshape"), AtenWork::composite);
  EXPECT_EQ(aten_work("aten::addmm"), AtenWork::computes);
  EXPECT_EQ(aten_work("mine::copy_"), AtenWork::computes);
}

TEST(AtenPolicy, NoneAllowsViewsAndFreshMemory) {
  const at::Tensor x = at::ones({4, 6});
  EXPECT_EQ(complaint(AtenPolicy::none, [&] { at::empty_like(x.view({6, 4}).t().unsqueeze(0)); }), "");
  EXPECT_EQ(complaint(AtenPolicy::none, [&] { x.reshape({2, 12}).contiguous(); }), "");
  // The same functions, where they copy.
  EXPECT_THAT(complaint(AtenPolicy::none, [&] { x.t().reshape({24}); }), HasSubstr("moves data"));
  EXPECT_THAT(complaint(AtenPolicy::none, [&] { x.t().contiguous(); }), HasSubstr("`aten::clone`, which moves data"));
  EXPECT_THAT(complaint(AtenPolicy::none, [&] { x.to(at::kDouble); }), HasSubstr("`aten::_to_copy`"));
}

TEST(AtenPolicy, DataAllowsWhatMovesData) {
  const at::Tensor x = at::ones({4, 6});
  EXPECT_EQ(complaint(AtenPolicy::data,
                      [&] {
                        at::cat({x, x.to(at::kHalf).to(at::kFloat)}).t().contiguous();
                        at::zeros({4, 6}).copy_(x).index_select(0, at::zeros({2}, at::kLong));
                        at::constant_pad_nd(x, {1, 1}).flip({0}).clone().fill_(2);
                      }),
            "");
  EXPECT_THAT(complaint(AtenPolicy::data, [&] { x.add(1); }), HasSubstr("`aten::add`, which computes"));
  EXPECT_THAT(complaint(AtenPolicy::data, [&] { at::linear(x, x); }), HasSubstr("`aten::linear`"));
  EXPECT_THAT(complaint(AtenPolicy::data, [&] { x.clone().mul_(2); }), HasSubstr("`aten::mul_`"));
  EXPECT_THAT(complaint(AtenPolicy::data, [&] { at::rand({3}); }), HasSubstr("`aten::rand`"));
}

TEST(AtenPolicy, TellsSumsFromMoves) {
  const at::Tensor at = at::zeros({3}, at::kLong), values = at::ones({3});
  EXPECT_EQ(complaint(AtenPolicy::data, [&] { at::zeros({3}).index_put_({at}, values); }), "");
  EXPECT_EQ(complaint(AtenPolicy::data, [&] { at::zeros({3}).scatter_(0, at, values); }), "");
  EXPECT_NE(complaint(AtenPolicy::data, [&] { at::zeros({3}).index_put_({at}, values, true); }), "");
  EXPECT_NE(complaint(AtenPolicy::data, [&] { at::zeros({3}).scatter_(0, at, values, "add"); }), "");
}

TEST(AtenPolicy, HybridAndAnyAllowAll) {
  const at::Tensor x = at::ones({4, 4});
  for (auto policy : {AtenPolicy::hybrid, AtenPolicy::any})
    EXPECT_EQ(complaint(policy, [&] { at::matmul(x, x).softmax(0); }), "");
}

// What one call did is not held against the next.
TEST(AtenPolicy, LooksAtOneCallAtATime) {
  const at::Tensor x = at::ones({4});
  EXPECT_NE(complaint(AtenPolicy::data, [&] { x.sin(); }), "");
  EXPECT_EQ(complaint(AtenPolicy::data, [&] { x.clone(); }), "");
  EXPECT_NE(complaint(AtenPolicy::data, [&] { x.sin(); }), "");
}

}  // namespace
}  // namespace tilepilot::eval
