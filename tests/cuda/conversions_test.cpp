// Tiles that one statement wants held otherwise than another: in the emulator the same results as the interpreter's,
// for both architectures, by shuffles where they serve.
#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/text/text.h"
#include "compiler/runtime/arguments.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

// Columns that follow each other at distances of powers of two are added up, unless that carries: 3 and 6 have a bit in
// common.
TEST(Conversions, FunctionsOfTheLaneAreTheirExpressions) {
  std::vector<layout::LaneFunction> all{{0, {1, 2, 4, 8, 16}}, {0, {3, 6, 0, 0, 0}},  {0, {3, 6, 12, 24, 0}},
                                        {5, {1, 2, 4, 8, 16}}, {0, {1, 2, 1, 2, 4}},  {31, {16, 8, 4, 2, 1}},
                                        {0, {0, 0, 1, 2, 4}},  {8, {4, 8, 16, 0, 1}}, {2, {5, 10, 20, 3, 6}}};
  std::mt19937 random(1);
  for (int k = 0; k < 200; ++k) {
    layout::LaneFunction& one = all.emplace_back();
    one.base = random() % 32;
    for (int64_t& column : one.columns) column = random() % 32;
  }
  const ir::Var thread = ir::make_var("thread", ir::kInt32);
  for (const layout::LaneFunction& function : all) {
    const ir::Expr value = targets::gpu::lane_value(function, ir::var_ref(thread));
    for (int64_t number = 0; number < 128; ++number)
      ASSERT_EQ(runtime::evaluate(value, {{thread.get(), {number, number}}}), function(number % 32))
          << ir::to_text(value) << " of thread " << number;
  }
}

// What one product left, pairs of columns to a lane, is single columns for the next.
TEST(Conversions, OperandsChangeLanes) {
  const std::string source =
      expect_interpreted(R"(program f(a: int8[64, 32], b: int8[32, 32], w: int8[32, 32], c: float32[64, 32]) {
  kernel bx in 1 threads 128 {
    shared a_tile: int8[64, 32]
    shared b_tile: int8[32, 32]
    shared v_tile: tfloat32[32, 32]
    fragment s: int32[64, 32]
    fragment p: tfloat32[64, 32]
    fragment sums: float32[64, 32]
    copy a -> a_tile
    copy b -> b_tile
    parallel i, j in 32, 32 {
      v_tile[i, j] = tfloat32(w[i, j] % 3)
    }
    fill s = 0
    gemm s += a_tile @ b_tile.T policy full_row
    parallel i, j in 64, 32 {
      p[i, j] = tfloat32(s[i, j] % 5)
    }
    fill sums = 0.0
    gemm sums += p @ v_tile policy full_row
    copy sums -> c
  }
})");
  EXPECT_NE(source.find("= shuffle("), std::string::npos) << source;
  EXPECT_EQ(source.find("p_tile"), std::string::npos) << source;
}

// Those of 8 bits would have to be unpacked and packed.
TEST(Conversions, ManyNarrowWordsGoThroughSharedMemory) {
  const std::string source =
      expect_interpreted(R"(program f(a: int8[64, 32], b: int8[64, 32], v: int8[64, 32], c: int32[64, 32]) {
  kernel bx in 1 threads 128 {
    shared a_tile: int8[64, 32]
    shared b_tile: int8[64, 32]
    shared v_tile: int8[64, 32]
    fragment s: int32[64, 64]
    fragment p: int8[64, 64]
    fragment sums: int32[64, 32]
    copy a -> a_tile
    copy b -> b_tile
    copy v -> v_tile
    fill s = 0
    gemm s += a_tile @ b_tile.T policy full_row
    copy s -> p
    fill sums = 0
    gemm sums += p @ v_tile policy full_row
    copy sums -> c
  }
})");
  EXPECT_EQ(source.find("= shuffle("), std::string::npos) << source;
}

// A few do not.
TEST(Conversions, FewNarrowWordsChangeLanes) {
  const std::string source = expect_interpreted(R"(program f(x: float16[16, 64], a: float16[16, 16], y: float16[16]) {
  kernel bx in 1 threads 32 {
    shared a_tile: float16[16, 16]
    fragment s: float32[16, 16]
    fragment t: float16[16, 64]
    fragment most: float32[16]
    fragment sum: float16[16]
    copy a -> a_tile
    fill s = 0.0
    gemm s += a_tile @ a_tile.T
    reduce max s -> most axis 1
    copy x -> t
    reduce max t -> sum axis 1
    parallel i in 16 {
      sum[i] = sum[i] + float16(most[i])
    }
    copy sum -> y
  }
})");
  EXPECT_NE(source.find("const uint16_t other_"), std::string::npos) << source;
}

// Of one warp: rows that lanes hold in two ways, and both of them written.
TEST(Conversions, ResultsOfReductionsChangeLanes) {
  const std::string source =
      expect_interpreted(R"(program f(a: float16[16, 16], x: float32[16, 32], y: float32[16], z: float32[16]) {
  kernel bx in 1 threads 32 {
    shared a_tile: float16[16, 16]
    fragment s: float32[16, 16]
    fragment t: float32[16, 32]
    fragment most: float32[16]
    fragment sum: float32[16]
    copy a -> a_tile
    fill s = 0.0
    gemm s += a_tile @ a_tile.T
    reduce max s -> most axis 1
    copy x -> t
    reduce sum t -> sum axis 1
    parallel i in 16 {
      most[i] = most[i] + sum[i]
      sum[i] = most[i] * 2.0
    }
    copy most -> y
    copy sum -> z
  }
})");
  EXPECT_NE(source.find("= shuffle("), std::string::npos) << source;
  EXPECT_EQ(source.find("_tile = shared_tile<float>"), std::string::npos) << source;
}

