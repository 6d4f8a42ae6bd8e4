// Matrix products that threads write out become products of tiles, alone or with neighbouring blocks.
#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

struct ProductCase {
  const char* name;
  const char* text;
  bool is_tiled = true;
  std::vector<int64_t> scalars = {};
};

class ProductsTest : public ::testing::TestWithParam<ProductCase> {};

TEST_P(ProductsTest, ComputesWhatTheInterpreterDoes) { expect_interpreted_result(GetParam().text, GetParam().scalars); }

TEST_P(ProductsTest, MultipliesTilesWhereThatIsTheSame) {
  const auto lowered = passes::run_pipeline(parse(GetParam().text));
  ASSERT_TRUE(lowered.ok());
  const auto code = targets::cpu::generate(*lowered);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->source.find("multiply_panels<") != std::string::npos, GetParam().is_tiled) << code->source;
}

constexpr const char* kLengthKnownLater =
    R"(program f(a: float32[64, 400], b: float32[400, 96], c: float32[64, 96], n: int32) {
  kernel bx, by in 3, 2 threads tx, ty in 32, 32 {
    local acc: float32[1]
    acc[0] = 3.0
    serial k in n {
      acc[0] = acc[0] + a[by * 32 + ty, k] * b[k, bx * 32 + tx]
    }
    c[by * 32 + ty, bx * 32 + tx] = acc[0]
  }
})";

