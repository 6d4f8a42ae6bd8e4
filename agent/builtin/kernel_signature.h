// The outside of a kernel: its tensor parameters with their declared shapes, the sizes its factory takes, and how each
// operand is indexed by the kernel's loops.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/builtin/tensor_access.h"

namespace tilepilot::agent::builtin {

struct KernelArgument {
  int base;     // primitive in memory
  Shape shape;  // what the kernel wants it to look like
};

struct KernelResult {
  int value;    // primitive
  Shape shape;  // as the kernel writes it
};

// Names that people read: what to call the tensor behind a primitive.
using TensorNames = std::function<std::string(int base)>;

// Gives each name once; a second request gets a number.
class NamePool {
 public:
  std::string take(std::string wanted);

 private:
  std::set<std::string> taken_;
};

struct TensorParameter {
  std::string name;
  std::string shape;  // "(M, N)"
  std::string dtype;  // torch's name
};

struct KernelSignature {
  std::vector<TensorParameter> parameters;
  std::map<int, std::string> name_of;     // leaf or output -> parameter
  std::map<int, TensorAccess> access_of;  // leaf or output -> indexing
  std::vector<KernelArgument> arguments;
  std::vector<KernelResult> results;
  std::string dtype;  // of most tensors: the factory's argument
};

// nullopt: an operand's strides fit no declared shape.
std::optional<KernelSignature> make_signature(const PrimitiveGraph& graph, const Group& group, const TilePlan& tiles,
                                              const TensorNames& names, NamePool& pool);

}  // namespace tilepilot::agent::builtin
