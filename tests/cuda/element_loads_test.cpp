// Loops over elements that are no vectors: what is loaded of all of a thread's iterations before the first is stored.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Rows of 333 elements, of which no two begin at a multiple of a vector.
std::string odd_rows(const std::string& body, const std::string& tensors = "") {
  return "program rows(x: float32[5, 333], y: float32[5, 333], " + tensors +
         "o: float32[5, 333]) {\n  kernel bx in 5 threads 64 {\n    parallel j in 333 {\n      " + body +
         "\n    }\n  }\n}";
}

// The first load from `tensor` into registers stands before the first store to `to`, in a loop of its own.
void expect_early(const std::string& source, const std::string& tensor, const std::string& to) {
  const size_t load = source.find(tensor + "_v["), store = source.find("  " + to + "[");
  ASSERT_NE(load, std::string::npos) << source;
  EXPECT_LT(load, store) << source;
  EXPECT_NE(source.substr(load, store - load).find("for ("), std::string::npos) << source;
}

TEST(ElementLoads, ComeBeforeStoresToAnotherTensor) {
  const std::string source = expect_interpreted(odd_rows("o[bx, j] = x[bx, j] * 2.0 - y[bx, j]"));
  expect_early(source, "x", "o");
  expect_early(source, "y", "o");
  EXPECT_THAT(source, HasSubstr("assume_below(thread, 64);"));
}

TEST(ElementLoads, ComeBeforeStoresToTheSameElements) {
  expect_early(expect_interpreted(odd_rows("o[bx, j] = o[bx, j] + x[bx, j]")), "o", "o");
}

TEST(ElementLoads, OfWhatAllIterationsShareTakeOneRegister) {
  const std::string source = expect_interpreted(odd_rows("o[bx, j] = x[bx, j] + b[bx]", "b: float32[5], "));
  EXPECT_THAT(source, AllOf(HasSubstr("registers<float, 1> b_v"), HasSubstr("registers<float, 6> x_v")));
}

// What is stored before is another value.
TEST(ElementLoads, WaitForStoresOfTheirOwnIteration) {
  const std::string source = expect_interpreted(odd_rows("o[bx, j] = x[bx, j] + 1.0\n      y[bx, j] = o[bx, j] * 2.0"));
  EXPECT_THAT(source, Not(HasSubstr("o_v[")));
}

// An element that is not chosen may lie outside of its tensor.
TEST(ElementLoads, StayUnderTheirChoice) {
  const std::string source = expect_interpreted(odd_rows("o[bx, j] = select(j > 0, x[bx, j - 1], y[bx, j])"));
  EXPECT_THAT(source, Not(HasSubstr("x_v[")));
}

TEST(ElementLoads, StayWhereTheyWouldTakeTooManyRegisters) {
  const std::string text =
      "program rows(x: float32[3, 8195], o: float32[3, 8195]) {\n  kernel bx in 3 threads 64 {\n"
      "    parallel j in 8195 {\n      o[bx, j] = x[bx, j] + 1.0\n    }\n  }\n}";
  EXPECT_THAT(expect_interpreted(text), Not(HasSubstr("x_v[")));
}

}  // namespace
}  // namespace tilepilot::testing
