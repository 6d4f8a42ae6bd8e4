#include "compiler/passes/iterations/iteration_variables.h"

#include <gtest/gtest.h>

#include "same_meaning.h"

namespace tilepilot::passes {
namespace {

using namespace ir;

Program variables_program(const std::string& tiles, const std::string& body) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const std::string text =
      "program f(x: float32[64], y: float32[64]) { kernel bx in 1 threads 64 { " + tiles + " " + body + " } }";
  auto program = read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  return program ? *std::move(program) : Program{};
}

void expect_own(const std::string& tiles, const std::string& before, const std::string& tiles_left,
                const std::string& after) {
  const Program original = variables_program(tiles, before), result = iteration_variables(original);
  EXPECT_EQ(to_text(result), to_text(variables_program(tiles_left, after)));
  DiagnosticList diagnostics;
  EXPECT_TRUE(verify(result, diagnostics));
  EXPECT_EQ(ir::testing::compare_meaning(original, result, 1), ir::testing::Meaning::same);
}

// "v carried" or "v left" for each variable of each loop.
std::string sequences(const std::string& body) {
  const Program program = variables_program("local v: float32[1] local t: float32[4] local w: int32[1]", body);
  std::string found;
  for (const SequentialVariable& each : sequential_variables(program.kernels[0]))
    found += each.buffer->name + (each.carried ? " carried " : " left ");
  return found;
}

constexpr const char* kV = "local v: float32[1]";

TEST(IterationVariablesTest, BecomeDefinitions) {
  expect_own(kV, "parallel i in 64 { v[0] = x[i] * 2.0 y[i] = v[0] v[0] = v[0] + 1.0 x[i] = v[0] }", "",
             "parallel i in 64 { let v: float32 = x[i] * 2.0 y[i] = v let v_1: float32 = v + 1.0 x[i] = v_1 }");
}

TEST(IterationVariablesTest, AreChosenByConditions) {
  expect_own(kV, "parallel i in 64 { v[0] = x[i] if v[0] < 0.0 { v[0] = 0.0 - v[0] } y[i] = v[0] }", "",
             "parallel i in 64 { let v: float32 = x[i] let condition: bool = v < 0.0 "
             "let v_1: float32 = select(condition, 0.0 - v, v) y[i] = v_1 }");
}

TEST(IterationVariablesTest, StayArraysWhereLoopsWriteThem) {
  const std::string body = "parallel i in 64 { serial k in 4 { t[k] = x[(i + k) % 64] } y[i] = t[0] + t[i % 4] }";
  expect_own("local t: float32[4]", body, "local t: float32[4]", body);
}

TEST(IterationVariablesTest, OfTwoLoopsAreTwo) {
  const std::string loop = "parallel i in 64 { v[0] = 0.0 serial k in 4 { v[0] = v[0] + x[i] } y[i] = v[0] }";
  std::string second = loop;
  for (size_t at = second.find("v["); at != std::string::npos; at = second.find("v[", at + 4))
    second.insert(at + 1, "_1");
  expect_own(kV, loop + " " + loop, "local v: float32[1] local v_1: float32[1]", loop + " " + second);
}

TEST(IterationVariablesTest, ThatAreHandedOnMakeASequence) {
  expect_own(kV, "v[0] = 0.0 parallel i in 64 { v[0] = v[0] + x[i] y[i] = v[0] }", kV,
             "v[0] = 0.0 parallel once in 1 { serial i in 64 { v[0] = v[0] + x[i] y[i] = v[0] } }");
}

TEST(IterationVariablesTest, AreToldApart) {
  EXPECT_EQ(sequences("parallel i in 64 { v[0] = x[i] y[i] = v[0] }"), "");
  EXPECT_EQ(sequences("parallel i in 64 { v[0] = v[0] + x[i] y[i] = v[0] }"), "v carried ");
  EXPECT_EQ(sequences("parallel i in 64 { if x[i] < 0.0 { v[0] = x[i] } y[i] = v[0] }"), "v carried ");
  EXPECT_EQ(sequences("parallel i in 64 { if x[i] < 0.0 { v[0] = x[i] } else { v[0] = 1.0 } y[i] = v[0] }"), "");
  EXPECT_EQ(sequences("parallel i in 64 { v[0] = x[i] } parallel i in 64 { y[i] = v[0] }"), "v left ");
  EXPECT_EQ(sequences("parallel i in 64 { v[0] = x[i] } y[0] = v[0]"), "v left ");
  EXPECT_EQ(sequences("y[0] = v[0] parallel i in 64 { v[0] = x[i] y[i] = v[0] }"), "");
  EXPECT_EQ(sequences("serial k in 2 { y[0] = v[0] parallel i in 64 { v[0] = x[i] y[i] = v[0] } }"), "v left ");
  // All elements before any; some; by an index that is known later.
  EXPECT_EQ(sequences("parallel i in 64 { serial k in 4 { t[k] = x[i] } y[i] = t[3] }"), "");
  EXPECT_EQ(sequences("parallel i in 64 { serial k in 3 { t[k] = x[i] } y[i] = t[3] }"), "t carried ");
  EXPECT_EQ(sequences("parallel i in 64 { t[i % 4] = x[i] y[i] = t[i % 4] }"), "");
  EXPECT_EQ(sequences("parallel i in 64 { t[i % 4] = x[i] y[i] = t[3 - i % 4] }"), "t carried ");
  EXPECT_EQ(sequences("parallel i in 64 { serial k in w[0] { v[0] = x[i] } y[i] = v[0] }"), "v carried ");
  EXPECT_EQ(sequences("parallel i in 64 { serial k in 4 { if x[i] < 0.0 { break } v[0] = x[i] } y[i] = v[0] }"),
            "v carried ");
  EXPECT_EQ(sequences("parallel i in w[0] { t[i] = x[i] } parallel i in 4 { y[i] = t[3 - i] }"), "t left ");
  // Elements of their own, whatever the order.
  EXPECT_EQ(sequences("parallel i in 4 { t[i] = x[i] } parallel i in 4 { y[i] = t[3 - i] }"), "");
}

}  // namespace
}  // namespace tilepilot::passes
