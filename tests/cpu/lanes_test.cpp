// Kernels whose threads run serial loops: chunks of threads become lanes of vectors, loops go around them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

struct LaneCase {
  const char* name;
  const char* text;
  std::vector<int64_t> scalars = {};
};

class LanesTest : public ::testing::TestWithParam<LaneCase> {};

TEST_P(LanesTest, ComputesWhatTheInterpreterDoes) { expect_interpreted_result(GetParam().text, GetParam().scalars); }

const LaneCase kCases[] = {
    {"GuardedMatrix", R"(program f(a: float16[37, 23], b: float16[23, 41], c: float16[37, 41]) {
  kernel bx, by in 3, 3 threads tx, ty in 16, 16 {
    local acc: float32[1]
    let row: int32 = by * 16 + ty
    let column: int32 = bx * 16 + tx
    if row < 37 and column < 41 {
      acc[0] = 0.0
      serial k in 23 {
        acc[0] = acc[0] + float32(a[row, k]) * float32(b[k, column])
      }
      c[row, column] = float16(acc[0])
    }
  }
})"},
    {"MatrixOfSymbolicDepth",
     R"(program f(a: float32[64, 40], b: float32[40, 96], c: float32[64, 96], k: int32, m: int32) {
  kernel bx, by in 3, 2 threads tx, ty in 32, 32 {
    local acc: float32[1]
    let row: int32 = by * 32 + ty
    if row < m {
      acc[0] = 1.0
      serial i in k {
        acc[0] = acc[0] + a[row, i] * b[i, bx * 32 + tx]
      }
      c[row, bx * 32 + tx] = acc[0]
    }
  }
})",
     {40, 50}},
    {"QuotientsOfTheThread", R"(program f(x: float32[64], y: float32[64]) {
  kernel bx in 1 threads 64 {
    parallel i in 64 {
      let q: int32 = i // 4
      serial k in 2 {
        y[i] = y[i] + x[(i + q * 16) // 16 + k]
      }
    }
  }
})"},
    {"NoSteps",
     R"(program f(a: float32[64, 40], c: float32[64, 96], k: int32) {
  kernel bx in 3 threads tx, ty in 32, 16 {
    local acc: float32[1]
    acc[0] = 3.0
    serial i in k {
      acc[0] = acc[0] + a[ty, i]
    }
    c[ty, bx * 32 + tx] = acc[0]
  }
})",
     {0}},
    {"Bytes", R"(program f(a: int8[50, 33], b: int8[33, 100], c: int32[50, 100]) {
  kernel by in 50 threads tx in 100 {
    local acc: int32[1]
    acc[0] = 0
    serial k in 33 {
      acc[0] = acc[0] + int32(a[by, k]) * int32(b[k, tx])
    }
    c[by, tx] = acc[0]
  }
})"},
    {"TransposedOperand", R"(program f(a: float16[40, 33], b: float16[640, 33], c: float32[40, 640]) {
  kernel by in 40 threads tx in 640 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 33 {
      acc[0] = acc[0] + float32(a[by, k]) * float32(b[tx, k])
    }
    c[by, tx] = acc[0]
  }
})"},
    {"RowsAlongX", R"(program f(a: float32[40, 33], b: float32[33, 48], c: float32[40, 48]) {
  kernel b0 in 1 threads tx, ty in 40, 24 {
    local acc: float64[2]
    acc[0] = 0.0
    acc[1] = 0.0
    serial k in 33 {
      acc[0] = acc[0] + float64(a[tx, k] * b[k, ty])
      acc[1] = acc[1] + float64(a[tx, k] * b[k, ty + 24])
    }
    c[tx, ty] = float32(acc[0])
    c[tx, ty + 24] = float32(acc[1])
  }
})"},
    {"SharedTiles", R"(program f(a: float16[48, 64], b: float16[64, 32], c: float32[48, 32]) {
  kernel bx, by in 2, 3 threads tx, ty in 16, 16 {
    shared s: float16[16, 16]
    shared t: float16[16, 16]
    local acc: float32[1]
    acc[0] = 0.0
    serial step in 4 {
      s[ty, tx] = a[by * 16 + ty, step * 16 + tx]
      t[ty, tx] = b[step * 16 + ty, bx * 16 + tx]
      sync
      serial k in 16 {
        acc[0] = acc[0] + float32(s[ty, k]) * float32(t[k, tx])
      }
      sync
    }
    c[by * 16 + ty, bx * 16 + tx] = acc[0]
  }
})"},
    {"ThreadTiles", R"(program f(a: float16[64, 32], b: float16[32, 64], c: float32[64, 64]) {
  kernel b0 in 1 threads tx, ty in 16, 16 {
    shared s: float16[64, 16]
    shared t: float16[16, 64]
    local acc: float32[4, 4]
    local x: float32[4]
    local y: float32[4]
    serial i in 4 {
      serial j in 4 {
        acc[i, j] = 0.0
      }
    }
    serial step in 2 {
      serial i in 4 {
        let e: int32 = i * 256 + ty * 16 + tx
        s[e // 16, e % 16] = a[e // 16, step * 16 + e % 16]
        t[e // 64, e % 64] = b[step * 16 + e // 64, e % 64]
      }
      sync
      serial k in 16 {
        unrolled i in 4 {
          x[i] = float32(s[ty * 4 + i, k])
        }
        unrolled j in 4 {
          y[j] = float32(t[k, tx * 4 + j])
        }
        unrolled i in 4 {
          unrolled j in 4 {
            acc[i, j] = acc[i, j] + x[i] * y[j]
          }
        }
      }
      sync
    }
    serial i in 4 {
      serial j in 4 {
        c[ty * 4 + i, tx * 4 + j] = acc[i, j]
      }
    }
  }
})"},
    {"CarriedTemporaries", R"(program f(a: float32[32, 64], c: float32[4, 64]) {
  kernel b0 in 1 threads tx in 64 {
    local last: float32[4]
    serial i in 4 {
      last[i] = 0.0
    }
    serial step in 8 {
      serial k in 4 {
        serial i in 4 {
          last[3 - i] = last[i] + a[step * 4 + i, tx]
        }
      }
      sync
      c[step % 4, tx] = last[step % 4]
      sync
    }
  }
})"},
    {"FlatConvolution", R"(program f(x: float16[2, 3, 12, 12], w: float16[4, 3, 3, 3], y: float16[2, 4, 10, 10]) {
  kernel bx in 7 threads tx in 128 {
    local acc: float32[1]
    let i: int32 = bx * 128 + tx
    if i < 800 {
      let ow: int32 = i % 10
      let oh: int32 = i // 10 % 10
      let o: int32 = i // 100 % 4
      let n: int32 = i // 400
      acc[0] = 0.0
      serial c in 3 {
        serial p in 3 {
          serial q in 3 {
            acc[0] = acc[0] + float32(x[n, c, oh + p, ow + q]) * float32(w[o, c, p, q])
          }
        }
      }
      y[n, o, oh, ow] = float16(acc[0])
    }
  }
})"},
    {"FlatConvolutionInAlignedRuns",
     R"(program f(x: float16[2, 3, 18, 34], w: float16[4, 3, 3, 3], y: float16[2, 4, 16, 32]) {
  kernel bx in 17 threads tx in 256 {
    local acc: float32[1]
    let i: int32 = bx * 256 + tx
    if i < 4096 {
      let ow: int32 = i % 32
      let oh: int32 = i // 32 % 16
      let o: int32 = i // 512 % 4
      let n: int32 = i // 2048
      acc[0] = 0.0
      serial c in 3 {
        serial p in 3 {
          serial q in 3 {
            acc[0] = acc[0] + float32(x[n, c, oh + p, ow + q]) * float32(w[o, c, p, q])
          }
        }
      }
      y[n, o, oh, ow] = float16(acc[0])
    }
  }
})"},
    {"FlatElements", R"(program f(x: float16[3, 5, 7, 13], s: float32[5], y: float16[3, 5, 13, 7], z: float32[1365]) {
  kernel bx in 11 threads tx in 128 {
    let i: int32 = bx * 128 + tx
    if i < 1365 {
      let w: int32 = i % 13
      let h: int32 = i // 13 % 7
      let c: int32 = i // 91 % 5
      y[i // 455, c, w, h] = x[i // 455, c, h, w] * float16(s[c])
      z[i] = select(w % 2 == 0, float32(w), 1.0)
    }
  }
})"},
    {"FlatElementsByRows", R"(program f(x: float32[24, 40], y: float32[40, 24]) {
  kernel bx in 2 threads tx, ty in 32, 4 {
    serial k in 4 {
      let e: int32 = bx * 512 + k * 128 + ty * 32 + tx
      if e < 960 {
        y[e % 40, e // 40] = x[e // 40, e % 40]
      }
    }
  }
})"},
    {"BlocksAlongX", R"(program f(a: float16[10, 33], b: float16[33, 96], c: float32[10, 96], d: float32[10, 96]) {
  kernel row, bx in 10, 3 threads tx in 32 {
    local acc: float32[2]
    let column: int32 = bx * 32 + tx
    acc[0] = 0.0
    acc[1] = 1.0
    serial k in 33 {
      acc[0] = acc[0] + float32(a[row, k]) * float32(b[k, column])
      acc[1] = acc[1] + float32(b[k, column])
    }
    if row % 2 == 0 {
      d[row, column] = acc[1]
    }
    c[row, column] = acc[0]
  }
})"},
    {"PaddedConvolution", R"(program f(x: float32[3, 20, 20], w: float32[3, 3, 3], y: float32[20, 20]) {
  kernel bx, by in 2, 2 threads tx, ty in 16, 16 {
    local acc: float32[1]
    let ow: int32 = bx * 16 + tx
    let oh: int32 = by * 16 + ty
    acc[0] = 0.0
    if oh < 20 {
      serial c in 3 {
        serial p in 3 {
          serial q in 3 {
            let h: int32 = oh + p - 1
            let v: int32 = ow + q - 1
            if h >= 0 and h < 20 and v >= 0 and v < 20 {
              acc[0] = acc[0] + x[c, h, v] * w[c, p, q]
            }
          }
        }
      }
    }
    if oh < 20 and ow < 20 {
      y[oh, ow] = acc[0]
    }
  }
})"},
    {"LetsAcrossLoops", R"(program f(q: float32[48, 8], k: float32[12, 8], o: float32[48, 8]) {
  kernel b0 in 1 threads tx in 48 {
    local s: float32[1]
    local sum: float32[40]
    serial d in 8 {
      sum[d] = 0.0
    }
    serial j in 12 {
      s[0] = 0.0
      serial d in 8 {
        s[0] = s[0] + q[tx, d] * k[j, d]
      }
      let least: float32 = min(s[0], float32(j))
      let first: float32 = k[j, 0]
      let place: int32 = (tx + j) % 8
      serial d in 8 {
        sum[d] = sum[d] + least * k[j, (d + place) % 8] + first
      }
    }
    serial d in 8 {
      o[tx, d] = sum[d]
    }
  }
})"},
    {"LoopsOfDifferentLength", R"(program f(x: float32[64, 64], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    local n: int32[1]
    acc[0] = 0.0
    n[0] = tx
    serial k in 10 {
      serial j in tx {
        acc[0] = acc[0] + x[k, j]
      }
      while n[0] > 5 {
        n[0] = n[0] - 3
        acc[0] = acc[0] + 1.0
      }
      serial j in 64 {
        if j > tx {
          break
        }
        acc[0] = acc[0] + x[tx, j]
      }
    }
    y[tx] = acc[0]
  }
})"},
    {"BranchesAroundLoops",
     R"(program f(x: float32[96, 64], y: float32[96], flag: int32) {
  kernel b0 in 1 threads tx in 96 {
    local acc: float32[1]
    acc[0] = 0.0
    if flag > 2 {
      serial j in 64 {
        acc[0] = acc[0] + x[tx, j]
      }
    } else {
      serial j in 32 {
        acc[0] = acc[0] - x[tx, j]
      }
    }
    if tx % 3 == 0 {
      serial j in 16 {
        acc[0] = acc[0] + x[j, tx % 64]
      }
      if tx > 30 {
        serial j in 4 {
          acc[0] = acc[0] * 2.0
        }
      }
    }
    if acc[0] > 4.0 {
      serial j in 4 {
        acc[0] = acc[0] - 1.0
      }
    } else {
      serial j in 4 {
        acc[0] = acc[0] + 5.0
      }
    }
    y[tx] = acc[0]
  }
})",
     {3}},
};
INSTANTIATE_TEST_SUITE_P(Kernels, LanesTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// The sum of a matrix product stays in an array of the chunk's own, which the C++ compiler keeps in registers.
TEST(LanesTest, LoopsGoAroundTheLanes) {
  const auto lowered = passes::run_pipeline(parse(kCases[0].text));
  ASSERT_TRUE(lowered.ok());
  const auto code = targets::cpu::generate(*lowered);
  ASSERT_TRUE(code.ok());
  EXPECT_NE(code->source.find(R"(    for (int64_t k = 0; k < 23; ++k) {
      alignas(64) float b_[16];
      widen<16>(b_, b + k * 41 + bx * 16 + 0);
      TP_UNROLL
      for (int64_t ty = 0; ty < 16; ++ty) {
        const float a_ = widen(a[(by * 16 + ty) * 23 + k]);
        #pragma omp simd
        for (int64_t tx = 0; tx < 16; ++tx) {
          own_acc[ty * 16 + tx] = own_acc[ty * 16 + tx] + a_ * b_[tx];
        }
      }
    }
)"),
            std::string::npos)
      << code->source;
}

// Sixteen copies of a body full of logarithms take compilers ten seconds, and gain nothing.
TEST(LanesTest, CostlyBodiesAreNotCopied) {
  const auto source = [](const std::string& value) {
    const auto lowered = passes::run_pipeline(parse(fmt::format(R"(program f(x: float32[64, 16], y: float32[64, 16]) {{
  kernel b in 1 threads tx in 64 {{
    local best: float32[16]
    serial c in 16 {{
      best[c] = 0.0
      serial k in 3 {{
        best[c] = max(best[c], {})
      }}
      y[tx, c] = best[c]
    }}
  }}
}})",
                                                                value)));
    return targets::cpu::generate(*lowered)->source;
  };
  const auto unrolled = ::testing::ContainsRegex("TP_UNROLL\n +for .int64_t c = 0; c < 16;");
  EXPECT_THAT(source("x[tx, c]"), unrolled);
  EXPECT_THAT(source("tanh(log(exp(x[tx, c]) + 1.0)) + tanh(log(exp(x[tx, c]) + 2.0))"), ::testing::Not(unrolled));
}

}  // namespace
}  // namespace tilepilot::testing
