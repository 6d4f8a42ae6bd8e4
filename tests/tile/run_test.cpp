// Programs of both dialects, run through the CPU backend on plain arrays and compared with loops in C++.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "compiler/stage/tile/operators/tables.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

// Element (i, j) of the product of row-major [M, K] and [K, N].
double product(const ArrayObject& a, const ArrayObject& b, int64_t i, int64_t j) {
  int64_t inner = a.view.shape[1], columns = b.view.shape[1];
  double sum = 0;
  for (int64_t k = 0; k < inner; ++k) sum += a.at(i * inner + k) * b.at(k * columns + j);
  return sum;
}

constexpr const char* kStackedMatmul = R"(
def build(M, N, K, block=32, dtype="float16", out="float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, 16), dtype)
            b = T.alloc_shared((16, block), dtype)
            c = T.alloc_fragment((block, block), "float")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
                T.copy(A[by * block, k * 16], a)
                T.copy(B[k * 16, bx * block], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block, block):
                c[i, j] = T.if_then_else(c[i, j] > 0, c[i, j], c[i, j] * 0.1)
            T.copy(c, C[by * block, bx * block])
    return main
)";

double leaky(double x) { return x > 0 ? x : x * 0.1; }

TEST_F(Run, StackedMatmulWithFusedEpilogueOnEdgeTiles) {
  load(kStackedMatmul);
  // No extent is a multiple of its tile.
  auto a = random_array(ir::kFloat32, {50, 37}, 1), b = random_array(ir::kFloat32, {37, 70}, 2);
  auto c = call("build(50, 70, 37, dtype='float32', out='float32')(x0, x1)", {a, b});
  expect_near(c, 1e-5, [&](int64_t i) { return leaky(product(*a, *b, i / 70, i % 70)); });
  EXPECT_EQ(launches_, 1);
}

TEST_F(Run, HalfPrecisionMatmul) {
  load(kStackedMatmul);
  for (ir::DType type : {ir::kFloat16, ir::kBFloat16}) {
    auto a = random_array(type, {64, 48}, 3), b = random_array(type, {48, 32}, 4);
    auto c = call("build(64, 32, 48, dtype='" + ir::to_string(type) + "', out='float32')(x0, x1)", {a, b});
    expect_near(c, 1e-5, [&](int64_t i) { return leaky(product(*a, *b, i / 32, i % 32)); });
  }
}

TEST_F(Run, TransposedOperands) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def matmul(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((K, M), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((K, M), "float32")
            b = T.alloc_shared((N, K), "float32")
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_A=True, transpose_B=True, clear_accum=True)
            T.copy(c, C)
    return main
)");
  auto a = random_array(ir::kFloat32, {16, 32}, 5), b = random_array(ir::kFloat32, {24, 16}, 6);
  expect_near(call("matmul(32, 24, 16)(x0, x1)", {a, b}), 1e-5, [&](int64_t at) {
    double sum = 0;
    for (int64_t k = 0; k < 16; ++k) sum += a->at(k * 32 + at / 24) * b->at((at % 24) * 16 + k);
    return sum;
  });
}

TEST_F(Run, ProductsSayHowPreciseTheyAre) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def square(N, precision):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), C: T.Tensor((N, N), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((N, N), "float32")
            c = T.alloc_fragment((N, N), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, clear_accum=True, precision=precision)
            T.copy(c, C)
    return main
)");
  const auto a = random_array(ir::kFloat32, {16, 16}, 5);
  for (const char* precision : {"'fp32'", "'tf32'", "'ieee'", "None"})
    expect_near(call(fmt::format("square(16, {})(x0)", precision), {a}), 1e-5,
                [&](int64_t at) { return product(*a, *a, at / 16, at % 16); });
  EXPECT_THAT(failure("square(16, 'double')", {}), ::testing::HasSubstr("`double` is no precision"));
}

