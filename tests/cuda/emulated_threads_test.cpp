// Threads of generated CUDA code, alone and in teams, in the emulator: the same results as the interpreter's, for both
// architectures.
#include <fmt/format.h>

#include "compiler/passes/pipeline.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/interpreted.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using ir::testing::RandomArguments;
using targets::gpu::Architecture;

// Copies, loops, asynchronous ones too, that make no thread wait for another.
TEST(EmulatedThreads, ExchangeElementsAroundTileOperatorsOnOthers) {
  expect_interpreted(R"(program f(x: float32[64], y: float32[64], z: float32[4, 64]) {
  kernel bx in 1 threads tx in 64 {
    shared s: float32[64]
    shared t: float32[64]
    s[tx] = x[tx]
    copy x -> z[0, 0 : 64]
    z[1, tx] = s[63 - tx]
    sync
    s[tx] = x[63 - tx]
    copy x -> t mode group
    async commit_copies
    z[2, tx] = s[tx ^ 33]
    async wait_copies
    sync
    s[tx] = x[tx ^ 7]
    parallel i in 64 {
      z[3, i] = x[i]
    }
    y[tx] = s[63 - tx] + t[tx ^ 1]
  }
}
)");
}

// Quotients and remainders of the block's number, as in blocks that take one tile after the other.
TEST(EmulatedThreads, MoveVectorsWhereVariablesSayWhichPart) {
  const std::string source = expect_interpreted(R"(program f(x: float16[96, 64], c: float16[96, 64]) {
  kernel b in 6 threads 128 {
    shared s: float16[32, 32]
    let row: int32 = b // 2
    let column: int32 = b % 2
    copy x[row * 32 : +32, column * 32 : +32] -> s disable_tma
    copy s -> c[row * 32 : +32, column * 32 : +32] disable_tma
  }
})");
  EXPECT_NE(source.find("copy_vector<16>(c + "), std::string::npos) << source;
  EXPECT_EQ(source.find("if (row"), std::string::npos) << source;
}

// Sums over lanes of a warp alone, and over warps.
TEST(EmulatedThreads, ExchangeElementsAroundReductions) {
  expect_interpreted(R"(program f(x: float32[64], y: float32[64], z: float32[64]) {
  kernel bx in 1 threads tx, ty in 8, 8 {
    shared s: float32[64]
    local r: float32[1]
    s[ty * 8 + tx] = x[ty * 8 + tx]
    all_reduce r[0] = + (x[ty * 8 + tx]) if true else 0.0 over 0
    y[ty * 8 + tx] = s[63 - ty * 8 - tx] + r[0]
    sync
    s[ty * 8 + tx] = x[ty * 8 + tx] + 1.0
    all_reduce r[0] = + (x[ty * 8 + tx]) if true else 0.0 over 1
    z[ty * 8 + tx] = s[63 - ty * 8 - tx] + r[0]
  }
}
)");
}

TEST(EmulatedThreads, FunctionsOfNibbles) {
  expect_interpreted(R"(program p(A: int4[64], B: int32[64]) {
  kernel bx in 1 threads 64 {
    shared s: int4[64]
    copy A -> s
    parallel e in 64 {
      B[e] = int32(abs(s[e])) + int32(popcount(s[e])) * 16
    }
  }
})");
}

TEST(EmulatedThreads, AWarpThatMeetsIsNotTheBlock) {
  const std::string source = expect_interpreted(R"(program p(A: int32[64], B: int32[64]) {
  kernel bx in 1 threads 64 {
    shared s: int32[64]
    copy A -> s
    sync warp
    parallel e in 64 {
      B[e] = s[63 - e]
    }
  }
})");
  EXPECT_NE(source.find("sync_threads();"), std::string::npos) << source;
}

