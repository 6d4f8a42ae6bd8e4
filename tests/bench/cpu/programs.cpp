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

// c = a . b by threads; {0} is the element type.
constexpr std::pair<const char*, const char*> kProducts[] = {
    {"a row of threads", R"(program product(a: {0}[1024, 1024], b: {0}[1024, 1024], c: {0}[1024, 1024]) {{
  kernel bx, row in 4, 1024 threads tx in 256 {{
    local sum: float32[1]
    let column: int32 = bx * 256 + tx
    if column < 1024 {{
      sum[0] = 0.0
      serial k in 1024 {{
        sum[0] = sum[0] + float32(a[row, k]) * float32(b[k, column])
      }}
      c[row, column] = {0}(sum[0])
    }}
  }}
}})"},
    {"16 x 16 threads", R"(program product(a: {0}[1024, 1024], b: {0}[1024, 1024], c: {0}[1024, 1024]) {{
  kernel bx, by in 64, 64 threads tx, ty in 16, 16 {{
    local sum: float32[1]
    let row: int32 = by * 16 + ty
    let column: int32 = bx * 16 + tx
    sum[0] = 0.0
    serial k in 1024 {{
      sum[0] = sum[0] + float32(a[row, k]) * float32(b[k, column])
    }}
    c[row, column] = {0}(sum[0])
  }}
}})"},
    {"16 x 16 threads, shared tiles", R"(program product(a: {0}[1024, 1024], b: {0}[1024, 1024], c: {0}[1024, 1024]) {{
  kernel bx, by in 64, 64 threads tx, ty in 16, 16 {{
    shared s: {0}[16, 16]
    shared t: {0}[16, 16]
    local sum: float32[1]
    sum[0] = 0.0
    serial step in 64 {{
      s[ty, tx] = a[by * 16 + ty, step * 16 + tx]
      t[ty, tx] = b[step * 16 + ty, bx * 16 + tx]
      sync
      serial k in 16 {{
        sum[0] = sum[0] + float32(s[ty, k]) * float32(t[k, tx])
      }}
      sync
    }}
    c[by * 16 + ty, bx * 16 + tx] = {0}(sum[0])
  }}
}})"},
    {"16 x 16 threads of 4 x 4", R"(program product(a: {0}[1024, 1024], b: {0}[1024, 1024], c: {0}[1024, 1024]) {{
  kernel bx, by in 16, 16 threads tx, ty in 16, 16 {{
    shared s: {0}[64, 16]
    shared t: {0}[16, 64]
    local sum: float32[4, 4]
    local x: float32[4]
    local y: float32[4]
    serial i in 4 {{
      serial j in 4 {{
        sum[i, j] = 0.0
      }}
    }}
    serial step in 64 {{
      serial i in 4 {{
        let e: int32 = i * 256 + ty * 16 + tx
        s[e // 16, e % 16] = a[by * 64 + e // 16, step * 16 + e % 16]
        t[e // 64, e % 64] = b[step * 16 + e // 64, bx * 64 + e % 64]
      }}
      sync
      serial k in 16 {{
        unrolled i in 4 {{
          x[i] = float32(s[ty * 4 + i, k])
        }}
        unrolled j in 4 {{
          y[j] = float32(t[k, tx * 4 + j])
        }}
        unrolled i in 4 {{
          unrolled j in 4 {{
            sum[i, j] = sum[i, j] + x[i] * y[j]
          }}
        }}
      }}
      sync
    }}
    serial i in 4 {{
      serial j in 4 {{
        c[by * 64 + ty * 4 + i, bx * 64 + tx * 4 + j] = {0}(sum[i, j])
      }}
    }}
  }}
}})"},
};

