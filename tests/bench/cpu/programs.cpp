#include "programs.h"

#include <fmt/format.h>

namespace tilepilot::bench {
namespace {

int64_t blocks(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

constexpr const char* kRowSums = R"(program sums(x: float32[4096, 2048], y: float32[4096]) {
  kernel bx in 1024 threads 128 {
    fragment t: float32[4, 2048]
    fragment total: float32[4]
    copy x[bx * 4 : +4, 0 : 2048] -> t
    reduce sum t -> total axis 1
    copy total -> y[bx * 4 : +4]
  }
})";

}  // namespace

std::string gemm_program(const GemmProblem& p, const GemmTiles& t) {
  const auto shape = [&](int64_t rows, int64_t columns) {
    return p.transposed_b ? fmt::format("{}, {}", columns, rows) : fmt::format("{}, {}", rows, columns);
  };
  const std::string along_n = fmt::format("bx * {0} : +{0}", t.n), along_k = fmt::format("k * {0} : +{0}", t.k);
  const std::string b_region =
      p.transposed_b ? fmt::format("{}, {}", along_n, along_k) : fmt::format("{}, {}", along_k, along_n);
  return fmt::format(R"(program gemm(a: {type}[{m}, {k}], b: {type}[{b_shape}], c: {type}[{m}, {n}]) {{
  kernel bx, by in {blocks_n}, {blocks_m} threads 128 {{
    shared a_tile: {type}[{tm}, {tk}]
    shared b_tile: {type}[{b_tile}]
    fragment c_tile: float32[{tm}, {tn}]
    fill c_tile = 0.0
    pipelined k in {steps} stages 2 {{
      copy a[by * {tm} : +{tm}, {along_k}] -> a_tile
      copy b[{b_region}] -> b_tile
      gemm c_tile += a_tile @ b_tile{b_suffix}
    }}
    copy c_tile -> c[by * {tm} : +{tm}, {along_n}]
  }}
}}
)",
                     fmt::arg("type", p.type), fmt::arg("m", p.m), fmt::arg("n", p.n), fmt::arg("k", p.k),
                     fmt::arg("b_shape", shape(p.k, p.n)), fmt::arg("blocks_n", blocks(p.n, t.n)),
                     fmt::arg("blocks_m", blocks(p.m, t.m)), fmt::arg("tm", t.m), fmt::arg("tn", t.n),
                     fmt::arg("tk", t.k), fmt::arg("b_tile", shape(t.k, t.n)), fmt::arg("steps", blocks(p.k, t.k)),
                     fmt::arg("along_k", along_k), fmt::arg("along_n", along_n), fmt::arg("b_region", b_region),
                     fmt::arg("b_suffix", p.transposed_b ? ".T" : ""));
}

std::string softmax_program(int64_t rows, int64_t columns, int64_t rows_per_block) {
  return fmt::format(R"(program softmax(x: float32[{rows}, {columns}], y: float32[{rows}, {columns}]) {{
  kernel bx in {blocks} threads 128 {{
    fragment t: float32[{tile}, {columns}]
    fragment largest: float32[{tile}]
    fragment total: float32[{tile}]
    copy x[bx * {tile} : +{tile}, 0 : {columns}] -> t
    reduce max t -> largest axis 1
    parallel i, j in {tile}, {columns} {{
      t[i, j] = exp(t[i, j] - largest[i])
    }}
    reduce sum t -> total axis 1
    parallel i, j in {tile}, {columns} {{
      t[i, j] = t[i, j] / total[i]
    }}
    copy t -> y[bx * {tile} : +{tile}, 0 : {columns}]
  }}
}}
)",
                     fmt::arg("rows", rows), fmt::arg("columns", columns), fmt::arg("tile", rows_per_block),
                     fmt::arg("blocks", blocks(rows, rows_per_block)));
}

const std::vector<ThreadsAndTiles>& threads_and_tiles() {
  static const std::vector<ThreadsAndTiles> kPrograms = {
      {"silu, an element a thread",
       R"(program silu(x: float32[4096, 2048], y: float32[4096, 2048]) {
  kernel bx, by in 8, 4096 threads tx in 256 {
    let i: int32 = bx * 256 + tx
    if i < 2048 {
      y[by, i] = x[by, i] * sigmoid(x[by, i])
    }
  }
})",
       R"(program silu(x: float32[4096, 2048], y: float32[4096, 2048]) {
  kernel by in 4096 threads 256 {
    parallel i in 2048 {
      y[by, i] = x[by, i] * sigmoid(x[by, i])
    }
  }
})",
       4096, 2048, false},
      {"row sums, a row a thread",
       R"(program sums(x: float32[4096, 2048], y: float32[4096]) {
  kernel bx in 32 threads tx in 128 {
    local total: float32[1]
    let row: int32 = bx * 128 + tx
    total[0] = 0.0
    if row < 4096 {
      serial k in 2048 {
        total[0] = total[0] + x[row, k]
      }
      y[row] = total[0]
    }
  }
})",
       kRowSums, 4096, 2048, true},
      {"row sums, a tree in shared memory",
       R"(program sums(x: float32[4096, 2048], y: float32[4096]) {
  kernel row in 4096 threads tx in 256 {
    shared partial: float32[256]
    local own: float32[1]
    local step: int32[1]
    own[0] = 0.0
    serial k in 8 {
      own[0] = own[0] + x[row, k * 256 + tx]
    }
    partial[tx] = own[0]
    sync
    step[0] = 128
    while step[0] > 0 {
      if tx < step[0] {
        partial[tx] = partial[tx] + partial[tx + step[0]]
      }
      sync
      step[0] = step[0] // 2
    }
    if tx == 0 {
      y[row] = partial[0]
    }
  }
})",
       kRowSums, 4096, 2048, true},
  };
  return kPrograms;
}

}  // namespace tilepilot::bench
