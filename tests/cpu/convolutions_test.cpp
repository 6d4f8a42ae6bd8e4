// Convolutions that threads write out as loops: products with steps in several loops, of which guards leave some out,
// and threads that take a count of all elements apart.
#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

struct ConvolutionCase {
  const char* name;
  const char* text;
  bool is_tiled = true;
};

class ConvolutionsTest : public ::testing::TestWithParam<ConvolutionCase> {};

TEST_P(ConvolutionsTest, ComputesWhatTheInterpreterDoes) { expect_interpreted_result(GetParam().text, {}); }

TEST_P(ConvolutionsTest, MultipliesTilesWhereThatIsTheSame) {
  const auto lowered = passes::run_pipeline(parse(GetParam().text));
  ASSERT_TRUE(lowered.ok());
  const auto code = targets::cpu::generate(*lowered);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->source.find("multiply_panels<") != std::string::npos, GetParam().is_tiled) << code->source;
}

const ConvolutionCase kConvolutionCases[] = {
    {"AnElementAThread", R"(program f(x: float16[2, 5, 14, 14], w: float16[12, 5, 3, 3], y: float16[2, 12, 14, 14]) {
  kernel bx in 19 threads tx in 256 {
    local acc: float32[1]
    let i: int32 = bx * 256 + tx
    if i < 4704 {
      let column: int32 = i % 14
      let row: int32 = i // 14 % 14
      let o: int32 = i // 196 % 12
      let n: int32 = i // 2352
      acc[0] = 0.0
      serial c in 5 {
        serial kh in 3 {
          serial kw in 3 {
            let ih: int32 = row + kh - 1
            let iw: int32 = column + kw - 1
            if ih >= 0 and ih < 14 and iw >= 0 and iw < 14 {
              acc[0] = acc[0] + float32(x[n, c, ih, iw]) * float32(w[o, c, kh, kw])
            }
          }
        }
      }
      y[n, o, row, column] = float16(acc[0])
    }
  }
})"},
    // 1260 is no multiple of the rows' length: the last row ends early.
    {"LimitInsideARow", R"(program f(x: float32[4, 160], w: float32[8, 4, 3], y: float32[8, 160]) {
  kernel bx in 20 threads tx in 64 {
    local acc: float32[1]
    let i: int32 = bx * 64 + tx
    if i < 1260 {
      acc[0] = 1.0
      serial c in 4 {
        serial k in 3 {
          acc[0] = acc[0] + x[c, i % 160 + k - 1] * w[i // 160, c, k]
        }
      }
      y[i // 160, i % 160] = acc[0]
    }
  }
})"},
    {"RowsAsLongAsWholeThreads", R"(program f(x: float32[3, 18, 64], w: float32[8, 3, 3, 3], y: float32[8, 16, 62]) {
  kernel bx in 32 threads tx in 256 {
    local acc: float32[1]
    let i: int32 = bx * 256 + tx
    acc[0] = 0.0
    serial c in 3 {
      serial kh in 3 {
        serial kw in 3 {
          acc[0] = acc[0] + x[c, i // 64 % 16 + kh, i % 64 + kw] * w[i // 1024, c, kh, kw]
        }
      }
    }
    if i % 64 < 62 {
      y[i // 1024, i // 64 % 16, i % 64] = acc[0]
    }
  }
})"},
    {"ThreadsInAPlane", R"(program f(x: float32[1, 6, 26, 26], w: float32[8, 6, 3, 3], y: float32[1, 8, 12, 12]) {
  kernel bx, by, bz in 2, 2, 8 threads tx, ty in 8, 8 {
    local acc: float32[1]
    let column: int32 = bx * 8 + tx
    let row: int32 = by * 8 + ty
    if row < 12 and column < 12 {
      acc[0] = 0.0
      serial c in 6 {
        serial kh in 3 {
          serial kw in 3 {
            if row * 2 + kh >= 1 and row * 2 + kh < 25 {
              if column * 2 + kw >= 1 and column * 2 + kw < 25 {
                acc[0] = acc[0] + x[bz // 8, c, row * 2 + kh - 1, column * 2 + kw - 1] * w[bz % 8, c, kh, kw]
              }
            }
          }
        }
      }
      y[bz // 8, bz % 8, row, column] = acc[0]
    }
  }
})"},
    {"Transposed", R"(program f(x: float32[1, 6, 7, 7], w: float32[6, 8, 3, 3], y: float32[1, 8, 14, 14]) {
  kernel bx in 13 threads tx in 128 {
    local acc: float32[1]
    let i: int32 = bx * 128 + tx
    if i < 1568 {
      acc[0] = 0.0
      serial c in 6 {
        serial kh in 3 {
          serial kw in 3 {
            let th: int32 = i // 14 % 14 + 1 - kh
            let tw: int32 = i % 14 + 1 - kw
            if th % 2 == 0 and tw % 2 == 0 {
              if th // 2 >= 0 and th // 2 < 7 and tw // 2 >= 0 and tw // 2 < 7 {
                acc[0] = acc[0] + x[0, c, th // 2, tw // 2] * w[c, i // 196, kh, kw]
              }
            }
          }
        }
      }
      y[0, i // 196, i // 14 % 14, i % 14] = acc[0]
    }
  }
})"},
    {"Groups", R"(program f(x: float32[2, 6, 14, 14], w: float32[16, 3, 3, 3], y: float32[2, 16, 12, 12]) {
  kernel bx in 36 threads tx in 128 {
    local acc: float32[1]
    let i: int32 = bx * 128 + tx
    let o: int32 = i // 144 % 16
    acc[0] = 0.0
    serial c in 3 {
      serial kh in 3 {
        serial kw in 3 {
          acc[0] = acc[0] + x[i // 2304, o // 8 * 3 + c, i // 12 % 12 + kh, i % 12 + kw] * w[o, c, kh, kw]
        }
      }
    }
    y[i // 2304, o, i // 12 % 12, i % 12] = acc[0]
  }
})"},
    {"ATemporaryBehindAGuard", R"(program f(x: float32[6, 16], w: float32[6, 3, 64], y: float32[16, 64]) {
  kernel by in 4 threads tx, ty in 64, 4 {
    local acc: float32[1]
    local value: float32[1]
    acc[0] = 0.0
    serial c in 6 {
      serial k in 3 {
        let at: int32 = by * 4 + ty + k - 1
        value[0] = 0.5
        if at >= 0 and at < 16 {
          value[0] = x[c, at]
        }
        acc[0] = acc[0] + value[0] * w[c, k, tx]
      }
    }
    y[by * 4 + ty, tx] = acc[0]
  }
})"},
    // What a guard leaves out is not multiplied, be the other factor infinite or no number.
    {"FactorsThatAreNotFinite",
     R"(program f(x: float32[6, 16], w: float32[6, 3, 64], d: int32[64], y: float32[16, 64]) {
  kernel by in 4 threads tx, ty in 64, 4 {
    local acc: float32[1]
    acc[0] = 0.0
    serial c in 6 {
      serial k in 3 {
        let at: int32 = by * 4 + ty + k - 1
        if at >= 0 and at < 16 {
          acc[0] = acc[0] + x[c, at] * select(k == 0 and d[tx] > 0, inf, w[c, k, tx])
        }
      }
    }
    y[by * 4 + ty, tx] = select(isnan(acc[0]), -77.0, acc[0])
  }
})"},
    {"SummandsOrNothing", R"(program f(x: float32[6, 16], w: float32[6, 3, 64], y: float32[16, 64]) {
  kernel by in 4 threads tx, ty in 64, 4 {
    local acc: float32[1]
    acc[0] = 0.0
    serial c in 6 {
      serial k in 3 {
        let at: int32 = by * 4 + ty + k - 1
        acc[0] = acc[0] + select(at >= 0 and at < 16, x[c, at] * w[c, k, tx], 0.0)
      }
    }
    y[by * 4 + ty, tx] = acc[0]
  }
})"},
    {"GuardsOfBothSides", R"(program f(x: float32[6, 16], w: float32[6, 3, 60], y: float32[16, 64]) {
  kernel by in 4 threads tx, ty in 64, 4 {
    local acc: float32[1]
    acc[0] = 0.0
    serial c in 6 {
      serial k in 3 {
        let at: int32 = by * 4 + ty + k - 1
        if at >= 0 and at < 16 and tx < 60 {
          acc[0] = acc[0] + x[c, at] * w[c, k, tx]
        }
      }
    }
    y[by * 4 + ty, tx] = acc[0]
  }
})"},
    {"GuardsThatTieSidesTogether", R"(program f(x: float32[6, 16], w: float32[6, 3, 64], y: float32[16, 64]) {
  kernel by in 4 threads tx, ty in 64, 4 {
    local acc: float32[1]
    acc[0] = 0.0
    serial c in 6 {
      serial k in 3 {
        if ty + k < tx {
          acc[0] = acc[0] + x[c, by * 4 + ty] * w[c, k, tx]
        }
      }
    }
    y[by * 4 + ty, tx] = acc[0]
  }
})",
     false},
    {"LoopsAroundThreads", R"(program f(x: float32[5, 9, 16], w: float32[8, 5, 3, 3], y: float32[8, 144]) {
  kernel b in 1 threads 128 {
    fragment acc: float32[8, 144]
    fill acc = 0.0
    serial c in 5 {
      serial kh in 3 {
        serial kw in 3 {
          parallel o, i in 8, 144 {
            let row: int32 = i // 16 + kh - 1
            let column: int32 = i % 16 + kw - 1
            if row >= 0 and row < 9 and column >= 0 and column < 16 {
              acc[o, i] = acc[o, i] + x[c, row, column] * w[o, c, kh, kw]
            }
          }
        }
      }
    }
    copy acc -> y[0 : 8, 0 : 144]
  }
})"},
    {"OneThreadAnElement", R"(program f(x: float32[2, 4, 10, 10], w: float32[8, 4, 3, 3], y: float32[2, 8, 10, 10]) {
  kernel i in 1600 threads 1 {
    local acc: float32[1]
    let row: int32 = i // 10 % 10
    acc[0] = 0.0
    serial c in 4 {
      serial kh in 3 {
        serial kw in 3 {
          if row + kh >= 1 and row + kh < 11 and i % 10 + kw >= 1 and i % 10 + kw < 11 {
            acc[0] = acc[0] + x[i // 800, c, row + kh - 1, i % 10 + kw - 1] * w[i // 100 % 8, c, kh, kw]
          }
        }
      }
    }
    y[i // 800, i // 100 % 8, row, i % 10] = acc[0]
  }
})"},
    {"ChannelsLast", R"(program f(x: float32[12, 12, 5], w: float32[3, 3, 5, 24], y: float32[10, 10, 24]) {
  kernel bx in 19 threads tx in 128 {
    local acc: float32[1]
    let i: int32 = bx * 128 + tx
    if i < 2400 {
      acc[0] = 0.0
      serial kh in 3 {
        serial kw in 3 {
          serial c in 5 {
            acc[0] = acc[0] + x[i // 240 + kh, i // 24 % 10 + kw, c] * w[kh, kw, c, i % 24]
          }
        }
      }
      y[i // 240, i // 24 % 10, i % 24] = max(acc[0], 0.0)
    }
  }
})"},
    {"Depthwise", R"(program f(x: float32[2, 3, 14, 20], w: float32[3, 3, 3], y: float32[2, 3, 14, 20]) {
  kernel bx in 14 threads tx in 128 {
    local acc: float32[1]
    let i: int32 = bx * 128 + tx
    if i < 1680 {
      let row: int32 = i // 20 % 14
      acc[0] = 0.0
      serial kh in 3 {
        serial kw in 3 {
          if row + kh >= 1 and row + kh < 15 and i % 20 + kw >= 1 and i % 20 + kw < 21 {
            acc[0] = acc[0] + x[i // 840, i // 280 % 3, row + kh - 1, i % 20 + kw - 1] * w[i // 280 % 3, kh, kw]
          }
        }
      }
      y[i // 840, i // 280 % 3, row, i % 20] = acc[0]
    }
  }
})",
     false},
    {"LargestOfAWindow", R"(program f(x: float16[6, 17, 24], y: float16[6, 9, 12]) {
  kernel bx in 6 threads tx in 128 {
    local most: float32[1]
    let i: int32 = bx * 128 + tx
    if i < 648 {
      most[0] = -1000.0
      serial kh in 3 {
        serial kw in 3 {
          let row: int32 = i // 12 % 9 * 2 + kh - 1
          let column: int32 = i % 12 * 2 + kw - 1
          if row >= 0 and row < 17 and column >= 0 and column < 24 {
            most[0] = max(most[0], float32(x[i // 108, row, column]))
          }
        }
      }
      y[i // 108, i // 12 % 9, i % 12] = float16(most[0])
    }
  }
})",
     false},
};
INSTANTIATE_TEST_SUITE_P(Kernels, ConvolutionsTest, ::testing::ValuesIn(kConvolutionCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tilepilot::testing
