// Which tensors of a candidate are which weights, on tensors alone.
#include "eval/worker/candidate/weight_match.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <chrono>

namespace tilepilot::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = HeldTensor::Kind;

at::Tensor drawn(at::IntArrayRef sizes, uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(sizes);
}

HeldTensor held(const std::string& name, const at::Tensor& tensor, Kind kind = Kind::parameter) {
  return {name, tensor.clone(), kind};
}

ModelWeight weight(const std::string& name, const at::Tensor& tensor, bool is_buffer = false) {
  return {name, tensor, is_buffer, name};
}

struct Match {
  std::vector<std::string> pairs;  // "a is b"
  std::string mismatch, lacking;
};

Match match(const std::vector<HeldTensor>& candidate, const std::vector<ModelWeight>& model) {
  WeightMatcher matcher(candidate, model);
  matcher.match_all_names();
  matcher.match_numbers();
  matcher.match_rest();
  Match result{{}, matcher.mismatch(), matcher.lacking()};
  for (auto& pair : matcher.pairs())
    result.pairs.push_back(candidate[pair.held].name + " is " + model[pair.weight].name);
  return result;
}

TEST(NumberIndex, LooksThroughFormsAndTypes) {
  auto a = drawn({4, 6}, 1), b = drawn({24}, 2), c = drawn({24}, 3);
  auto twin = a.reshape({24}).clone(), last = twin.clone();
  last[23] = 0;  // only here
  const NumberIndex index({a, b.to(at::kHalf), c, at::Tensor(), twin, at::arange(24)});
  EXPECT_THAT(index.with_numbers_of(a.t().contiguous().t()), ElementsAre(0, 4));
  EXPECT_THAT(index.with_numbers_of(last), IsEmpty());
  EXPECT_THAT(index.with_numbers_of(b), ElementsAre(1));
  EXPECT_THAT(index.with_numbers_of(c.to(at::kHalf)), IsEmpty());
  EXPECT_THAT(index.alike(c.to(at::kHalf)), ElementsAre(2));
  EXPECT_THAT(index.alike(at::arange(24)), ElementsAre(5));
  EXPECT_THAT(index.alike(at::arange(24, at::kInt)), IsEmpty());
}

