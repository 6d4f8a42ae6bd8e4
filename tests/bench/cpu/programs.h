// The measured tile programs, in the IR's text form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilepilot::bench {

struct GemmTiles {
  int64_t m, n, k;
};

// c[M, N] = a[M, K] . b, with b as [K, N] or, transposed, as [N, K].
struct GemmProblem {
  int64_t m, n, k;
  bool transposed_b;
  std::string type = "float32";
};
std::string gemm_program(const GemmProblem& problem, const GemmTiles& tiles);

// y = softmax(x) along the last axis of [rows, columns], `rows_per_block` rows a block.
std::string softmax_program(int64_t rows, int64_t columns, int64_t rows_per_block);

// The same computation by threads and by tile operators. y has the rows of x, and its columns unless it is a sum of
// them; a product has operands of `rows` x `rows`; of others the tensors have these shapes.
struct ThreadsAndTiles {
  enum class Kind { elements, sums, product, shapes };
  std::string name, threads, tiles;
  int64_t rows, columns;
  Kind kind;
  bool is_half = false;
  std::vector<std::vector<int64_t>> shapes = {};
};
std::vector<ThreadsAndTiles> threads_and_tiles();

}  // namespace tilepilot::bench
