// The whole plan for a graph: its primitives, which groups become kernels with which text, and what stays with PyTorch.
#pragma once

#include "agent/builtin/import/import.h"
#include "agent/builtin/writer/kernel_writer.h"

namespace tilepilot::agent::builtin {

struct PlanOptions {
  TileSizes tiles;
  ProductTiles product_tiles;  // of a processor
  // Products up to this inner length are computed by kernels, deeper ones by PyTorch.
  int64_t deepest_product = 0;
  bool bias_only = false;      // also those that only a bias follows
  bool lone_products = false;  // also those that nothing follows
  // Of float32 also those that little follows, if the model of the GPU expects them to be faster than PyTorch's.
  bool float32_products = false;
  std::set<int> calls;  // graph nodes left to PyTorch
  // Elements touched below which PyTorch's own calls are as good, unless they are many.
  int64_t smallest_kernel = 4096;
};

struct PlannedKernel {
  Group group;
  KernelText text;
  std::string name;
};

struct Plan {
  PrimitiveGraph graph;
  std::map<int, std::vector<double>> constants;  // values of the graph's constant tensors
  std::vector<PlannedKernel> kernels;
  std::vector<int> kernel_of;  // primitive -> kernel that computes it; -1: none
  int64_t shallowest_product =
      0;                      // inner length of a product that a kernel could finish but does not; 0: there is none
  bool has_products = false;  // in kernels
};

Result<Plan> make_plan(const eval::Reference& reference, const PlanOptions& options);

}  // namespace tilepilot::agent::builtin
