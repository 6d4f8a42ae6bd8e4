// What is made of tensors that the judge does not take.
#include "eval/worker/judge/returned_form.h"

#include <gmock/gmock.h>

#include "tests/eval/drawn_graph.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

TEST(ReturnedForm, MayBeOfAWiderTypeThanTheModels) {
  testing::Drawn drawn;
  const int x = drawn.input({int64_t{1} << 20, 1000});
  drawn.returns(drawn.node("relu", {testing::ref(x)}, {int64_t{1} << 20, 1000}));
  const int64_t bytes = (int64_t{1} << 20) * 1000 * 4;
  EXPECT_GE(most_returned_bytes(drawn.graph), 2 * bytes);
  EXPECT_LE(most_returned_bytes(drawn.graph), 6 * bytes);
}

TEST(NotReceived, SaysWhichShapeWasTooLarge) {
  const StructureMatch match{{1, 0}, ""};
  const auto too_much = make_error(DiagnosticKind::out_of_memory, {}, "4398.05 GB in all");
  const nlohmann::json endless = {{"shape", {int64_t{1} << 40}}}, right = {{"shape", {48, 100}}};
  const Verdict wrong = not_received(*too_much, nlohmann::json::array({endless, right}), {match, {{48, 100}, {3}}});
  EXPECT_EQ(wrong.outcome, Outcome::wrong_shape);
  EXPECT_EQ(wrong.detail, "output 1 has shape [1099511627776] instead of [3]: 4398.05 GB in all");
  // A buffer beside outputs of the right form.
  const StructureMatch first{{0}, ""};
  const Verdict beside = not_received(*too_much, nlohmann::json::array({right, endless}), {first, {{48, 100}}});
  EXPECT_EQ(beside.outcome, Outcome::out_of_memory);
  EXPECT_EQ(beside.detail, "4398.05 GB in all");
}

TEST(NotReceived, IsTheFaultOfWhoSentIt) {
  const auto broken = make_error(DiagnosticKind::worker_unavailable, {}, "tensors did not arrive whole");
  const Verdict verdict = not_received(*broken, nlohmann::json::array(), {StructureMatch{{0}, ""}, {{3}}});
  EXPECT_EQ(verdict.outcome, Outcome::rejected);
  EXPECT_EQ(verdict.guard, "protocol");
  EXPECT_THAT(verdict.detail, HasSubstr("did not arrive whole"));
}

}  // namespace
}  // namespace tilepilot::eval
