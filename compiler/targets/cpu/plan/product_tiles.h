// Matrix products of threads as tile operators: what threads multiply is copied to tiles, or lies in one already, and a
// `gemm` does the sums, so that operands are packed and registers used as for products that the program writes as such.
// Threads are independent between two meetings; what stands before and after a product becomes a loop of its own.
#pragma once

#include <optional>

#include "compiler/targets/cpu/plan/products.h"

namespace tilepilot::targets::cpu {

struct TiledProducts {
  ir::Kernel kernel;
  std::vector<Product> products;
};
struct LeastProduct {
  int64_t rows, columns, elements;
};

// Nullopt if there is no product of that size. `kernel` is in the form that code is generated from, without lets of
// index arithmetic.
std::optional<TiledProducts> tile_products(const ir::Kernel& kernel, const LeastProduct& least);

}  // namespace tilepilot::targets::cpu
