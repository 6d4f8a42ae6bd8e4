#include <fmt/format.h>

#include <algorithm>

#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

constexpr const char* kProgram =
    R"(program scale<n: int32>(x: float32[n, 4], y: float32[n, 4], factor: float32, shift: int32) {
  kernel b in n threads 128 {
    parallel i in 4 {
      y[b, i] = x[b, i] * factor + float32(shift)
    }
  }
}
)";

class ArgumentsTest : public ::testing::Test {
 protected:
  // The message of the error that a launch gives, or "ok".
  std::string launch(const std::vector<runtime::Argument>& arguments) {
    if (kernel_ == nullptr) kernel_ = compile(parse(kProgram));
    if (kernel_ == nullptr) return "not compiled";
    const Status status = kernel_->launch(arguments, runtime::thread_pool(1), Span{0, 3, 5});
    if (status.ok()) return "ok";
    EXPECT_EQ(status.error().kind, DiagnosticKind::bad_kernel_argument);
    EXPECT_EQ(status.error().span, (Span{0, 3, 5}));
    return status.error().message;
  }

  std::shared_ptr<runtime::CompiledKernel> kernel_;
  Array x_{ir::kFloat32, {3, 4}}, y_{ir::kFloat32, {3, 4}};
};

TEST_F(ArgumentsTest, BindsSymbolsAndScalars) {
  randomize(x_, 5);
  ASSERT_EQ(launch({x_.view(), y_.view(), 2.5, int64_t{-3}}), "ok");
  for (int i = 0; i < 12; ++i) EXPECT_EQ(y_.as<float>()[i], x_.as<float>()[i] * 2.5f - 3.0f);
}

TEST_F(ArgumentsTest, AnIntegerMayStandForAFloat) {
  randomize(x_, 5);
  ASSERT_EQ(launch({x_.view(), y_.view(), int64_t{2}, int64_t{0}}), "ok");
  EXPECT_EQ(y_.as<float>()[1], x_.as<float>()[1] * 2);
}

TEST_F(ArgumentsTest, EmptyTensorsLaunchNothing) {
  Array x(ir::kFloat32, {0, 4}), y(ir::kFloat32, {0, 4});
  EXPECT_EQ(launch({x.view(), y.view(), 1.0, int64_t{0}}), "ok");
}

TEST_F(ArgumentsTest, StridesOfAxesOfExtentOneDoNotMatter) {
  Array x(ir::kFloat32, {1, 4}), y(ir::kFloat32, {1, 4});
  runtime::TensorView odd = x.view();
  odd.strides[0] = 77;
  EXPECT_EQ(launch({odd, y.view(), 1.0, int64_t{0}}), "ok");
}

// Extents and grids may be of any operation on whole numbers.
TEST_F(ArgumentsTest, BlocksAreCountedByBits) {
  for (const auto& [blocks, count] :
       {std::pair("(n | 3) >> 2", 5), std::pair("(n + 7) & -8", 24), std::pair("n ^ 1", 20), std::pair("n & 6", 4),
        std::pair("(n * 2147483647 + 24) % 7", 1)}) {
    const auto kernel = compile(parse(fmt::format(R"(program count<n: int32>(x: float32[n, 2], y: float32[32]) {{
  kernel b in {} threads 32 {{
    parallel i in 1 {{
      y[b + i] = x[0, 0] + 1.0
    }}
  }}
}})",
                                                  blocks)));
    ASSERT_NE(kernel, nullptr) << blocks;
    Array x(ir::kFloat32, {21, 2}), y(ir::kFloat32, {32});
    const Status status = kernel->launch({x.view(), y.view()}, runtime::thread_pool(1), {});
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(std::count(y.as<float>(), y.as<float>() + 32, 1.0f), count) << blocks;
  }
}

TEST_F(ArgumentsTest, fail_Count) { EXPECT_EQ(launch({x_.view(), y_.view()}), "`scale` takes 4 arguments, got 2"); }

TEST_F(ArgumentsTest, fail_Dtype) {
  Array wrong(ir::kFloat16, {3, 4});
  EXPECT_EQ(launch({x_.view(), wrong.view(), 1.0, int64_t{0}}),
            "argument `y` must have dtype `float32`, got `float16`");
}

TEST_F(ArgumentsTest, fail_Rank) {
  Array wrong(ir::kFloat32, {12});
  EXPECT_EQ(launch({wrong.view(), y_.view(), 1.0, int64_t{0}}), "argument `x` must have shape (n, 4), got (12)");
}

TEST_F(ArgumentsTest, fail_ConstantExtent) {
  Array wrong(ir::kFloat32, {3, 5});
  EXPECT_EQ(launch({wrong.view(), y_.view(), 1.0, int64_t{0}}), "argument `x` must have shape (n, 4), got (3, 5)");
}

TEST_F(ArgumentsTest, fail_SymbolTwice) {
  Array wrong(ir::kFloat32, {2, 4});
  EXPECT_EQ(launch({x_.view(), wrong.view(), 1.0, int64_t{0}}), "axis 0 of argument `y` must be `n` = 3, got 2");
}

TEST_F(ArgumentsTest, fail_NotContiguous) {
  runtime::TensorView transposed = y_.view();
  transposed.strides = {1, 3};
  EXPECT_EQ(launch({x_.view(), transposed, 1.0, int64_t{0}}), "argument `y` must be contiguous, got strides (1, 3)");
}

TEST_F(ArgumentsTest, fail_TensorForNumberAndBack) {
  EXPECT_EQ(launch({x_.view(), y_.view(), x_.view(), int64_t{0}}), "argument `factor` must be a number, got a tensor");
  EXPECT_EQ(launch({x_.view(), 1.0, 1.0, int64_t{0}}), "argument `y` must be a tensor, got a number");
}

TEST_F(ArgumentsTest, fail_NumberOutOfRange) {
  EXPECT_EQ(launch({x_.view(), y_.view(), 1.0, int64_t{1} << 40}),
            "argument `shift` is 1099511627776, which `int32` cannot hold");
  EXPECT_EQ(launch({x_.view(), y_.view(), 1.0, 0.5}), "argument `shift` must be of type `int32`, got 0.5");
}

}  // namespace
}  // namespace tilepilot::testing