TEST(EmulatedThreads, OneOfThoseThatDoTheSameChangesWhatTheyRead) {
  expect_interpreted(R"(program p(A: float32[4], B: float32[4], C: float32[4]) {
  kernel bx in 1 threads 33 {
    shared s: float32[4]
    local l: float32[4]
    local k: float32[4]
    copy A -> s
    fill l = 1.0
    parallel e in 4 {
      s[e] = l[e] + s[e]
    }
    parallel e in 4 {
      k[e] = s[e] * 2.0
      s[e] = s[e] + k[e]
    }
    copy s -> B
    parallel e in 4 {
      C[e] = k[e]
    }
  }
})");
}

TEST(EmulatedThreads, ValuesBeforeAtomicOperationsAreKnownToAll) {
  expect_interpreted(R"(program p(A: int32[8], B: int32[8]) {
  kernel bx in 1 threads 64 {
    shared c: int32[1]
    local l: int32[4]
    fragment f: int32[4]
    fill c = 5
    atomic add c[0], 3 -> before: int32
    A[before] = before
    atomic load c[0] -> now: int32
    if now == 8 {
      A[6] = now
    }
    parallel e in 4 {
      atomic max A[e], e -> was: int32
      l[e] = was
      f[e] = was + 1
    }
    parallel e in 4 {
      B[e] = l[e]
    }
    copy f -> B[4 : 8]
  }
})");
}

TEST(EmulatedThreads, TeamsHandTilesOver) {
  const std::string source = expect_interpreted(
      R"(program p(A: float16[96, 32], W: float16[32, 64], B: float32[2, 16, 64], C: float32[2, 16]) {
  kernel bx in 2 threads tx in 192 {
    shared ring: float16[2, 16, 32]
    shared weight: float16[32, 64]
    fragment sum: float32[16, 64]
    fragment row: float32[16]
    barrier full: uint64[2] arrivals [64, 64]
    barrier empty: uint64[2] arrivals [128, 128]
    copy W -> weight
    if tx < 128 {
      fill sum = 0.0
      serial k in 3 {
        on full[k % 2] wait k // 2 % 2
        gemm sum += ring[k % 2, 0 : 16, 0 : 32] @ weight
        on empty[k % 2] arrive
      }
      reduce sum sum -> row axis 1
      copy row -> C[bx, 0 : 16]
      copy sum -> B[bx, 0 : 16, 0 : 64]
    } else {
      serial k in 3 {
        on empty[k % 2] wait (k // 2 + 1) % 2
        copy A[(bx * 3 + k) * 16 : +16, 0 : 32] -> ring[k % 2, 0 : 16, 0 : 32] mode bulk_load counting full[k % 2]
        on full[k % 2] arrive
      }
    }
  }
})");
  EXPECT_NE(source.find("barrier_init"), std::string::npos);
  EXPECT_NE(source.find("mma_"), std::string::npos);
}

TEST(EmulatedThreads, RolesWithoutThreadVariables) {
  expect_interpreted(R"(program p(A: float32[6, 40], B: float32[40], C: float32[40]) {
  kernel bx in 1 threads 256 {
    shared ring: float32[2, 40]
    shared s: float32[40]
    fragment sum: float32[40]
    fragment twice: float32[40]
    barrier ready: uint64[4] arrivals [128, 128, 128, 128]
    fill s = 1.0
    parallel i in 40 {
      s[i] = s[i] + A[0, i]
    }
    roles 0 {
      fill sum = 0.0
    }
    serial step in 6 {
      roles 1 {
        on ready[step % 2 + 2] wait (step // 2 + 1) % 2
        copy A[step, 0 : 40] -> ring[step % 2, 0 : 40]
        on ready[step % 2] arrive
      }
      roles 0 {
        on ready[step % 2] wait step // 2 % 2
        parallel i in 40 {
          sum[i] = sum[i] + ring[step % 2, i]
        }
        on ready[step % 2 + 2] arrive
      }
    }
    roles 0 {
      copy sum -> B
    }
    copy s -> twice
    copy twice -> C
  }
})");
}

