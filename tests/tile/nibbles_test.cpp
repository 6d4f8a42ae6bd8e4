// Types of 4 bits and tfloat32: how tensors hold them, what tiles of them compute, how they look by other types.
#include <fmt/format.h>

#include <cmath>

#include "tests/tile/checked_backend.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class Nibbles : public Run {
 protected:
  Nibbles() : Run(checked()) {}
  static runtime::KernelBackend& checked() {
    static testing::CheckedBackend instance(backend());
    return instance;
  }
  // Bytes that count up from a number that is no multiple of 16, so that both halves differ.
  static Array bytes(std::vector<int64_t> shape) {
    return testing::make_array(ir::kUInt8, std::move(shape), [](int64_t i) { return double((i * 37 + 19) % 256); });
  }
  static int code(const Array& packed, int64_t element) {
    return (int(packed->at(element / 2)) >> (element % 2 * 4)) & 15;
  }
  static double int4(int code) { return code < 8 ? code : code - 16; }
};

constexpr double kFloat4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

constexpr const char* kCopies = R"(
@tilelang.jit(out_idx=[-1])
def unpack(dtype, M, N, block):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            s = T.alloc_shared((M, block), dtype)
            T.copy(A[0, bx * block], s)
            T.copy(s, B[0, bx * block])
    return main

@tilelang.jit(out_idx=[-1])
def pack(dtype, M, N, block):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            s = T.alloc_fragment((M, block), dtype)
            for i, j in T.Parallel(M, block):
                s[i, j] = A[i, bx * block + j]
            T.copy(s, B[0, bx * block])
    return main
)";

TEST_F(Nibbles, TheFirstElementIsInTheLowerHalf) {
  load(kCopies);
  const Array packed = bytes({4, 25});
  for (const int64_t block : {10, 16, 7}) {
    const auto call_of = [&](const char* type) {
      return call("unpack('" + std::string(type) + "', 4, 50, " + std::to_string(block) + ")(x0)", {packed});
    };
    expect_near(call_of("int4"), 0, [&](int64_t i) { return int4(code(packed, i)); });
    expect_near(call_of("uint4"), 0, [&](int64_t i) { return code(packed, i); });
    expect_near(call_of("float4_e2m1fn"), 0, [&](int64_t i) { return kFloat4[code(packed, i)]; });
  }
}

TEST_F(Nibbles, WhatIsUnpackedPacksAgain) {
  load(kCopies);
  const Array packed = bytes({4, 25});
  for (const char* type : {"int4", "uint4", "float4_e2m1fn"}) {
    for (const char* block : {"10", "7"}) {
      const std::string arguments = fmt::format("('{}', 4, 50, {})(x0)", type, block);
      const Array wide = call("unpack" + arguments, {packed});
      expect_near(call("pack" + arguments, {wide}), 0, [&](int64_t i) { return packed->at(i); });
    }
  }
}

TEST_F(Nibbles, ConversionsToFloat4SaturateAndRoundToEven) {
  load(kCopies);
  const double given[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, 100, -0.3, -INFINITY, -2.5, 0.2, 6, NAN, 1};
  const int codes[] = {0, 2, 2, 4, 4, 6, 6, 7, 7, 9, 15, 12, 0, 7, 7, 2};
  const Array wide = testing::make_array(ir::kFloat32, {1, 16}, [&](int64_t i) { return given[i]; });
  const Array packed = call("pack('float4_e2m1fn', 1, 16, 16)(x0)", {wide});
  ASSERT_TRUE(packed);
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(code(packed, i), codes[i]) << given[i];
}

TEST_F(Nibbles, Products) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def product(dtype, accum, M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), accum)):
        with T.Kernel(1, threads=64) as _:
            a = T.alloc_shared((M, 16), dtype)
            b = T.alloc_shared((N, 16), dtype)
            c = T.alloc_fragment((M, N), accum)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
                T.copy(A[0, k * 16], a)
                T.copy(B[0, k * 16], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)
    return main
)");
  const Array a = bytes({8, 20}), b = bytes({12, 20});
  const auto expected = [&](auto value) {
    return [&, value](int64_t i) {
      double sum = 0;
      for (int64_t k = 0; k < 40; ++k) sum += value(code(a, i / 12 * 40 + k)) * value(code(b, i % 12 * 40 + k));
      return sum;
    };
  };
  expect_near(call("product('int4', 'int32', 8, 12, 40)(x0, x1)", {a, b}), 0, expected(int4));
  expect_near(call("product('float4_e2m1fn', 'float32', 8, 12, 40)(x0, x1)", {a, b}), 0,
              expected([](int code) { return kFloat4[code]; }));
}

