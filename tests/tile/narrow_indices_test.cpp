// Starts of regions and bounds of loops that are integers of 8 and 16 bits: what is added to them does not wrap there.
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class NarrowIndices : public Run {
 protected:
  NarrowIndices() : Run(checked_backend()) {}

  // 600 numbers, of which a body of the program takes some to `Y`; `P` are the numbers 17, 100, 5 and 3 of that type.
  Array of(const char* type, const std::string& body) {
    load(std::string(R"(
@tilelang.jit
@T.prim_func
def kernel(X: T.Tensor((600,), "float32"), P: T.Tensor((4,), ")") +
         type + R"("), Y: T.Tensor((600,), "float32")):
    with T.Kernel(1, threads=32):
        tile = T.alloc_fragment((300,), "float32")
)" + body);
    const Array x = testing::make_array(ir::kFloat32, {600}, [](int64_t i) { return i + 1; });
    const Array p = testing::make_array(*ir::parse_dtype(type), {4}, [](int64_t i) {
      constexpr double kNumbers[] = {17, 100, 5, 3};
      return kNumbers[i];
    });
    const Array y = testing::make_array(ir::kFloat32, {600}, [](int64_t) { return 0; });
    call("kernel(x0, x1, x2)", {x, p, y});
    return y;
  }
};

constexpr const char* kTypes[] = {"uint8", "int8", "int16"};

TEST_F(NarrowIndices, StartRegions) {
  for (const char* type : kTypes) {
    SCOPED_TRACE(type);
    const Array y = of(type, "        T.copy(X[P[0] * 16], tile)\n        T.copy(tile, Y[P[1]])\n");
    for (int64_t i = 0; i < 300; ++i) ASSERT_EQ(y->at(100 + i), 272 + i + 1) << i;
    EXPECT_EQ(y->at(99), 0);
    const Array filled = of(type, "        T.fill(Y[P[1] : P[1] + 250], 7.0)\n");
    for (int64_t i = 0; i < 600; ++i) ASSERT_EQ(filled->at(i), i >= 100 && i < 350 ? 7 : 0) << i;
  }
}

TEST_F(NarrowIndices, BoundLoops) {
  for (const char* type : kTypes)
    for (const char* loop : {"T.serial(P[3], P[1] * 4)", "range(P[3], P[1] * 4)", "T.Pipelined(P[3], P[1] * 4)"}) {
      SCOPED_TRACE(std::string(type) + " " + loop);
      const Array y = of(type, std::string("        for k in ") + loop + ":\n            Y[k] = X[k] * 2.0\n");
      for (int64_t i = 0; i < 600; ++i) ASSERT_EQ(y->at(i), i >= 3 && i < 400 ? 2 * (i + 1) : 0) << i;
    }
}

}  // namespace
}  // namespace tilepilot::stage