TEST_F(Run, EagerMatmulIsStagedOncePerShape) {
  load(R"(
@tilelang.jit
def matmul(A, B, block: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float32]
    B: T.Tensor[[K, N], T.float32]
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
        a = T.alloc_shared((block, block), T.float32)
        b = T.alloc_shared((block, block), T.float32)
        c = T.alloc_fragment((block, block), T.float32)
        T.clear(c)
        for k in range(T.ceildiv(K, block)):
            T.copy(A[by * block, k * block], a)
            T.copy(B[k * block, bx * block], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * block, bx * block])
    return C
)");
  auto a = random_array(ir::kFloat32, {40, 50}, 7), b = random_array(ir::kFloat32, {50, 60}, 8);
  for (int round = 0; round < 2; ++round)
    expect_near(call("matmul(x0, x1)", {a, b}), 1e-5, [&](int64_t i) { return product(*a, *b, i / 60, i % 60); });
  EXPECT_EQ(staged_, 1);
  EXPECT_EQ(launches_, 2);
  call("matmul(x0, x0)", {random_array(ir::kFloat32, {50, 50}, 9)});
  call("matmul(x0, x0, block=16)", {random_array(ir::kFloat32, {50, 50}, 9)});
  EXPECT_EQ(staged_, 3);
}

TEST_F(Run, SoftmaxOfRows) {
  load(R"(
@tilelang.jit(out_idx=[1])
def softmax(M, N, rows=8):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=64) as bx:
            x = T.alloc_fragment((rows, N), "float32")
            top = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(X[bx * rows, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] /= total[i]
            T.copy(x, Y[bx * rows, 0])
    return main
)");
  auto x = random_array(ir::kFloat32, {21, 33}, 10);
  expect_near(call("softmax(21, 33)(x0)", {x}), 1e-6, [&](int64_t at) {
    double sum = 0;
    for (int64_t j = 0; j < 33; ++j) sum += std::exp(x->at(at / 33 * 33 + j));
    return std::exp(x->at(at)) / sum;
  });
}