TEST(EmulatedThreads, SharedIterationsAreDoneOnce) {
  expect_interpreted(R"(program p(A: float32[4], B: float32[4]) {
  kernel bx in 1 threads tx in 64 {
    fragment r: float32[1]
    fragment m: float32[4]
    parallel once in 1 {
      r[0] = 0.0
    }
    serial k in 4 {
      parallel once in 1 {
        r[0] = r[0] + A[k]
      }
    }
    parallel j in 4 {
      m[j] = r[0] * 2.0
    }
    copy m -> B
  }
})");
}

TEST(EmulatedThreads, PartsOfOneByte) {
  expect_interpreted(R"(program p(A: uint4[64], B: uint4[64], C: int32[64]) {
  kernel bx in 1 threads tx in 64 {
    shared s: uint4[64]
    shared bytes: uint8[32] view s
    s[tx] = A[tx] + uint4(tx % 5)
    sync
    B[tx] = s[63 - tx]
    C[tx] = int32(bytes[tx // 2])
    sync
    parallel i in 64 {
      s[i] = s[i] + 3u4
    }
    copy s[0 : 63] -> B[1 : 64]
  }
})");
}

// A byte is changed by what its halves differ: by one thread, not by each.
TEST(EmulatedThreads, OneElementOfHalfAByteIsCopiedOnce) {
  expect_interpreted(R"(program p(A: uint4[64], B: uint4[64], C: int32[64]) {
  kernel bx in 1 threads tx in 64 {
    shared s: int32[1]
    local own: uint4[2]
    fill s = 5
    fill own = 1
    copy s[0] -> A[6]
    fill A[9] = 3
    sync
    if tx % 2 == 0 {
      copy A[tx] -> own[1]
    }
    fill own[0] = own[1] + 2u4
    C[tx] = int32(own[0]) * 16 + int32(own[1])
  }
})");
}

TEST(EmulatedThreads, FragmentsThatThreadsUpdateAreTheirOwn) {
  const std::string source = expect_interpreted(R"(program p(A: float32[32], B: int32[32]) {
  kernel bx in 1 threads tx in 32 {
    fragment sum: float32[2]
    fragment most: int32[1]
    local own: int32[1]
    serial f in 2 {
      sum[f] = 0.5
      most[0] = f
    }
    fill own = most[0] * 2
    atomic add sum[tx % 2], float32(tx)
    atomic store most[0], tx -> before: int32
    all_reduce most[0] = max (tx) if tx < 30 else 0 over lanes 8
    A[tx] = sum[0] + sum[1] * 100.0
    B[tx] = most[0] + before + own[0]
  }
})");
  EXPECT_EQ(source.find("shared_array"), std::string::npos) << source;
}

TEST(EmulatedThreads, ValuesBeforeAtomicOperationsOfIterationsInNoRegularOrder) {
  expect_interpreted(R"(program p(A: int32[8], B: int32[8]) {
  kernel bx in 1 threads 1 {
    fragment f: int32[8]
    fragment g: int32[8]
    parallel e in 8 {
      f[e] = e * 10
    }
    parallel e in 8 {
      atomic add A[e], f[e ^ 3] -> before: int32
      let twice: int32 = before * 2
      g[e] = before + twice
    }
    copy g -> B
  }
})");
}

// What is given where a condition fails takes part as often as that, whatever it is.
TEST(EmulatedThreads, EachThreadGivesItsValueOnce) {
  expect_interpreted(R"(program p(A: float32[100], B: float32[100], C: int32[100], D: int32[100]) {
  kernel bx in 1 threads tx, ty in 20, 5 {
    local all: float32[2]
    local row: int32[1]
    local pair: int32[1]
    all_reduce all[0] = + (1.0) if tx < 7 else 2.0 over 0, 1
    all_reduce all[1] = max (A[tx + ty]) if ty < 2 else -1000.0 over 1
    all_reduce row[0] = * (tx % 3 + 1) if tx < 9 else -1 over 0
    all_reduce pair[0] = min (tx) if tx == 0 else 3 over lanes 4
    A[ty * 20 + tx] = all[0]
    B[ty * 20 + tx] = all[1]
    C[ty * 20 + tx] = row[0]
    D[ty * 20 + tx] = pair[0]
  }
})");
}

