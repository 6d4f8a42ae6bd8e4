// A matrix product with the element-wise group that follows it, as one tile kernel: the product stays in a fragment and
// only the finished result is written.
#pragma once

#include "agent/builtin/kernel_writer.h"

namespace tilepilot::agent::builtin {

struct ProductTiles {
  int64_t rows = 128, columns = 256, depth = 128;
};

// The product that `group` may finish in its own kernel: a two-dimensional one that only the group reads, element by
// element in place. -1: none.
int fusable_product(const PrimitiveGraph& graph, const Group& group, const TensorFacts& facts);

std::optional<KernelText> write_product_kernel(const PrimitiveGraph& graph, const Group& group, int product,
                                               const ProductTiles& tiles, const TensorFacts& facts);

}  // namespace tilepilot::agent::builtin