TEST_F(Nibbles, BytesAndTheirHalvesAreViewsOfEachOther) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def halves(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "uint8"), B: T.Tensor((2 * N,), "int32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((N,), "uint8")
            T.copy(A, s)
            v = T.view(s, (2 * N,), dtype="int4")
            w = T.view(s, (2 * N,), dtype="uint4")
            for i in T.Parallel(2 * N):
                v[i] = v[i] + 1
            for i in T.Parallel(2 * N):
                B[i] = T.cast(v[i], "int32") * 100 + T.cast(w[i], "int32")
    return main

@tilelang.jit(out_idx=[-1])
def whole(N):
    @T.prim_func
    def main(A: T.Tensor((2 * N,), "int32"), B: T.Tensor((N,), "uint8")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_fragment((2 * N,), "uint4")
            for i in T.Parallel(2 * N):
                s[i] = A[i]
            T.copy(T.view(s, (N,), dtype="uint8"), B)
    return main
)");
  const Array packed = bytes({32});
  expect_near(call("halves(32)(x0)", {packed}), 0, [&](int64_t i) {
    const int next = (code(packed, i) + 1) & 15;
    return int4(next) * 100 + next;
  });
  const Array codes = testing::make_array(ir::kInt32, {64}, [&](int64_t i) { return double(code(packed, i)); });
  expect_near(call("whole(32)(x0)", {codes}), 0, [&](int64_t i) { return packed->at(i); });
}

TEST_F(Nibbles, SizesCountElements) {
  load(R"(
@tilelang.jit
def sum_rows(x):
    M, N = T.const("M, N")
    x: T.Tensor[[M, N], T.int4]
    y = T.empty((M,), T.int32)
    with T.Kernel(M, threads=32) as m:
        row = T.alloc_fragment((1, N), T.int4)
        total = T.alloc_fragment((1,), T.int32)
        T.copy(x[m, 0], row)
        T.reduce_sum(row, total, dim=1)
        y[m] = total[0]
    return y

@tilelang.jit(out_idx=[-1])
def negated():
    n = T.dynamic("n")
    @T.prim_func
    def main(x: T.Tensor((n,), "int4"), y: T.Tensor((n,), "int4")):
        with T.Kernel(T.ceildiv(n, 6), threads=32) as b:
            for i in T.serial(6):
                if b * 6 + i < n:
                    y[b * 6 + i] = -x[b * 6 + i]
    return main
)");
  const Array packed = bytes({3, 11});
  expect_near(call("sum_rows(x0)", {packed}), 0, [&](int64_t row) {
    double sum = 0;
    for (int64_t k = 0; k < 22; ++k) sum += int4(code(packed, row * 22 + k));
    return sum;
  });
  const Array line = bytes({11}), negated = call("negated()(x0)", {line});
  ASSERT_TRUE(negated);
  ASSERT_EQ(negated->size(), 11);
  for (int64_t i = 0; i < 22; ++i) EXPECT_EQ(code(negated, i), (16 - code(line, i)) & 15) << i;
}

TEST_F(Nibbles, fail_OtherTensors) {
  load(kCopies);
  const Array floats = random_array(ir::kFloat32, {4, 25}, 1), narrow = bytes({4, 50});
  EXPECT_EQ(failure("unpack('int4', 4, 50, 10)(x0)", {floats}),
            "bad_kernel_argument: argument `A` must have dtype `int4`, got `float32`");
  EXPECT_EQ(failure("unpack('int4', 4, 50, 10)(x0)", {narrow}),
            "bad_kernel_argument: argument `A` must have shape (4, 50), got (4, 100)");
  EXPECT_EQ(failure("unpack('tfloat32', 4, 50, 10)(x0)", {narrow}),
            "bad_kernel_argument: argument `A` must have dtype `tfloat32`, got `uint8`");
}

TEST_F(Nibbles, TensorFloatsKeepTenBits) {
  load(kCopies);
  const double given[] = {1,
                          1 + std::ldexp(1, -10),
                          1 + std::ldexp(1, -11),
                          1 + std::ldexp(1, -12),
                          -1 - std::ldexp(3, -11),
                          1e-3,
                          INFINITY,
                          65536.0 * 3};
  const auto rounded = [](double x) {
    int exponent = 0;
    std::frexp(x, &exponent);
    return std::isinf(x) ? x : std::ldexp(std::round(std::ldexp(x, 11 - exponent)), exponent - 11);
  };
  const Array wide = testing::make_array(ir::kFloat32, {1, 8}, [&](int64_t i) { return given[i]; });
  const Array kept = call("pack('tfloat32', 1, 8, 8)(x0)", {wide});
  ASSERT_TRUE(kept);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(kept->at(i), rounded(double{float(given[i])})) << given[i];
  EXPECT_EQ(kept->view.type, ir::kFloat32);
}

TEST_F(Nibbles, NamesOfTypes) {
  load("from tilelang.language.fp8 import determine_fp8_type, determine_torch_fp8_type\nimport torch");
  for (const char* fact :
       {"T.int4.bits == 4 and T.int4.bytes == 1", "T.float4_e2m1fn.is_float4()", "not T.int4.is_float4()",
        "T.dtype('uint4') == T.uint4", "T.tfloat32 == 'tfloat32'", "T.int4 != T.uint4",
        "determine_fp8_type() == T.float8_e4m3fn", "determine_fp8_type('e5m2') == 'float8_e5m2'",
        "T.fp8.determine_fp8_type(fp8_format='e5m2') == T.float8_e5m2", "T.tfloat32.as_torch() == torch.float32",
        "T.int4.as_torch() == torch.int8", "determine_torch_fp8_type() == torch.float8_e4m3fn",
        "T.float16.as_torch() == torch.float16 and T.float16 == torch.float16"})
    EXPECT_TRUE(holds(fact)) << fact;
}

}  // namespace
}  // namespace tilepilot::stage