TEST(Conversions, WhatCrossesWarpsGoesThroughSharedMemory) {
  const std::string source = expect_interpreted(R"(program f(x: float32[64, 32], y: float32[64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    fragment s: float32[64, 64]
    fragment t: float32[64, 32]
    fragment most: float32[64]
    fragment sum: float32[64]
    copy x -> t
    copy t -> a_tile
    fill s = 0.0
    gemm s += a_tile @ a_tile.T policy full_row
    reduce max s -> most axis 1
    reduce sum t -> sum axis 1
    parallel i in 64 {
      most[i] = most[i] + sum[i]
    }
    copy most -> y
  }
})");
  EXPECT_NE(source.find("sum_tile = shared_tile<float>"), std::string::npos) << source;
}

// A tile that is filled slice by slice: what has not been written yet is not copied along.
TEST(Conversions, SlicesComeBackAlone) {
  const std::string source =
      expect_interpreted(R"(program f(a: float32[3, 32, 16], c: float32[32, 16], d: float32[32, 16]) {
  kernel bx in 1 threads 64 {
    fragment slabs: float32[3, 32, 16]
    fragment columns: float32[32, 16]
    fragment s: float32[32, 16]
    fragment r: float32[32]
    fragment sums: float32[32, 16]
    serial t in 3 {
      copy a[t, 0 : 32, 0 : 16] -> s
      parallel i, j in 32, 16 {
        slabs[t, i, j] = s[i, j]
      }
    }
    reduce sum slabs -> sums axis 0
    copy sums -> c
    serial t in 16 {
      copy a[1, 0 : 32, 0 : 16] -> s
      reduce sum s -> r axis 1
      parallel i in 32 {
        columns[i, t] = r[i] + float32(t)
      }
    }
    copy columns -> d
  }
})");
  EXPECT_NE(source.find("slabs_tile"), std::string::npos) << source;
  EXPECT_NE(source.find("columns_tile"), std::string::npos) << source;
}

// Neither does what no slice is: the halves of a row, and elements under a condition.
TEST(Conversions, HalvesNeedNothingWrittenBefore) {
  const std::string source =
      expect_interpreted(R"(program f(a: float32[16, 24], c: float32[16, 24], d: float32[16, 24]) {
  kernel bx in 1 threads 96 {
    fragment halves: float32[16, 24]
    fragment columns: float32[16, 24]
    fragment s: float32[16, 24]
    fragment r: float32[16]
    parallel i, j in 16, 12 {
      halves[i, j] = a[i, j] * 2.0
    }
    parallel i, j in 16, 12 {
      halves[i, j + 12] = a[i, j + 12] * 3.0
    }
    copy halves -> c
    copy a -> s
    reduce sum s -> r axis 1
    serial t in 24 {
      parallel i in 16 {
        if t % 2 == 0 {
          columns[i, t] = r[i]
        } else {
          columns[i, t] = -r[i]
        }
      }
    }
    copy columns -> d
  }
})");
  EXPECT_NE(source.find("halves_tile"), std::string::npos) << source;
}

// The operand of a product is held as tensor cores want it; a loop that reads it otherwise finds it in shared memory,
// where it is put once, unless the loop changes it.
TEST(Conversions, StandBeforeLoopsThatChangeNothing) {
  const auto program = [](const std::string& change) {
    return R"(program largest(x: float16[64, 64], w: float16[64, 64], o: float32[64, 64], q: float32[64]) {
  kernel bx in 1 threads 128 {
    shared b: float16[64, 64]
    fragment a: float16[64, 64]
    fragment sums: float32[64, 64]
    fragment parts: float32[64, 4]
    fragment all: float32[64]
    copy x -> a
    copy w -> b
    fill sums = 0.0
    fill parts = 0.0
    serial j in 16 {
      )" + change +
           R"(
      parallel i, k in 64, 4 {
        parts[i, k] = max(parts[i, k], float32(a[i, j * 4 + k]))
      }
    }
    gemm sums += a @ b
    copy sums -> o
    reduce max parts -> all axis 1
    copy all -> q
  }
})";
  };
  const std::vector<targets::gpu::Architecture> hopper{targets::gpu::Architecture::sm_90a};
  const auto is_before = [](const std::string& source) {
    const size_t copied = source.find("stmatrix<4>(a_tile"), loop = source.find("for (int32_t j = 0; j < 16");
    EXPECT_NE(copied, std::string::npos) << source;
    EXPECT_NE(loop, std::string::npos) << source;
    return copied < loop;
  };
  EXPECT_TRUE(is_before(expect_interpreted(program(""), hopper)));
  const std::string turned = "parallel i, k in 64, 64 {\n a[i, k] = -a[i, k]\n }";
  EXPECT_FALSE(is_before(expect_interpreted(program(turned), hopper)));
}

}  // namespace
}  // namespace tilepilot::testing