TEST_F(Run, ConvolutionWithAScalarAccumulatorForEachThread) {
  load(R"(
def build(N, C, H, W, O, R, threads=64, dtype="float16", accum_dtype="float"):
    P, Q = H - R + 1, W - R + 1
    total = N * O * P * Q

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def conv(X: T.Tensor((N, C, H, W), dtype), F: T.Tensor((O, C, R, R), dtype), Y: T.Tensor((N, O, P, Q), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            for t in T.Parallel(threads):
                index = bx * threads + t
                if index < total:
                    q = index % Q
                    p = (index // Q) % P
                    o = (index // (P * Q)) % O
                    n = index // (O * P * Q)
                    acc = T.alloc_local((1,), accum_dtype)
                    acc[0] = T.Cast(accum_dtype, 0)
                    for c, r, s in T.grid(C, R, R):
                        acc[0] += T.Cast(accum_dtype, X[n, c, p + r, q + s]) * T.Cast(accum_dtype, F[o, c, r, s])
                    Y[n, o, p, q] = T.Cast(dtype, T.max(acc[0], 0))
    return conv
)");
  auto x = random_array(ir::kFloat16, {2, 3, 7, 9}, 18), f = random_array(ir::kFloat16, {4, 3, 3, 3}, 19);
  expect_near(call("build(2, 3, 7, 9, 4, 3)(x0, x1)", {x, f}), 2e-3, [&](int64_t at) {
    int64_t q = at % 7, p = at / 7 % 5, o = at / 35 % 4, n = at / 140;
    double sum = 0;
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t s = 0; s < 3; ++s)
          sum += x->at(((n * 3 + c) * 7 + p + r) * 9 + q + s) * f->at(((o * 3 + c) * 3 + r) * 3 + s);
    return std::max(sum, 0.0);
  });
}

struct Reduction {
  const char* name;
  std::function<double(double, double)> step;
  double start;
};

TEST_F(Run, EveryReductionOnBothAxesAndOntoOldContent) {
  load(R"(
def build(name, M, N, dim, clear):
    reduce = {"sum": T.reduce_sum, "max": T.reduce_max, "min": T.reduce_min, "abssum": T.reduce_abssum,
              "absmax": T.reduce_absmax}[name]
    K = N if dim == 0 else M

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((K,), "float32")):
        with T.Kernel(1) as bx:
            x = T.alloc_fragment((M, N), "float32")
            y = T.alloc_fragment((K,), "float32")
            T.fill(y, 0.25)
            T.copy(X, x)
            reduce(x, y, dim=dim, clear=clear)
            T.copy(y, Y)
    return main
)");
  const Reduction reductions[] = {
      {"sum", [](double a, double b) { return a + b; }, 0},
      {"max", [](double a, double b) { return std::max(a, b); }, -INFINITY},
      {"min", [](double a, double b) { return std::min(a, b); }, INFINITY},
      {"abssum", [](double a, double b) { return a + std::fabs(b); }, 0},
      {"absmax", [](double a, double b) { return std::max(a, std::fabs(b)); }, 0},
  };
  auto x = random_array(ir::kFloat32, {12, 20}, 11);
  for (const Reduction& reduction : reductions)
    for (int dim : {0, 1})
      for (bool clear : {true, false}) {
        SCOPED_TRACE(std::string(reduction.name) + (dim ? " rows" : " columns") + (clear ? "" : " onto 0.25"));
        std::string form = std::string("build('") + reduction.name + "', 12, 20, " + std::to_string(dim) + ", " +
                           (clear ? "True" : "False") + ")(x0)";
        expect_near(call(form, {x}), 1e-5, [&](int64_t at) {
          double result = reduction.start;
          for (int64_t k = 0; k < (dim ? 20 : 12); ++k)
            result = reduction.step(result, x->at(dim ? at * 20 + k : k * 20 + at));
          return clear ? result : reduction.step(result, 0.25);
        });
      }
}

TEST_F(Run, ControlFlowStoresWhatPythonWould) {
  load(R"(
@tilelang.jit(out_idx=[1, 2])
def scan(N):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32"), C: T.Tensor((1,), "int32"), limit: T.float32):
        with T.Kernel(1, threads=1) as bx:
            total = T.alloc_var("float32", init=0)
            steps = T.alloc_var("int32", init=0)
            for i in range(N):
                total += X[i]
                if total > limit:
                    total = total - limit
                elif total < 0 and i % 2 == 1:
                    total = -total
                Y[i] = total if i < N - 1 else -1
            while total > 0.01:
                total = total / 2
                steps += 1
                if steps >= 100:
                    break
            C[0] = steps
    return main
)");
  auto x = random_array(ir::kFloat32, {40}, 12);
  auto results = evaluate("scan(40)(x0, 0.75)", {x});
  ASSERT_TRUE(results.ok()) << render(sources_, results.error());
  auto* items = sequence_items(*results);
  ASSERT_TRUE(items && items->size() == 2);
  float total = 0;
  std::vector<double> expected;
  for (int i = 0; i < 40; ++i) {
    total += static_cast<float>(x->at(i));
    if (total > 0.75f)
      total -= 0.75f;
    else if (total < 0 && i % 2 == 1)
      total = -total;
    expected.push_back(i < 39 ? double{total} : -1.0);
  }
  int steps = 0;
  for (; total > 0.01f && steps < 100; ++steps) total /= 2;
  expect_near((*items)[0].get_shared<ArrayObject>(), 1e-6, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
  EXPECT_EQ((*items)[1].get_if<ArrayObject>()->at(0), steps);
}

// Upstream's attention with sinks declares one element a head and uses one a row: registers hold them anyway.
TEST_F(Run, FragmentsHoldWhatIsPutIntoThem) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def spread(heads, block):
    @T.prim_func
    def main(S: T.Tensor((heads,), "float32"), O: T.Tensor((heads, block), "float32")):
        with T.Kernel(heads, threads=32) as by:
            sinks = T.alloc_fragment([heads], "float32")
            for i in T.Parallel(block):
                sinks[i] = S[by]
            for i in T.Parallel(block):
                O[by, i] = sinks[i] * 2.0
    return main
)");
  const auto sinks = random_array(ir::kFloat32, {2}, 7);
  expect_near(call("spread(2, 64)(x0)", {sinks}), 0, [&](int64_t at) { return 2 * sinks->at(at / 64); });
}

TEST_F(Run, SymbolicExtentsTakeTheTensorsShape) {
  load(R"(
m = T.dynamic("m")

@T.prim_func
def double(X: T.Tensor((m, 8), "float32"), Y: T.Tensor((m, 8), "float32")):
    with T.Kernel(T.ceildiv(m, 4)) as bx:
        for i, j in T.Parallel(4, 8):
            Y[bx * 4 + i, j] = X[bx * 4 + i, j] * 2

kernel = tilelang.compile(double, out_idx=[-1])
)");
  for (int64_t rows : {1, 4, 7}) {
    auto x = random_array(ir::kFloat32, {rows, 8}, 13);
    auto y = call("kernel(x0)", {x});
    ASSERT_TRUE(y);
    EXPECT_EQ(y->view.shape, (std::vector<int64_t>{rows, 8}));
    expect_near(y, 0, [&](int64_t i) { return x->at(i) * 2; });
  }
}

TEST_F(Run, FactoriesKeepTheirKernels) {
  load(R"(
@tilelang.jit(out_idx=-1)
def scale(N, factor, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(1) as bx:
            for i in T.Parallel(N):
                Y[i] = X[i] * factor
    return main
)");
  auto x = random_array(ir::kFloat32, {16}, 14);
  EXPECT_TRUE(holds("scale(16, 2.0) is scale(16, factor=2.0)"));
  EXPECT_FALSE(holds("scale(16, 2.0) is scale(16, 3.0)"));
  EXPECT_EQ(staged_, 2);
  expect_near(call("scale(16, 3.0)(x0)", {x}), 1e-6, [&](int64_t i) { return x->at(i) * 3; });
  auto source = evaluate("scale(16, 3.0).get_kernel_source()", {});
  ASSERT_TRUE(source.ok());
  EXPECT_NE(source->if_string()->find("tp_launch_0"), std::string::npos);
}

TEST_F(Run, WrongArgumentsAreNamed) {
  load(kStackedMatmul);
  auto a = random_array(ir::kFloat32, {32, 32}, 15), half = random_array(ir::kFloat16, {32, 32}, 16);
  std::string build = "build(32, 32, 32)";
  EXPECT_THAT(failure(build + "(x0)", {half}), ::testing::HasSubstr("wrong_arguments"));
  EXPECT_THAT(failure(build + "(x0, 3)", {half}), ::testing::HasSubstr("bad_kernel_argument: `B` of `main`"));
  EXPECT_THAT(failure(build + "(x0, x1)", {half, a}), ::testing::HasSubstr("bad_kernel_argument"));
  EXPECT_THAT(failure(build + "(x0, x1)", {half, random_array(ir::kFloat16, {32, 16}, 17)}),
              ::testing::HasSubstr("bad_kernel_argument"));
}

TEST_F(Run, TheTableOfNamesIsWhatTheModuleHas) {
  load("");
  for (const TileName& name : tile_names()) {
    EXPECT_FALSE(name.summary.empty()) << name.name;
    EXPECT_TRUE(evaluate("T." + std::string(name.name), {}).ok()) << name.name;
    EXPECT_FALSE(unsupported_advice(name.name)) << name.name << " is refused in one place and offered in another";
    EXPECT_FALSE(foreign_advice(name.name)) << name.name << " is there, and is told to be written otherwise";
  }
}

// What is advised in the place of another library's name is there.
TEST_F(Run, NamesOfOtherLibrariesAreAnsweredByWhatThereIs) {
  load("");
  size_t advised = 0;
  for (const UnsupportedNames& group : foreign_names()) {
    const std::string_view advice = group.advice;
    for (size_t at = advice.find("T."); at != std::string_view::npos; at = advice.find("T.", at + 2), ++advised) {
      const std::string_view rest = advice.substr(at + 2);
      const std::string name(rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzPK0123456789_")));
      EXPECT_TRUE(evaluate("T." + name, {}).ok()) << "T." << name << " in: " << advice;
    }
  }
  EXPECT_GT(advised, 40u);
  EXPECT_THAT(failure("T.silu", {}), ::testing::HasSubstr("unknown_tile_name"));
}

}  // namespace
}  // namespace tilepilot::stage
