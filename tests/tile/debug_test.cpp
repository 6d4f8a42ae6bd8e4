// What programs print while they run, and launches that fail because of what programs check.
#include <gmock/gmock.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class Debug : public Run {
 protected:
  std::string printed(const std::string& expression, const std::vector<Array>& arrays) {
    std::string all;
    interpreter_.set_print([&](const std::string& text) { all += text; });
    EXPECT_EQ(failure(expression, arrays), "");
    return all;
  }
};

constexpr const char* kPrints = R"(
@tilelang.jit
def show(A, which):
    A: T.Tensor[[4], "float32"]
    with T.Kernel(2, threads=(32, 2)) as bx:
        s = T.alloc_shared((2, 2), "int32")
        f = T.alloc_fragment((2,), "float16")
        tx = T.get_thread_binding()
        if which == "value":
            if tx == 3:
                T.print(tx * 2 + bx, msg="100% \"it\"")
        elif which == "message":
            if tx == 0 and T.get_thread_binding(1) == 1:
                T.print(msg="here")
        elif which == "shared":
            for i, j in T.Parallel(2, 2):
                s[i, j] = i * 10 + j
            T.print(s, warp_id=0)
        elif which == "fragment":
            T.fill(f, 0.5)
            T.print(f, "half")
        elif which == "nothing":
            T.print()
)";

TEST_F(Debug, Prints) {
  load(kPrints);
  auto a = random_array(ir::kFloat32, {4}, 1);
  EXPECT_EQ(printed("show(x0, 'value')", {a}),
            "msg='100% \"it\"' BlockIdx=(0, 0, 0), ThreadIdx=(3, 0, 0): dtype=int value=6\n"
            "msg='100% \"it\"' BlockIdx=(0, 0, 0), ThreadIdx=(3, 1, 0): dtype=int value=6\n"
            "msg='100% \"it\"' BlockIdx=(1, 0, 0), ThreadIdx=(3, 0, 0): dtype=int value=7\n"
            "msg='100% \"it\"' BlockIdx=(1, 0, 0), ThreadIdx=(3, 1, 0): dtype=int value=7\n");
  EXPECT_EQ(printed("show(x0, 'message')", {a}),
            "msg='here' BlockIdx=(0, 0, 0), ThreadIdx=(0, 1, 0)\n"
            "msg='here' BlockIdx=(1, 0, 0), ThreadIdx=(0, 1, 0)\n");
  const std::string shared = printed("show(x0, 'shared')", {a});
  EXPECT_THAT(shared, HasSubstr("msg='buffer<s, int32>' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0): buffer=s, index=2, "
                                "dtype=int value=10\n"));
  EXPECT_EQ(std::count(shared.begin(), shared.end(), '\n'), 8);
  EXPECT_THAT(printed("show(x0, 'fragment')", {a}),
              HasSubstr("msg='half' BlockIdx=(1, 0, 0), ThreadIdx=(0, 0, 0): buffer=f, index=1, dtype=half_t "
                        "value=0.500000\n"));
  EXPECT_THAT(failure("show(x0, 'nothing')", {a}), HasSubstr("`T.print` has nothing to print"));
}

TEST_F(Debug, ChecksFailTheLaunch) {
  load(R"(
@tilelang.jit
def checked(A, which):
    A: T.Tensor[[4, 32], "float32"]
    with T.Kernel(4, threads=32) as bx:
        if which == "tile":
            for i in T.Parallel(32):
                T.device_assert(A[bx, i] < 10.0, "too large")
        elif which == "thread":
            tx = T.get_thread_binding()
            assert A[bx, tx] < 10.0, f"of row {bx}"
            A[bx, tx] = 0.0
        elif which == "block":
            T.device_assert(A[bx, 3] < 10.0)
)");
  const auto array = [](double at_two) {
    return testing::make_array(ir::kFloat32, {4, 32}, [=](int64_t i) { return i == 2 * 32 + 3 ? at_two : 1.0; });
  };
  for (const char* style : {"checked(x0, 'tile')", "checked(x0, 'thread')", "checked(x0, 'block')"})
    EXPECT_EQ(failure(style, {array(2)}), "");
  EXPECT_EQ(failure("checked(x0, 'tile')", {array(20)}), "assertion_failed: assertion failed: too large (block 2)");
  EXPECT_EQ(failure("checked(x0, 'thread')", {array(20)}), "assertion_failed: assertion failed: of row bx (block 2)");
  EXPECT_EQ(failure("checked(x0, 'block')", {array(20)}), "assertion_failed: assertion failed (block 2)");
}

}  // namespace
}  // namespace tilepilot::stage
