#include <cmath>

#include <fmt/format.h>

#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

constexpr const char* kSoftmax = R"(program softmax(x: float32[37, 1000], y: float32[37, 1000]) {
  kernel bx in 10 threads 128 {
    fragment t: float32[4, 1024]
    fragment m: float32[4]
    fragment s: float32[4]
    parallel i, j in 4, 1024 {
      t[i, j] = select(j < 1000, x[bx * 4 + i, j], -inf)
    }
    reduce max t -> m axis 1
    parallel i, j in 4, 1024 {
      t[i, j] = exp(t[i, j] - m[i])
    }
    reduce sum t -> s axis 1
    parallel i, j in 4, 1024 {
      t[i, j] = t[i, j] / s[i]
    }
    copy t -> y[bx * 4 : +4, 0 : 1024]
  }
}
)";

TEST(ProgramsTest, SoftmaxWithEdges) {
  Array x(ir::kFloat32, {37, 1000}), y(ir::kFloat32, {37, 1000});
  randomize(x, 1);
  const ir::Program program = parse(kSoftmax);
  run(program, {x.view(), y.view()});
  for (int r = 0; r < 37; ++r) {
    const float* row = x.as<float>() + r * 1000;
    double sum = 0, largest = -INFINITY;
    for (int c = 0; c < 1000; ++c) largest = std::max<double>(largest, row[c]);
    for (int c = 0; c < 1000; ++c) sum += std::exp(row[c] - largest);
    for (int c = 0; c < 1000; ++c)
      ASSERT_NEAR(y.as<float>()[r * 1000 + c], std::exp(row[c] - largest) / sum, 1e-7) << r << ", " << c;
  }
}

struct GemmCase {
  const char* a_shape;
  const char* b_shape;
  const char* flags;
  std::vector<int64_t> a, b;
};

class GemmTest : public ::testing::TestWithParam<int> {};

TEST_P(GemmTest, EdgesAndTransposes) {
  constexpr int64_t M = 150, N = 90, K = 70;
  const bool ta = GetParam() & 1, tb = GetParam() & 2;
  const std::string text =
      fmt::format(R"(program gemm(a: float32[{}, {}], b: float32[{}, {}], c: float32[{}, {}]) {{
  kernel bx, by in 3, 3 threads 128 {{
    shared ta: float32[{}]
    shared tb: float32[{}]
    fragment tc: float32[64, 40]
    fill tc = 0.0
    pipelined k in 3 stages 2 {{
      copy a[{}] -> ta
      copy b[{}] -> tb
      gemm tc += ta{} @ tb{}
    }}
    copy tc -> c[by * 64 : +64, bx * 40 : +40]
  }}
}}
)",
                  ta ? K : M, ta ? M : K, tb ? N : K, tb ? K : N, M, N, ta ? "32, 64" : "64, 32",
                  tb ? "40, 32" : "32, 40", ta ? "k * 32 : +32, by * 64 : +64" : "by * 64 : +64, k * 32 : +32",
                  tb ? "bx * 40 : +40, k * 32 : +32" : "k * 32 : +32, bx * 40 : +40", ta ? ".T" : "", tb ? ".T" : "");
  Array a(ir::kFloat32, {ta ? K : M, ta ? M : K}), b(ir::kFloat32, {tb ? N : K, tb ? K : N}), c(ir::kFloat32, {M, N});
  randomize(a, 1);
  randomize(b, 2);
  run(parse(text), {a.view(), b.view(), c.view()});
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < K; ++k)
        sum +=
            static_cast<double>(a.as<float>()[ta ? k * M + m : m * K + k]) * b.as<float>()[tb ? n * K + k : k * N + n];
      ASSERT_NEAR(c.as<float>()[m * N + n], sum, 1e-4) << m << ", " << n;
    }
}
INSTANTIATE_TEST_SUITE_P(Transposes, GemmTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace tilepilot::testing
