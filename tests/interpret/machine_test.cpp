// Programs whose results are known by hand, and what is said of those that are wrong.
#include "compiler/interpret/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"

namespace tilepilot::interpret {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class Machine : public ::testing::Test {
 protected:
  SourceMap sources_;
  std::vector<float> x_ = {1, 2, 3, 4, 5, 6, 7, 8}, y_ = std::vector<float>(8, -1);

  ir::Program read(const std::string& tiles_and_body, const std::string& head = "threads 32") {
    return read_program("program f(x: float32[8], y: float32[8]) { kernel b in 1 " + head + " { " + tiles_and_body +
                        " } }");
  }

  ir::Program read_program(const std::string& text) {
    DiagnosticList diagnostics;
    auto program = ir::read_text(sources_, sources_.add("test.ir", text), diagnostics);
    const bool valid = program && ir::verify(*program, diagnostics);
    EXPECT_TRUE(valid) << diagnostics.items().front().message << "\n" << text;
    return program.value_or(ir::Program{});
  }

  std::vector<Argument> arguments() {
    return {View{x_.data(), ir::kFloat32, {8}, {1}}, View{y_.data(), ir::kFloat32, {8}, {1}}};
  }

  // y, after all threads of a block have done this.
  std::vector<float> result(const std::string& body, const std::string& head = "threads 32") {
    const auto fault = run_twice(read(body, head), arguments());
    EXPECT_FALSE(fault) << (fault ? fault->message : "");
    return y_;
  }

