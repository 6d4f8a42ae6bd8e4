// Launches that take a thread less time than others take to wake up wake none.
#include "tests/cpu/kernel_fixture.h"

namespace tilepilot::testing {
namespace {

// Whether a launch over `rows` rows asked for threads.
bool asks_for_threads(const std::string& text, int64_t rows) {
  const auto kernel = compile(parse(text));
  if (kernel == nullptr) return false;
  Array x(ir::kFloat32, {rows, 64}), y(ir::kFloat32, {rows, 64});
  randomize(x, 1);
  bool asked = false;
  const Status status = kernel->launch({x.view(), y.view()},
                                       [&](int64_t count, const auto& body) {
                                         asked = true;
                                         body(0, count);
                                       },
                                       {});
  EXPECT_TRUE(status.ok());
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(y.as<float>()[i], 2 * x.as<float>()[i]);
  return asked;
}

constexpr const char* kDoubled =
    "program doubled<n: int32>(x: float32[n, 64], y: float32[n, 64]) {\n"
    "  kernel b in n threads 64 {\n"
    "    parallel i in 64 {\n"
    "      y[b, i] = x[b, i] * 2.0\n"
    "    }\n  }\n}\n";
// How far it goes is known when it runs.
constexpr const char* kFarther =
    "program doubled<n: int32>(x: float32[n, 64], y: float32[n, 64]) {\n"
    "  kernel b in 2 threads 64 {\n"
    "    serial row in (n + 1) // 2 {\n"
    "      if row * 2 + b < n {\n"
    "        parallel i in 64 {\n"
    "          y[row * 2 + b, i] = x[row * 2 + b, i] * 2.0\n"
    "        }\n      }\n    }\n  }\n}\n";

TEST(SmallLaunch, WakesNoThreads) {
  EXPECT_FALSE(asks_for_threads(kDoubled, 4));
  EXPECT_TRUE(asks_for_threads(kDoubled, 4000));
  EXPECT_TRUE(asks_for_threads(kFarther, 4));
}

}  // namespace
}  // namespace tilepilot::testing