// A convolution of 3 x 3, an element a thread; {0} is the element type.
constexpr const char* kConvolution =
    R"(program convolution(x: {0}[4, 64, 56, 56], w: {0}[64, 64, 3, 3], y: {0}[4, 64, 56, 56]) {{
  kernel bx in 3136 threads tx in 256 {{
    local sum: float32[1]
    let i: int32 = bx * 256 + tx
    if i < 802816 {{
      let row: int32 = i // 56 % 56
      sum[0] = 0.0
      serial c in 64 {{
        serial kh in 3 {{
          serial kw in 3 {{
            let ih: int32 = row + kh - 1
            let iw: int32 = i % 56 + kw - 1
            if ih >= 0 and ih < 56 and iw >= 0 and iw < 56 {{
              sum[0] = sum[0] + float32(x[i // 200704, c, ih, iw]) * float32(w[i // 3136 % 64, c, kh, kw])
            }}
          }}
        }}
      }}
      y[i // 200704, i // 3136 % 64, row, i % 56] = {0}(sum[0])
    }}
  }}
}})";
constexpr const char* kConvolutionTiles =
    R"(program convolution(x: {0}[4, 64, 56, 56], w: {0}[64, 64, 3, 3], y: {0}[4, 64, 56, 56]) {{
  kernel bx, n in 7, 4 threads 128 {{
    shared s: {0}[64, 72]
    shared t: {0}[72, 448]
    fragment sum: float32[64, 448]
    fill sum = 0.0
    serial step in 8 {{
      parallel o, k in 64, 72 {{
        s[o, k] = w[o, step * 8 + k // 9, k // 3 % 3, k % 3]
      }}
      parallel k, i in 72, 448 {{
        let ih: int32 = bx * 8 + i // 56 + k // 3 % 3 - 1
        let iw: int32 = i % 56 + k % 3 - 1
        t[k, i] = select(ih >= 0 and ih < 56 and iw >= 0 and iw < 56, x[n, step * 8 + k // 9, ih, iw], {0}(0.0))
      }}
      gemm sum += s @ t
    }}
    parallel o, i in 64, 448 {{
      y[n, o, bx * 8 + i // 56, i % 56] = {0}(sum[o, i])
    }}
  }}
}})";

// y = softmax(x), a row a thread; {0} is the element type.
constexpr const char* kSoftmaxRows = R"(program softmax(x: {0}[2048, 1024], y: {0}[2048, 1024]) {{
  kernel bx in 16 threads tx in 128 {{
    local own: float32[2]
    let row: int32 = bx * 128 + tx
    own[0] = -1e30
    serial k in 1024 {{
      own[0] = max(own[0], float32(x[row, k]))
    }}
    own[1] = 0.0
    serial k in 1024 {{
      own[1] = own[1] + exp(float32(x[row, k]) - own[0])
    }}
    serial k in 1024 {{
      y[row, k] = {0}(exp(float32(x[row, k]) - own[0]) / own[1])
    }}
  }}
}})";
constexpr const char* kSoftmaxTiles = R"(program softmax(x: {0}[2048, 1024], y: {0}[2048, 1024]) {{
  kernel bx in 512 threads 128 {{
    fragment t: float32[4, 1024]
    fragment largest: float32[4]
    fragment total: float32[4]
    copy x[bx * 4 : +4, 0 : 1024] -> t
    reduce max t -> largest axis 1
    parallel i, j in 4, 1024 {{
      t[i, j] = exp(t[i, j] - largest[i])
    }}
    reduce sum t -> total axis 1
    parallel i, j in 4, 1024 {{
      t[i, j] = t[i, j] / total[i]
    }}
    copy t -> y[bx * 4 : +4, 0 : 1024]
  }}
}})";

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

std::vector<ThreadsAndTiles> threads_and_tiles() {
  using Kind = ThreadsAndTiles::Kind;
  std::vector<ThreadsAndTiles> programs = {
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
       4096, 2048, Kind::elements},
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
       kRowSums, 4096, 2048, Kind::sums},
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
       kRowSums, 4096, 2048, Kind::sums},
  };
  for (const bool is_half : {false, true}) {
    const std::string type = is_half ? "float16" : "float32";
    const std::string tiles = gemm_program({1024, 1024, 1024, false, type}, {128, 128, 32});
    for (const auto& [name, text] : kProducts)
      programs.push_back({fmt::format("{} product, {}", type, name), fmt::format(fmt::runtime(text), type), tiles, 1024,
                          1024, Kind::product, is_half});
    const auto of_type = [&](const char* text) { return fmt::format(fmt::runtime(text), type); };
    programs.push_back({type + " softmax, a row a thread", of_type(kSoftmaxRows), of_type(kSoftmaxTiles), 2048, 1024,
                        Kind::elements, is_half});
    programs.push_back({type + " convolution, an element a thread",
                        of_type(kConvolution),
                        of_type(kConvolutionTiles),
                        0,
                        0,
                        Kind::shapes,
                        is_half,
                        {{4, 64, 56, 56}, {64, 64, 3, 3}, {4, 64, 56, 56}}});
  }
  return programs;
}

}  // namespace tilepilot::bench
