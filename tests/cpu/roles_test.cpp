// Roles of a block that wait for each other: as the interpreter runs them before and after they are split, and as
// generated code does.
#include <gmock/gmock.h>

#include "compiler/ir/verify/verify.h"
#include "compiler/passes/pipeline.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;

std::string with_kernel(const std::string& head, const std::string& body) {
  return "program f(x: float32[256], y: float32[256]) { kernel b in 2 threads " + head + " { " + body + " } }";
}

class RolesTest : public ::testing::Test {
 protected:
  Array x_{ir::kFloat32, {256}}, y_{ir::kFloat32, {256}};

  std::vector<runtime::Argument> arguments() {
    for (int64_t i = 0; i < 256; ++i) x_.as<float>()[i] = static_cast<float>(i);
    std::fill_n(y_.as<float>(), 256, -1.0F);
    return {x_.view(), y_.view()};
  }

  std::vector<float> interpreted(const ir::Program& program) {
    const auto fault = interpret::run_twice(program, to_interpret(arguments()));
    EXPECT_FALSE(fault) << fault->message << "\n" << ir::to_text(program);
    return {y_.as<float>(), y_.as<float>() + 256};
  }

  // What `y` holds afterwards, as all agree.
  std::vector<float> result(const std::string& head, const std::string& body) {
    const ir::Program program = parse(with_kernel(head, body));
    DiagnosticList diagnostics;
    EXPECT_TRUE(ir::verify(program, diagnostics)) << diagnostics.items().front().message;
    passes::PipelineOptions options;
    options.verify_after_each = true;
    const auto lowered = passes::run_pipeline(program, options);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : render(lowered.error()));
    if (!lowered.ok()) return {};
    const std::vector<float> expected = interpreted(program);
    EXPECT_EQ(interpreted(*lowered), expected) << ir::to_text(*lowered);
    run(program, arguments());
    const std::vector<float> actual(y_.as<float>(), y_.as<float>() + 256);
    EXPECT_EQ(actual, expected) << ir::to_text(*lowered);
    return actual;
  }

  std::string refusal(const std::string& head, const std::string& body) {
    const auto lowered = passes::run_pipeline(parse(with_kernel(head, body)));
    return lowered.ok() ? "accepted" : lowered.error().message;
  }
};

// A ring of two tiles: the loader fills them, the worker empties them.
constexpr const char* kRing = R"(
  shared s: float32[2, 16]
  fragment sum: float32[16]
  barrier full: uint64[4] arrivals [128, 128, 128, 128]
  roles 0 { fill sum = 0.0 }
  serial k in 8 {
    roles 1 {
      on full[k % 2 + 2] wait (k // 2) % 2 ^ 1
      copy x[b * 128 + k * 16 : +16] -> s[k % 2, 0 : 16] mode bulk_load counting full[k % 2]
      on full[k % 2] arrive
    }
    roles 0 {
      on full[k % 2] wait (k // 2) % 2
      parallel i in 16 { sum[i] = sum[i] + s[k % 2, i] }
      on full[k % 2 + 2] arrive
    }
  }
  roles 0 { copy sum -> y[b * 16 : +16] }
)";

TEST_F(RolesTest, ALoaderAndAWorkerShareARing) {
  const std::vector<float> y = result("256", kRing);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], (i / 16 * 128 + i % 16) * 8 + 16 * 28) << i;
}

TEST_F(RolesTest, WhatStandsOutsideIsDoneByAllTogether) {
  const std::vector<float> y = result("256", R"(
  shared s: float32[32] shared t: float32[32] shared u: float32[32]
  serial k in 2 {
    copy x[b * 64 + k * 32 : +32] -> s
    roles 1 { parallel i in 32 { t[i] = s[i] + 1.0 } }
    roles 0 { parallel i in 32 { u[i] = s[i] * 2.0 } }
    parallel i in 32 { y[b * 64 + k * 32 + i] = t[i] + u[i] }
  }
)");
  for (int i = 0; i < 128; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 3 * i + 1) << i;
}

