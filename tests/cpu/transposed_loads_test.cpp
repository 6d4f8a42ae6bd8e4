// Kernels whose threads walk along a row of memory each: blocks of steps are read and written by rows.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

std::string source_of(const std::string& text) {
  const auto lowered = passes::run_pipeline(parse(text));
  EXPECT_TRUE(lowered.ok());
  if (!lowered.ok()) return "";
  const auto code = targets::cpu::generate(*lowered);
  EXPECT_TRUE(code.ok());
  return code.ok() ? code->source : "";
}

const auto reads_by_rows = ::testing::HasSubstr("load_columns("),
           writes_by_rows = ::testing::HasSubstr("store_columns(");

// A matrix of `rows` x `columns`, a row a thread.
struct Matrix {
  const char* type;
  int64_t rows, columns, threads;
};

std::string row_sums(const Matrix& sums) {
  const std::string type = sums.type, acc = type == "float64" || type == "int32" ? type : "float32";
  return fmt::format(R"(program f(x: {type}[{rows}, {columns}], y: {acc}[{rows}]) {{
  kernel bx in {blocks} threads tx in {threads} {{
    local total: {acc}[1]
    let row: int32 = bx * {threads} + tx
    total[0] = {zero}
    if row < {rows} {{
      serial k in {columns} {{
        total[0] = total[0] + {acc}(x[row, k])
      }}
      y[row] = total[0]
    }}
  }}
}})",
                     fmt::arg("type", type), fmt::arg("acc", acc), fmt::arg("rows", sums.rows),
                     fmt::arg("columns", sums.columns), fmt::arg("threads", sums.threads),
                     fmt::arg("blocks", (sums.rows + sums.threads - 1) / sums.threads),
                     fmt::arg("zero", acc == "int32" ? "0" : "0.0"));
}

std::string scaled_rows(const Matrix& matrix) {
  return fmt::format(R"(program f(x: {type}[{rows}, {columns}], y: {type}[{rows}, {columns}]) {{
  kernel bx in {blocks} threads tx in {threads} {{
    let row: int32 = bx * {threads} + tx
    if row < {rows} {{
      serial k in {columns} {{
        y[row, k] = x[row, k] * {type}({two}) + {type}(k)
      }}
    }}
  }}
}})",
                     fmt::arg("type", matrix.type), fmt::arg("rows", matrix.rows), fmt::arg("columns", matrix.columns),
                     fmt::arg("threads", matrix.threads),
                     fmt::arg("blocks", (matrix.rows + matrix.threads - 1) / matrix.threads),
                     fmt::arg("two", std::string_view(matrix.type) == "int32" ? "2" : "2.0"));
}

class RowsOfThreadsTest : public ::testing::TestWithParam<Matrix> {};

TEST_P(RowsOfThreadsTest, SumsAreWhatTheInterpreterComputes) { expect_interpreted_result(row_sums(GetParam()), {}); }

TEST_P(RowsOfThreadsTest, ScaledElementsAreWhatTheInterpreterComputes) {
  expect_interpreted_result(scaled_rows(GetParam()), {});
}

TEST_P(RowsOfThreadsTest, AreReadAndWrittenByRows) {
  EXPECT_THAT(source_of(row_sums(GetParam())), reads_by_rows);
  EXPECT_THAT(source_of(scaled_rows(GetParam())), ::testing::AllOf(reads_by_rows, writes_by_rows));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, RowsOfThreadsTest,
    ::testing::Values(Matrix{"float32", 128, 64, 128}, Matrix{"float32", 200, 37, 64}, Matrix{"float32", 300, 16, 100},
                      Matrix{"float32", 70, 47, 256}, Matrix{"float32", 61, 33, 24}, Matrix{"float32", 2, 50, 32},
                      Matrix{"float32", 310, 20, 300}, Matrix{"float16", 130, 41, 64}, Matrix{"bfloat16", 95, 32, 32},
                      Matrix{"float64", 77, 29, 48}, Matrix{"int32", 40, 23, 40}),
    [](const auto& info) {
      const Matrix& matrix = info.param;
      return fmt::format("{}_{}x{}_by_{}", matrix.type, matrix.rows, matrix.columns, matrix.threads);
    });

struct RowCase {
  const char* name;
  const char* text;
  bool reads, writes = false;
};

class RowBlocksTest : public ::testing::TestWithParam<RowCase> {};

TEST_P(RowBlocksTest, ComputesWhatTheInterpreterDoes) { expect_interpreted_result(GetParam().text, {}); }

TEST_P(RowBlocksTest, ReadsAndWritesByRowsWhereThatIsRight) {
  const std::string source = source_of(GetParam().text);
  EXPECT_EQ(source.find("load_columns(") != std::string::npos, GetParam().reads) << source;
  EXPECT_EQ(source.find("store_columns(") != std::string::npos, GetParam().writes) << source;
}

