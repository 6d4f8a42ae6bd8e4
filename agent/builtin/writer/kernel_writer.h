// A fused group as a tile kernel in TileLang: a factory of sizes, inside it the program.
#pragma once

#include "agent/builtin/phases.h"
#include "agent/builtin/writer/kernel_signature.h"
#include "agent/builtin/writer/product_prologue.h"

namespace tilepilot::agent::builtin {

struct KernelText {
  std::string parameters;      // of the factory: "M, N, block_M=4, dtype=\"float32\""
  std::string body;            // all lines below the factory's `def`
  std::vector<int64_t> sizes;  // values for the factory's leading parameters
  std::vector<KernelArgument> arguments;
  std::vector<KernelResult> results;  // those in place first; the others are the last parameters

  size_t new_results() const;
};

struct KernelRequest {
  const PrimitiveGraph& graph;
  const Group& group;
  const TilePlan& tiles;
  const TensorFacts& facts;
  int product = -1;  // a matrix product that the kernel makes itself
  ProductTiles product_tiles = {};
};

// nullopt: an operand's strides fit no declared shape.
std::optional<KernelText> write_kernel(const KernelRequest& request);

// The lines of a factory's body around a kernel: the program's parameters, the launch, `return main`.
std::string frame_program(const KernelSignature& signature, const std::string& launch,
                          const std::vector<std::string>& lines);

}  // namespace tilepilot::agent::builtin