  Fault fault(const std::string& body, const std::string& head = "threads 32", const Options& options = {}) {
    return run_twice(read(body, head), arguments(), options).value_or(Fault{FaultKind::bad_arguments, {}, "none"});
  }
};

TEST_F(Machine, OutsideAGlobalBufferIsZeroAndNothing) {
  EXPECT_THAT(result("fragment t: float32[4] copy x[-2 : +4] -> t y[0] = x[8] y[9] = 1.0 copy t -> y[2 : +4]"),
              ElementsAre(0, -1, 0, 0, 1, 2, -1, -1));
  EXPECT_THAT(result("fragment t: float32[4] fill t = 7.0 copy t -> y[6 : +4]"), ElementsAre(0, -1, 0, 0, 1, 2, 7, 7));
}

TEST_F(Machine, ViewsShareMemory) {
  const std::string body =
      "shared t: int32[2] shared u: uint8[8] view t fill t = 0 u[1] = 1u8 u[4] = 2u8 parallel i in 2 { y[i] = "
      "float32(t[i]) }";
  const auto after = result(body);
  EXPECT_EQ(after[0], 256);
  EXPECT_EQ(after[1], 2);
}

TEST_F(Machine, TileOperators) {
  EXPECT_THAT(result("shared t: float32[8] copy x -> t scan sum t -> t axis 0 reverse copy t -> y"),
              ElementsAre(36, 35, 33, 30, 26, 21, 15, 8));
  const auto reduced = result(
      "shared t: float32[2, 4] shared r: float32[2] copy x[0 : 4] -> t[0, 0 : 4] copy x[4 : +4] -> t[1, 0 : 4] t[0, "
      "1] = nan fill r = 100.0 reduce max t -> r axis 1 copy r -> y[0 : 2]");
  EXPECT_EQ(reduced[0], 4);
  EXPECT_EQ(reduced[1], 8);
}

TEST_F(Machine, ThreadsHaveBuffersAndVariablesOfTheirOwn) {
  EXPECT_THAT(result("shared s: float32[8] local a: float32[1] let v: float32 = x[t] * 10.0 a[0] = x[t] s[t] = v sync "
                     "y[t] = s[7 - t] + a[0] + v",
                     "threads t in 8"),
              ElementsAre(91, 92, 93, 94, 95, 96, 97, 98));
}

TEST_F(Machine, ThreadsMeetInLoopsAndCountAlike) {
  // A tree of sums.
  EXPECT_EQ(result("shared s: float32[8] local n: int32[1] s[t] = x[t] n[0] = 4 sync while n[0] > 0 { if t < n[0] { "
                   "s[t] = s[t] + s[t + n[0]] } sync n[0] = n[0] // 2 } if t == 0 { y[0] = s[0] }",
                   "threads t in 8")[0],
            36);
}

TEST_F(Machine, ReductionsOverAxesOfTheBlock) {
  const std::string body =
      "local a: float32[1] all_reduce a[0] = + (x[t + 4 * u]) if t > 0 else 0.0 over {} y[t + 4 * u] = a[0]";
  const auto over = [&](const std::string& axes) {
    std::string text = body;
    return result(text.replace(text.find("{}"), 2, axes), "threads t, u in 4, 2");
  };
  EXPECT_THAT(over("0"), ElementsAre(9, 9, 9, 9, 21, 21, 21, 21));
  EXPECT_THAT(over("1"), ElementsAre(0, 8, 10, 12, 0, 8, 10, 12));
  EXPECT_THAT(over("0, 1"), ElementsAreArray(std::vector<float>(8, 30)));
}

TEST_F(Machine, EveryThreadUpdatesOnce) { EXPECT_EQ(result("atomic add y[1], 2.0", "threads t in 33")[1], 65); }

TEST_F(Machine, WorkspacesLastFromLaunchToLaunch) {
  const auto program = read_program(
      "program f(x: float32[8], y: float32[8]) { workspace w: float32[8] kernel b in 8 threads 1 { w[b] = x[b] } "
      "kernel "
      "b in 8 threads 1 { y[b] = w[7 - b] } }");
  EXPECT_FALSE(run_twice(program, arguments()));
  EXPECT_THAT(y_, ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
}

// Wrong programs ------------------------------------------------------------------------------------------------------

TEST_F(Machine, fail_OutsideATile) {
  const Fault f = fault("shared t: float32[4] fill t = 1.0 serial i in 5 { t[i] = 2.0 }");
  EXPECT_EQ(f.kind, FaultKind::outside_tile);
  EXPECT_EQ(f.message, "[4] lies outside `t`, which is [4]");
  EXPECT_EQ(sources_.text(f.span), "t[i] = 2.0");
}

TEST_F(Machine, fail_UninitialisedMemory) {
  const std::string body = "shared t: float32[4] t[0] = 1.0 y[0] = t[1]";
  const Fault f = fault(body);
  EXPECT_EQ(f.kind, FaultKind::uninitialised);
  EXPECT_EQ(f.message, "nobody has written `t` at [1]");
  EXPECT_EQ(sources_.text(f.span), "t[1]");
  Options lenient;
  lenient.reports_uninitialised = false;
  EXPECT_FALSE(run(read(body), arguments(), lenient));
}

TEST_F(Machine, fail_MeaninglessCast) {
  EXPECT_EQ(fault("y[0] = float32(uint8(x[3] * -1.0))").message, "-4 is no uint8");
}

TEST_F(Machine, fail_EndlessLoop) {
  Options options;
  options.steps = 1000;
  EXPECT_EQ(fault("while x[0] > 0.0 { y[0] = 1.0 }", "threads 1", options).kind, FaultKind::budget_exceeded);
}

TEST_F(Machine, fail_ThreadsPart) {
  const Fault f = fault("if t < 3 { sync } else { y[t] = 1.0 }", "threads t in 8");
  EXPECT_EQ(f.kind, FaultKind::threads_part);
  EXPECT_EQ(sources_.text(f.span), "sync");
  std::vector<std::string> notes;
  for (const Note& note : f.notes) notes.push_back(note.message);
  EXPECT_THAT(notes, ::testing::UnorderedElementsAre("threads 0 to 2 wait here", "threads 3 to 7 have ended"));
}

TEST_F(Machine, fail_ThreadsDiffer) {
  const Fault f = fault("shared s: float32[8] fill s = 0.0 let i: int32 = t parallel k in 1 { s[k] = float32(i) }",
                        "threads t in 8");
  EXPECT_EQ(f.kind, FaultKind::threads_differ);
  EXPECT_THAT(f.message, HasSubstr("`i` differs"));
}

TEST_F(Machine, fail_Race) {
  const Fault f = fault("shared s: float32[8] s[t] = x[t] y[t] = s[(t + 1) % 8]", "threads t in 8");
  EXPECT_TRUE(f.kind == FaultKind::race || f.kind == FaultKind::uninitialised) << f.message;
  EXPECT_EQ(fault("y[0] = float32(t)", "threads t in 8").kind, FaultKind::race);
}

// As for the CPU backend: an axis of extent 1 may have any stride.
TEST_F(Machine, StridesOfAxesThatNobodyStepsAlongDetermineNothing) {
  const auto program = read_program(
      "program f<s: int32>(x: float32[2, 4] strides [s, 1], y: float32[1, 8] strides [s, 1]) { kernel b in 1 threads 1 "
      "{ y[0, 0] = float32(s) } }");
  const auto fault =
      run(program, {View{x_.data(), ir::kFloat32, {2, 4}, {4, 1}}, View{y_.data(), ir::kFloat32, {1, 8}, {77, 1}}});
  EXPECT_FALSE(fault) << fault->message;
  EXPECT_EQ(y_[0], 4);
  const auto alone = read_program(
      "program f<s: int32>(y: float32[1, 8] strides [s, 1]) { kernel b in 1 threads 1 { y[0, 0] = float32(s) } }");
  EXPECT_FALSE(run(alone, {View{y_.data(), ir::kFloat32, {1, 8}, {77, 1}}}));
  EXPECT_EQ(y_[0], 77);
}

TEST_F(Machine, fail_Arguments) {
  const auto program = read("y[0] = x[0]");
  EXPECT_EQ(run(program, {})->kind, FaultKind::bad_arguments);
  EXPECT_EQ(run(program, {int64_t{1}, int64_t{2}})->message, "`x` is another tensor");
  std::vector<Argument> shorter = arguments();
  std::get<View>(shorter[1]).shape = {7};
  EXPECT_EQ(run(program, shorter)->message, "`y` has another shape");
}

}  // namespace
}  // namespace tilepilot::interpret