const RowCase kCases[] = {
    {"Distances", R"(program f(a: float16[40, 35], b: float16[64, 35], c: float32[40, 64]) {
  kernel bx, by in 2, 3 threads tx, ty in 32, 16 {
    local acc: float32[1]
    if by * 16 + ty < 40 {
      acc[0] = 0.0
      serial k in 35 {
        acc[0] = acc[0] + abs(float32(a[by * 16 + ty, k]) - float32(b[bx * 32 + tx, k]))
      }
      c[by * 16 + ty, bx * 32 + tx] = acc[0]
    }
  }
})",
     true},
    {"ThreadsInTwoDimensions", R"(program f(x: float32[96, 40], y: float32[96]) {
  kernel b0 in 1 threads tx, ty in 32, 3 {
    local acc: float32[1]
    acc[0] = 1.0
    serial k in 40 {
      acc[0] = acc[0] * 0.5 + x[ty * 32 + tx, k]
    }
    y[ty * 32 + tx] = acc[0]
  }
})",
     true},
    {"FlatRowsFromTheMiddle", R"(program f(x: float32[3200], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    acc[0] = 0.0
    if tx >= 5 and tx < 50 {
      serial k in 45 {
        acc[0] = acc[0] + x[tx * 50 + k + 3]
      }
    }
    y[tx] = acc[0]
  }
})",
     true},
    {"SharedRows", R"(program f(x: float32[64, 64], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    shared s: float32[64, 33]
    local acc: float32[1]
    acc[0] = 0.0
    serial step in 2 {
      serial i in 32 {
        s[i * 2 + tx // 32, tx % 32] = x[i * 2 + tx // 32, step * 32 + tx % 32]
      }
      sync
      serial k in 32 {
        acc[0] = acc[0] + s[tx, k]
      }
      sync
    }
    y[tx] = acc[0]
  }
})",
     true},
    {"LoopsInside", R"(program f(x: float32[50, 20], w: float32[20, 3], y: float32[50, 3]) {
  kernel bx in 2 threads tx in 32 {
    local acc: float32[3]
    let row: int32 = bx * 32 + tx
    serial j in 3 {
      acc[j] = 0.0
    }
    if row < 50 {
      serial k in 20 {
        let value: float32 = x[row, k] * 2.0
        serial j in 3 {
          acc[j] = acc[j] + value * w[k, j] + x[row, k]
        }
      }
      serial j in 3 {
        y[row, j] = acc[j]
      }
    }
  }
})",
     true},
    {"ChoicesInside", R"(program f(x: float32[64, 64], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 64 {
      if k <= tx {
        acc[0] = acc[0] + x[tx, k]
      }
      acc[0] = acc[0] + select(k % 3 == 0, x[tx, k], 0.5)
    }
    y[tx] = acc[0]
  }
})",
     true},
    {"Recurrence", R"(program f(x: float32[64, 40], y: float32[64, 40]) {
  kernel b0 in 1 threads tx in 64 {
    serial k in 39 {
      y[tx, k + 1] = y[tx, k] * 0.5 + 1.0
    }
  }
})",
     false},
    {"RecurrenceThroughAView", R"(program f(y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    shared s: float32[64, 40]
    shared t: float32[2560] view s
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 40 {
      s[tx, k] = float32(k % 7)
    }
    serial k in 39 {
      t[tx * 40 + k + 1] = s[tx, k] * 0.5
      acc[0] = acc[0] + s[tx, k]
    }
    y[tx] = acc[0]
  }
})",
     false},
    {"SoftmaxAndWhatItWasMadeOf",
     R"(program f(x: float16[70, 50], y: float16[70, 50], z: float32[70, 50], w: float16[50]) {
  kernel bx in 3 threads tx, ty in 16, 2 {
    local own: float32[1]
    let row: int32 = bx * 32 + ty * 16 + tx
    if row < 70 {
      own[0] = 0.0
      serial k in 50 {
        own[0] = own[0] + abs(float32(x[row, k]))
      }
      serial k in 50 {
        let value: float32 = float32(x[row, k] * w[k])
        z[row, k] = value + own[0]
        y[row, k] = float16(value * 0.25)
      }
    }
  }
})",
     true, true},
    {"OnlyWritten", R"(program f(y: float32[64, 40], z: int32[2560]) {
  kernel b0 in 1 threads tx in 64 {
    serial k in 40 {
      y[tx, k] = 3.0
      if k > 3 {
        z[tx * 40 + k] = k
      }
    }
  }
})",
     false, true},
    {"WrittenTwice", R"(program f(x: float32[64, 40], y: float32[64, 41]) {
  kernel b0 in 1 threads tx in 64 {
    serial k in 40 {
      y[tx, k] = x[tx, k]
      y[tx, k + 1] = 1.0
    }
  }
})",
     true, false},
    {"Added", R"(program f(x: float32[64, 40], y: float32[64, 40]) {
  kernel b0 in 1 threads tx in 64 {
    serial k in 40 {
      y[tx, k] = y[tx, k] + x[tx, k]
    }
  }
})",
     true, false},
    {"FlatRemainders", R"(program f(x: float32[64, 120], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + x[(k * 64 + tx) % 48, k] + x[(k * 64 + tx) // 48, k + (k * 64 + tx) % 32]
    }
    y[tx] = acc[0]
  }
})",
     false},
    {"RowsSideBySide", R"(program f(x: float32[64, 4], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 4 {
      acc[0] = acc[0] + x[tx, k]
    }
    y[tx] = acc[0]
  }
})",
     false},
    {"Columns", R"(program f(x: float32[40, 64], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + x[k, tx]
    }
    y[tx] = acc[0]
  }
})",
     false},
    {"SlidingWindow", R"(program f(x: float32[200], y: float32[64]) {
  kernel b0 in 1 threads tx in 64 {
    local acc: float32[1]
    acc[0] = 0.0
    serial k in 40 {
      acc[0] = acc[0] + x[tx * 2 + k]
    }
    y[tx] = acc[0]
  }
})",
     false},
};
INSTANTIATE_TEST_SUITE_P(Kernels, RowBlocksTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tilepilot::testing