const ProductCase kProductCases[] = {
    {"GuardedEdges", R"(program f(a: float16[70, 150], b: float16[150, 90], c: float16[70, 90]) {
  kernel bx, by in 6, 5 threads tx, ty in 16, 16 {
    local acc: float32[1]
    let row: int32 = by * 16 + ty
    let column: int32 = bx * 16 + tx
    acc[0] = 0.0
    if row < 70 and column < 90 {
      serial k in 150 {
        acc[0] = acc[0] + float32(a[row, k]) * float32(b[k, column])
      }
      c[row, column] = float16(acc[0])
    }
  }
})"},
    {"GuardsThatMatterLater", R"(program f(a: float32[64, 40], b: float32[40, 64], c: float32[64, 64]) {
  kernel bx, by in 2, 2 threads tx, ty in 32, 32 {
    local acc: float32[1]
    acc[0] = 2.0
    if tx < 20 {
      serial k in 40 {
        acc[0] = acc[0] + a[by * 32 + ty, k] * b[k, bx * 32 + tx]
      }
    }
    c[by * 32 + ty, bx * 32 + tx] = acc[0]
  }
})",
     false},
    {"GuardsThatChange", R"(program f(a: float32[32, 40], b: float32[40, 32], c: float32[32, 32]) {
  kernel b0 in 1 threads tx, ty in 32, 32 {
    local acc: float32[1]
    serial step in 3 {
      if tx < step * 10 {
        serial k in 40 {
          acc[0] = acc[0] + a[ty, k] * b[k, tx]
        }
        c[ty, tx] = acc[0]
      } else {
        acc[0] = 1.0
      }
    }
  }
})",
     false},
    {"NoSteps", kLengthKnownLater, true, {0}},
    {"StepsOfALengthKnownLater",
     R"(program f(a: float32[64, 400], b: float32[400, 96], c: float32[64, 96], n: int32) {
  kernel bx, by in 3, 2 threads tx, ty in 32, 32 {
    local acc: float32[1]
    acc[0] = 3.0
    serial k in n - 2 {
      acc[0] = acc[0] + a[by * 32 + ty, k] * b[k, bx * 32 + tx]
    }
    c[by * 32 + ty, bx * 32 + tx] = acc[0]
  }
})",
     true,
     {303}},
    {"NegativeLength", kLengthKnownLater, true, {-5}},
    {"BothTransposed", R"(program f(a: bfloat16[33, 64], b: float32[64, 33], c: float32[64, 64]) {
  kernel bx, by in 4, 4 threads tx, ty in 16, 16 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 33 {
      acc[0] = acc[0] + float32(a[k, by * 16 + ty]) * b[bx * 16 + tx, k]
    }
    c[by * 16 + ty, bx * 16 + tx] = acc[0]
  }
})"},
    {"RowsAlongX", R"(program f(a: float32[64, 33], b: float32[33, 64], c: float32[64, 64]) {
  kernel bx, by in 4, 4 threads tx, ty in 16, 16 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 33 {
      acc[0] = b[k, by * 16 + ty] * a[bx * 16 + tx, k] + acc[0]
    }
    c[bx * 16 + tx, by * 16 + ty] = acc[0]
  }
})"},
    {"SharedTilesOfSeveralBlocks", R"(program f(a: float16[80, 50], b: float16[50, 112], c: float16[80, 112]) {
  kernel bx, by in 7, 5 threads tx, ty in 16, 16 {
    shared s: float16[16, 16]
    shared t: float16[16, 16]
    local acc: float32[1]
    acc[0] = 0.0
    serial step in 4 {
      s[ty, tx] = select(step * 16 + tx < 50, a[by * 16 + ty, step * 16 + tx], float16(0.0))
      t[ty, tx] = select(step * 16 + ty < 50, b[step * 16 + ty, bx * 16 + tx], float16(0.0))
      sync
      serial k in 16 {
        acc[0] = acc[0] + float32(s[ty, k]) * float32(t[k, tx])
      }
      sync
    }
    c[by * 16 + ty, bx * 16 + tx] = float16(acc[0])
  }
})"},
    {"TilesOfThreads", R"(program f(a: bfloat16[100, 40], b: bfloat16[40, 130], c: float32[100, 130]) {
  kernel bx, by in 3, 2 threads tx in 256 {
    shared s: bfloat16[16, 64]
    shared t: bfloat16[16, 64]
    local sum: float32[4, 4]
    local x: float32[4]
    local y: float32[4]
    let ty: int32 = tx // 16
    let column: int32 = tx % 16
    serial i in 4 {
      serial j in 4 {
        sum[i, j] = 0.0
      }
    }
    serial step in 3 {
      serial i in 4 {
        let e: int32 = i * 256 + tx
        s[e % 16, e // 16] = a[by * 64 + e // 16, step * 16 + e % 16]
        t[e // 64, e % 64] = b[step * 16 + e // 64, bx * 64 + e % 64]
      }
      sync
      serial k in 16 {
        unrolled i in 4 {
          x[i] = float32(s[k, ty * 4 + i])
        }
        unrolled j in 4 {
          y[j] = float32(t[k, j * 16 + column])
        }
        unrolled i in 4 {
          unrolled j in 4 {
            sum[i, j] = sum[i, j] + x[i] * y[j]
          }
        }
      }
      sync
    }
    serial i in 4 {
      serial j in 4 {
        let row: int32 = by * 64 + ty * 4 + i
        let place: int32 = bx * 64 + j * 16 + column
        if row < 100 and place < 130 {
          c[row, place] = sum[i, j]
        }
      }
    }
  }
})"},
    {"OneThread", R"(program f(a: float16[37, 30], b: float16[30, 70], c: float16[37, 70]) {
  kernel bx, by in 70, 37 threads 1 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 30 {
      acc[0] = acc[0] + float32(a[by, k]) * float32(b[k, bx])
    }
    c[by, bx] = float16(acc[0])
  }
})"},
    {"TwoSums", R"(program f(a: float32[64, 40], b: float32[40, 64], c: float32[64, 64], d: float32[64, 64]) {
  kernel bx, by in 2, 2 threads tx, ty in 32, 32 {
    local acc: float32[3]
    acc[0] = 1.0
    acc[1] = 0.0
    acc[2] = 5.0
    serial k in 40 {
      acc[0] = acc[0] + a[by * 32 + ty, k] * b[k, bx * 32 + tx]
      acc[1] = acc[1] + a[by * 32 + ty, k] * a[bx * 32 + tx, k]
    }
    c[by * 32 + ty, bx * 32 + tx] = acc[0]
    d[by * 32 + ty, bx * 32 + tx] = acc[1] + acc[2]
  }
})"},
    {"ElementsOfAThread", R"(program f(a: float32[2, 130, 20], b: float32[2, 20, 32], c: float32[2, 130, 32]) {
  kernel bx, z in 3, 2 threads tx in 64 {
    local acc: float32[32]
    if bx * 64 + tx < 130 {
      serial j in 32 {
        acc[j] = 0.0
      }
      serial k in 20 {
        let x: float32 = a[z, bx * 64 + tx, k]
        serial j in 32 {
          acc[j] = acc[j] + x * b[z, k, j]
        }
      }
      serial j in 32 {
        c[z, bx * 64 + tx, j] = acc[j]
      }
    }
  }
})"},
    {"ComputedFactors", R"(program f(a: float32[48, 64], b: float32[64, 48], m: int32[48], c: float32[48, 48]) {
  kernel b0 in 1 threads tx, ty in 48, 16 {
    local acc: float32[3]
    serial i in 3 {
      acc[i] = 0.0
    }
    serial k in 64 {
      serial i in 3 {
        acc[i] = acc[i] + select(k < m[i * 16 + ty], a[i * 16 + ty, k], 1.0) * (b[k, tx] * 2.0 + 1.0)
      }
    }
    serial i in 3 {
      c[i * 16 + ty, tx] = acc[i]
    }
  }
})"},
    {"StepsInside", R"(program f(a: float32[64, 24], b: float32[24, 64], c: float32[64, 64]) {
  kernel b0 in 1 threads tx, ty in 32, 32 {
    local acc: float32[2, 2]
    unrolled i in 2 {
      unrolled j in 2 {
        acc[i, j] = 1.0
        serial k in 24 {
          acc[i, j] = acc[i, j] + a[ty * 2 + i, k] * b[k, tx * 2 + j]
        }
        c[ty * 2 + i, tx * 2 + j] = acc[i, j]
      }
    }
  }
})"},
    {"SumsInHalf", R"(program f(a: float16[32, 40], b: float16[40, 32], c: float16[32, 32]) {
  kernel b0 in 1 threads tx, ty in 32, 32 {
    local acc: float16[1]
    acc[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + a[ty, k] * b[k, tx]
    }
    c[ty, tx] = acc[0]
  }
})",
     false},
    {"RoundedProducts", R"(program f(a: float16[32, 40], b: float16[40, 32], c: float32[32, 32]) {
  kernel b0 in 1 threads tx, ty in 32, 32 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + float32(a[ty, k] * b[k, tx])
    }
    c[ty, tx] = acc[0]
  }
})",
     false},
    {"SumsThatAreRead", R"(program f(a: float32[32, 40], b: float32[40, 32], c: float32[32, 32]) {
  kernel b0 in 1 threads tx, ty in 32, 32 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + a[ty, k] * b[k, tx]
      acc[0] = max(acc[0], 0.0)
    }
    c[ty, tx] = acc[0]
  }
})",
     false},
    {"TemporariesOfTheLastStep", R"(program f(a: float32[32, 40], b: float32[40, 32], c: float32[32, 32]) {
  kernel b0 in 1 threads tx, ty in 32, 32 {
    local acc: float32[1]
    local x: float32[1]
    acc[0] = 0.0
    x[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + x[0] * b[k, tx]
      x[0] = a[ty, k]
    }
    c[ty, tx] = acc[0]
  }
})",
     false},
};
INSTANTIATE_TEST_SUITE_P(Kernels, ProductsTest, ::testing::ValuesIn(kProductCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tilepilot::testing