TEST(EmulatedThreads, ReductionsOfLanesThatAreNotAllThere) {
  expect_interpreted(R"(program p(A: int32[33], B: int32[33]) {
  kernel bx in 1 threads tx in 33 {
    local all: int32[2]
    all_reduce all[0] = * (tx + 1) if tx < 40 else 1 over lanes 4
    all_reduce all[1] = max (tx - 50) if tx < 31 else -100 over lanes 16
    A[tx] = all[0]
    B[tx] = all[1]
  }
})");
}

TEST(EmulatedThreads, ExtremesOfThreadsPassOverNaN) {
  for (const int threads : {32, 33})
    expect_interpreted(fmt::format(R"(program p(A: float16[{0}], B: float16[{0}], C: float16[{0}]) {{
  kernel bx in 1 threads tx in {0} {{
    local all: float16[3]
    all_reduce all[0] = max (select(tx % 3 == 1, nan_f16, A[tx])) if true else 0.0 over 0
    all_reduce all[1] = min (nan_f16) if true else 0.0 over lanes 8
    all_reduce all[2] = + (-0.0) if true else 0.0 over lanes 4
    A[tx] = all[0]
    B[tx] = all[1]
    C[tx] = 1.0f16 / all[2]
  }}
}})",
                                   threads));
}

TEST(EmulatedThreads, ElementsOfFragmentsThatDecideForAll) {
  expect_interpreted(R"(program p(A: int32[64], B: int32[64]) {
  kernel bx in 1 threads 64 {
    fragment f: int32[64]
    local count: int32[1]
    copy A -> f
    fill count = 0
    if f[37] > f[5] {
      parallel e in 64 {
        f[e] = f[e] + 1
      }
    } else {
      parallel e in 64 {
        f[e] = f[e] - 1
      }
    }
    serial k in f[11] % 3 + 1 {
      parallel e in 64 {
        B[e] = f[e] + k
      }
    }
    while count[0] < f[50] % 2 + 1 {
      count[0] = count[0] + 1
    }
    copy f -> A
    A[0] = count[0]
  }
})");
}

TEST(EmulatedThreads, ArraysThatFillTheMemoryOfAThread) {
  expect_interpreted(R"(program p(A: int32[33]) {
  kernel bx in 1 threads tx in 33 {
    local large: int8[400, 1024]
    fill large[tx, 0 : 1024] = 3
    large[tx, tx * 8] = int8(tx)
    A[tx] = int32(large[tx, tx * 4]) + int32(large[tx, tx * 8])
  }
})");
}

TEST(EmulatedThreads, ShufflesInAPartialWarp) {
  const std::string source =
      expect_interpreted(R"(program p(A: float32[48], B: float32[48], C: float32[48], D: float32[48]) {
  kernel bx in 1 threads tx in 48 {
    let mine: float32 = A[tx]
    shuffle xor (mine, 16) over 32 -> other: float32
    B[tx] = other
    shuffle down (mine, 9) over 32 -> later: float32
    C[tx] = later
    shuffle from (mine, 21) over 32 -> fixed: float32
    D[tx] = fixed
  }
})");
  EXPECT_NE(source.find("shuffle_xor_partial"), std::string::npos);
}

TEST(EmulatedThreads, SignedIntegersWrapInTheText) {
  const std::string source = expect_interpreted(R"(program p(A: int32[64], B: int32[64], C: int32[64]) {
  kernel bx in 1 threads tx in 64 {
    let x: int32 = A[tx] + 2147483000
    B[tx] = x * x - 7
    C[tx] = -x + tx * 3
  }
})");
  EXPECT_NE(source.find("wrapped_mul<int32_t>(x, x)"), std::string::npos) << source;
  EXPECT_NE(source.find("wrapped_sub<int32_t>(0, x)"), std::string::npos) << source;
  EXPECT_EQ(source.find("wrapped_mul<int32_t>(tx"), std::string::npos) << source;
}

