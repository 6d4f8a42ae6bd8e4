// Layouts as values, and what annotating with them says.
#include <gmock/gmock.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class Layouts : public Run {};

TEST_F(Layouts, AreFunctionsOfIndices) {
  load(R"(
layout = T.Layout((8, 16), lambda i, j: [j // 4, i, j % 4])
fragment = T.Fragment((8, 16), forward_fn=lambda i, j: (i * 4 + j // 4, j % 4))
flat = tilelang.layout.Layout((8, 16), lambda i, j: i * 16 + j)
)");
  EXPECT_TRUE(holds("layout.get_input_shape() == [8, 16]"));
  EXPECT_TRUE(holds("layout.get_output_shape() == [4, 8, 4]"));
  EXPECT_TRUE(holds("layout(3, 9) == [2, 3, 1]"));
  EXPECT_TRUE(holds("flat.map_forward_index([2, 5]) == [37]"));
  EXPECT_TRUE(holds("fragment.map_forward_index([2, 5]) == [1]"));
  EXPECT_THAT(failure("layout(1)", {}), HasSubstr("a layout of 2 axes is given 1 indices"));
  EXPECT_THAT(failure("T.Layout((8, 16), lambda i: i)", {}), HasSubstr("positional argument"));
}

// Names in the function of a layout stand for expressions of its indices, also within a kernel.
TEST_F(Layouts, MayBeFunctionsWithNames) {
  load(R"(
found = []

def swizzled(i, j):
    piece, within = j // 8, j % 8
    piece = piece ^ i % 4
    return i, piece * 8 + within

@tilelang.jit(out_idx=[-1])
def places():
    @T.prim_func
    def main(B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=64) as _:
            found.append(T.Layout((16, 32), swizzled).map_forward_index([3, 9]))
            T.clear(B)
    return main

places()
)");
  EXPECT_TRUE(holds("found[0] == [3, (1 ^ 3) * 8 + 1]"));
}

constexpr const char* kAnnotated = R"(
@tilelang.jit(out_idx=[-1])
def scale(which):
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((16, 32), "float32")
            if which == 0:
                T.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})
            elif which == 1:
                T.annotate_layout({s: T.Layout(s.shape, lambda i, j: i * 32 + (j + i) % 32), B: lambda i, j: [j, i]})
            elif which == 2:
                T.annotate_layout({s: 3})
            elif which == 3:
                T.annotate_layout({s: T.Layout((16,), lambda i: i)})
            elif which == 4:
                T.annotate_layout(s)
            elif which == 7:
                T.annotate_layout({s: T.Layout((8, 32), lambda i, j: i * 32 + j)})
            elif which == 5:
                T.annotate_layout({s: lambda i, j: i * 32 + j + T.cast(A[0, 0], "int32")})
            else:
                T.annotate_layout({s: T.Fragment(s.shape, forward_fn=lambda i, j: (i, j))})
            T.copy(A, s)
            for i, j in T.Parallel(16, 32):
                B[i, j] = s[i, j] * 2.0
    return main
)";

TEST_F(Layouts, AreKnownByName) {
  load(R"(
quads = tilelang.layout.make_gemm_fragment_8x8()
found = []

@tilelang.jit(out_idx=[-1])
def places(make, columns):
    @T.prim_func
    def main(B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((16, columns), "float16")
            layout = make(s)
            found.append([layout.map_forward_index([i, j])[0] for i, j in ((3, 0), (3, 8), (2, 40))])
            T.clear(B)
    return main

for make in ("linear", "swizzled", "half_bank_swizzled"):
    places(getattr(tilelang.layout, "make_" + make + "_layout"), 64)
)");
  // Pieces of 8 elements trade places by the number of the row; panels of 32 columns lie one after the other.
  EXPECT_TRUE(holds("found[0] == [192, 200, 168]"));
  EXPECT_TRUE(holds("found[1] == [192 + 24, 192 + 16, 128 + 8 * (5 ^ 2)]"));
  EXPECT_TRUE(holds("found[2] == [96 + 8, 96, 512 + 64 + 8 * (1 ^ 1)]"));
  EXPECT_TRUE(holds("quads.map_forward_index([3, 5]) == [1]"));
  EXPECT_THAT(failure("places(tilelang.layout.make_full_bank_swizzled_layout, 40)", {}),
              HasSubstr("cannot be swizzled within 128 bytes: rows of 640 bits are no multiple of 128 bytes"));
}

TEST_F(Layouts, OfTilesChangeNoResult) {
  load(kAnnotated);
  auto a = random_array(ir::kFloat32, {16, 32}, 1);
  for (const char* call_text : {"scale(0)(x0)", "scale(1)(x0)"})
    expect_near(call(call_text, {a}), 0, [&](int64_t i) { return a->at(i) * 2; });
  EXPECT_THAT(render(sources_, interpreter_.diagnostics()), HasSubstr("the layout of the tensor `B` is not used"));
}

TEST_F(Layouts, Errors) {
  load(kAnnotated);
  EXPECT_THAT(failure("scale(2)", {}), HasSubstr("the layout of `s` is a `int`"));
  EXPECT_THAT(failure("scale(3)", {}), HasSubstr("a layout of 1 axes for `s`"));
  EXPECT_THAT(failure("scale(4)", {}), HasSubstr("takes a dict, not a `buffer`"));
  EXPECT_THAT(failure("scale(5)", {}), HasSubstr("the layout of `s` depends on more than where the element stands"));
  EXPECT_THAT(failure("scale(6)", {}), HasSubstr("`s` lies in shared memory: no thread holds it"));
  EXPECT_THAT(failure("scale(7)", {}), HasSubstr("a layout of 8 elements along axis 0 of `s`, which has 16"));
  EXPECT_THAT(failure("T.Fragment((8,), forward_thread_fn=lambda i: [i, 0])", {}),
              HasSubstr("has one thread, and this gives 2"));
  EXPECT_THAT(failure("T.Layout((8, 16), lambda i, j: [])", {}), HasSubstr("a layout gives no index"));
  EXPECT_THAT(failure("T.Fragment((8,), forward_thread_fn=lambda i, r: r, replicate=1 << 40)", {}),
              HasSubstr("a fragment has 1099511627776 replicas"));
}

}  // namespace
}  // namespace tilepilot::stage
