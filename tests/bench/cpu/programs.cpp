#include "programs.h"

#include <fmt/format.h>

namespace tilepilot::bench {
namespace {

int64_t blocks(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

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

}  // namespace tilepilot::bench