// Comparing each with each takes a minute.
TEST(NumberIndex, IsQuickWithManyOfOneSize) {
  std::vector<at::Tensor> weights;
  for (int k = 0; k < 2000; ++k) weights.push_back(drawn({64}, static_cast<uint64_t>(k)));
  const auto start = std::chrono::steady_clock::now();
  const NumberIndex index(weights);
  for (size_t k = 0; k < weights.size(); ++k) EXPECT_THAT(index.alike(weights[k]), ElementsAre(k));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(WeightMatch, NamesDecideIfTheyAllAgree) {
  auto a = drawn({8}, 1), b = drawn({8}, 2);
  EXPECT_THAT(match({held("a", b), held("b", a)}, {weight("a", a), weight("b", b)}).pairs,
              ElementsAre("a is a", "b is b"));
}

TEST(WeightMatch, NumbersComeBeforeSomeNames) {
  auto a = drawn({8}, 1), b = drawn({8}, 2);
  auto result = match({held("bias", a), held("more", b)}, {weight("gemm.bias", a), weight("bias", b)});
  EXPECT_THAT(result.pairs, ElementsAre("bias is gemm.bias", "more is bias"));
  EXPECT_THAT(result.mismatch, IsEmpty());
}

TEST(WeightMatch, NumbersShowThroughFormsAndTypes) {
  auto a = drawn({4, 6}, 1), b = drawn({8}, 2);
  auto result = match({held("flat", a.reshape({24})), held("half", b.to(at::kHalf)), held("again", a.unsqueeze(0)),
                       held("copy", b, Kind::attribute)},
                      {weight("x.a", a), weight("x.b", b)});
  EXPECT_THAT(result.pairs, UnorderedElementsAre("flat is x.a", "half is x.b", "again is x.a", "copy is x.b"));
}

TEST(WeightMatch, EqualNumbersOfTwoWeightsGoInOrder) {
  auto a = drawn({8}, 1);
  EXPECT_THAT(match({held("u", a), held("v", a)}, {weight("a", a), weight("b", a)}).pairs,
              ElementsAre("u is a", "v is b"));
  EXPECT_THAT(match({held("b", a), held("v", a)}, {weight("a", a), weight("b", a)}).pairs,
              ElementsAre("b is b", "v is a"));
}

TEST(WeightMatch, OneTensorOfTwoNamesIsOne) {
  auto a = drawn({8}, 1);
  std::vector<ModelWeight> tied = {{"embed", a, false, "embed"}, {"out", a, false, "embed"}};
  auto result = match({held("weight", a)}, tied);
  EXPECT_THAT(result.pairs, ElementsAre("weight is embed"));
  EXPECT_THAT(result.mismatch + result.lacking, IsEmpty());
}

TEST(WeightMatch, ConstantsGoByFormAndOrder) {
  auto one = at::ones({8}), zero = at::zeros({8});
  auto result =
      match({held("w1", one), held("w2", one), held("b1", zero.unsqueeze(0)), held("b2", zero)},
            {weight("n.weight", one), weight("n.bias", zero), weight("m.weight", one), weight("m.bias", zero)});
  EXPECT_THAT(result.pairs, UnorderedElementsAre("w1 is n.weight", "w2 is m.weight", "b1 is n.bias", "b2 is m.bias"));
}

TEST(WeightMatch, AConstantMayBeNoParameter) {
  auto one = at::ones({8}), zero = at::zeros({8});
  EXPECT_THAT(match({held("gamma", one, Kind::attribute), held("beta", zero, Kind::buffer)},
                    {weight("n.weight", one), weight("n.bias", zero)})
                  .pairs,
              UnorderedElementsAre("gamma is n.weight", "beta is n.bias"));
  // Two for one: either may be it.
  auto result =
      match({held("gamma", one, Kind::attribute), held("scratch", one, Kind::attribute)}, {weight("n.weight", one)});
  EXPECT_THAT(result.pairs, IsEmpty());
  EXPECT_THAT(result.lacking, HasSubstr("`n.weight` float32[8]"));
}

TEST(WeightMatch, FormsThatNoOtherHas) {
  auto result = match({held("u", drawn({3, 5}, 8)), held("v", drawn({7}, 9))},
                      {weight("a", drawn({7}, 1)), weight("b", drawn({3, 5}, 2))});
  EXPECT_THAT(result.pairs, UnorderedElementsAre("u is b", "v is a"));
}

TEST(WeightMatch, OrderUnlessNamesSayOtherwise) {
  auto a = drawn({7}, 1), b = drawn({7}, 2);
  EXPECT_THAT(match({held("u", drawn({7}, 8)), held("v", drawn({7}, 9))}, {weight("x.a", a), weight("x.b", b)}).pairs,
              ElementsAre("u is x.a", "v is x.b"));
  EXPECT_THAT(match({held("b", drawn({7}, 8)), held("a", drawn({7}, 9))}, {weight("x.a", a), weight("x.b", b)}).pairs,
              UnorderedElementsAre("b is x.b", "a is x.a"));
}

TEST(WeightMatch, fail_MoreThanTheModelHas) {
  auto a = drawn({7}, 1);
  auto result = match({held("u", drawn({7}, 8)), held("v", drawn({7}, 9))}, {weight("x.a", a)});
  EXPECT_THAT(result.pairs, IsEmpty());
  EXPECT_THAT(result.mismatch, HasSubstr("it lacks `x.a` float32[7]; the model has no `u` float32[7], `v` float32[7]"));
}

TEST(WeightMatch, LacksWithoutMismatch) {
  auto a = drawn({7}, 1);
  auto result = match({held("a", a)}, {weight("a", a), weight("unused", drawn({3}, 2)), weight("state", a, true)});
  EXPECT_THAT(result.pairs, ElementsAre("a is a"));
  EXPECT_THAT(result.mismatch, IsEmpty());
  EXPECT_EQ(result.lacking, "`unused` float32[3]");
}

}  // namespace
}  // namespace tilepilot::eval