TEST_F(RolesTest, ConditionsOnTheThreadIndexTellRolesApart) {
  const std::vector<float> y = result("t in 256", R"(
  shared s: float32[128] local v: float32[1]
  barrier ready: uint64[1] arrivals [128] barrier done: uint64[1] arrivals [1]
  let group: int32 = t // 128
  if group == 1 {
    s[t - 128] = x[t - 128]
    on ready[0] arrive
    on done[0] wait 0
    y[t] = s[255 - t]
  } else {
    on ready[0] wait 0
    v[0] = s[127 - t]
    sync on 1 of 128
    s[t] = v[0]
    sync on 1 of 128
    if t == 5 { on done[0] arrive }
    if b == 0 { y[t] = 0.0 }
  }
)");
  EXPECT_EQ(y[7], 0);
  EXPECT_EQ(y[128 + 30], 30);
}

TEST_F(RolesTest, WarpsMeetApart) {
  const std::vector<float> y = result("t in 96", R"(
  shared s: float32[96] local v: float32[1]
  if t < 32 {
    s[t] = x[t] sync on 2 of 32
    v[0] = s[31 - t]
  } else {
    s[t] = x[t] * 10.0 sync on 3 of 64
    v[0] = s[127 - t]
  }
  sync
  if b == 0 { y[t] = v[0] }
)");
  EXPECT_EQ(y[0], 31);
  EXPECT_EQ(y[32], 950);
}

TEST_F(RolesTest, BarriersWithoutRolesCountAllThreads) {
  const std::vector<float> y = result("64", R"(
  shared s: float32[16]
  barrier full: uint64[1] arrivals [64]
  serial k in 4 {
    copy x[k * 16 : +16] -> s mode bulk_load counting full[0]
    on full[0] arrive
    on full[0] wait k % 2
    copy s -> y[k * 16 : +16]
  }
)");
  EXPECT_EQ(y[63], 63);
}

TEST_F(RolesTest, fail_EveryRoleWaits) {
  const std::string body = R"(
  shared s: float32[16]
  barrier full: uint64[2] arrivals [128, 128]
  roles 1 { on full[0] wait 0 copy x[0 : 16] -> s on full[1] arrive }
  roles 0 { on full[1] wait 0 copy s -> y[b * 16 : +16] on full[0] arrive }
)";
  const ir::Program program = parse(with_kernel("256", body));
  const auto fault = interpret::run(program, to_interpret(arguments()));
  ASSERT_TRUE(fault);
  EXPECT_EQ(interpret::to_string(fault->kind), "deadlock");
  EXPECT_EQ(fault->message, "every role waits on a barrier");
  const auto kernel = compile(program);
  ASSERT_TRUE(kernel);
  const Status status = kernel->launch(arguments(), runtime::thread_pool(2), {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::deadlock);
  EXPECT_THAT(render(status.error()), HasSubstr("every role of the block waits on a barrier (block 0)"));
}

TEST_F(RolesTest, fail_ArrivalsThatNeverCome) {
  const auto kernel = compile(parse(with_kernel("64",
                                                "barrier full: uint64[1] arrivals [65] on full[0] arrive on "
                                                "full[0] wait 0 y[0] = 1.0")));
  const Status status = kernel->launch(arguments(), runtime::thread_pool(1), {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::deadlock);
}

TEST_F(RolesTest, fail_RolesThatCannotBeToldApart) {
  EXPECT_THAT(refusal("t in 64", "if x[t] > 0.0 { sync }"), HasSubstr("the threads of a block synchronise inside"));
  EXPECT_THAT(refusal("t in 64", "if t % 2 == 0 { sync on 1 of 32 }"), HasSubstr("no box of the block"));
  EXPECT_THAT(refusal("256",
                      "fragment f: float32[8] fill f = 1.0 roles 0 { fill f = 2.0 } roles 1 { copy f -> y[0 : "
                      "8] }"),
              HasSubstr("several roles of a block use the fragment `f`"));
}

}  // namespace
}  // namespace tilepilot::testing