TEST(EmulatedThreads, RowsThatStartAnywhereRunAhead) {
  expect_interpreted(R"(program p(A: float32[300], B: float32[32], at: int32[1]) {
  kernel bx in 1 threads 256 {
    shared tile: float32[32]
    fragment sum: float32[32]
    fill sum = 0.0
    let first: int32 = at[0] * at[0]
    pipelined k in 4 stages 2 {
      copy A[first + k * 32 : +32] -> tile
      parallel i in 32 {
        sum[i] = sum[i] + tile[i]
      }
    }
    copy sum -> B
  }
})");
}

TEST(EmulatedThreads, PartsOfAFragmentThatMove) {
  const std::string source =
      expect_interpreted(R"(program p(A: float32[32, 64], B: float32[2, 16, 64], C: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    fragment f: float32[32, 64]
    fragment g: float32[64]
    shared t: float32[16, 64]
    copy A -> f
    copy A[3, 0 : 64] -> g
    serial s in 2 {
      parallel i, j in 32, 64 {
        if i < 16 {
          t[i, j] = f[i + s * 16, j] * 2.0 + g[j]
        }
      }
      copy t -> B[s, 0 : 16, 0 : 64]
    }
    serial s in 3 {
      parallel i, j in 8, 64 {
        C[s * 8 + i, j] = f[s * 8 + i, j]
      }
    }
    copy f -> C[32 : 64, 0 : 64]
    parallel i, j in 8, 64 {
      C[24 + i, j] = 0.0
    }
  }
})");
  EXPECT_EQ(source.find("f_tile"), std::string::npos) << source;  // no detour through shared memory
}

// What threads exchange in a reduction takes little of the memory that tiles leave over.
TEST(EmulatedThreads, ReductionsBesideTilesThatFillSharedMemory) {
  for (const auto& [architecture, limit] :
       {std::pair(Architecture::sm_80, 163 << 10), std::pair(Architecture::sm_90a, 227 << 10)}) {
    const Outcome result = outcome(fmt::format(R"(program p(A: float32[2, 2048], T: float32[{0}], B: float32[2]) {{
  kernel bx in 1 threads 256 {{
    shared t: float32[{0}]
    fragment f: float32[2, 2048]
    fragment r: float32[2]
    copy T -> t
    copy A -> f
    reduce sum f -> r axis 1
    parallel i in 2 {{
      B[i] = r[i] + t[i + 5]
    }}
  }}
}})",
                                               (limit - 512) / 4),
                                   architecture);
    EXPECT_EQ(result.wrong, "") << result.source;
  }
}

TEST(EmulatedThreads, PrintLines) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    const Outcome result = outcome(R"(program p(A: float32[4], n: int32) {
  kernel bx in 2 threads tx in 64 {
    A[bx] = 1.5
    if tx == 3 {
      print "value" = A[bx] over tx
      print "only text" over tx
    }
  }
})",
                                   architecture);
    EXPECT_EQ(result.wrong, "") << result.source;
    EXPECT_NE(result.printed, "");
    EXPECT_EQ(result.printed, result.expected_print);
  }
}

TEST(EmulatedThreads, ChecksThatFailSayWhy) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    const Outcome result = outcome(R"(program p(A: float32[64]) {
  kernel bx in 1 threads tx in 64 {
    check A[tx] > 1000.0, "too small"
    A[tx] = 0.0
  }
})",
                                   architecture);
    EXPECT_EQ(result.wrong, "too small") << result.source;
  }
}

TEST(EmulatedThreads, BarriersOfSm80CountNoBytes) {
  const std::string text = R"(program p(A: float32[64]) {
  kernel bx in 1 threads tx in 64 {
    barrier b: uint64[1] arrivals [64]
    on b arrive_expect 256
    A[tx] = 0.0
  }
})";
  EXPECT_EQ(outcome(text, Architecture::sm_80).wrong, "barriers of sm_80 count arrivals alone, no bytes");
}

}  // namespace
}  // namespace tilepilot::testing
