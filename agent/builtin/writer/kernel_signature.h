// The outside of a kernel: its tensor parameters with their declared shapes, the sizes its factory takes, and how each
// operand is indexed by the kernel's loops.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/builtin/writer/tensor_access.h"

namespace tilepilot::agent::builtin {

struct KernelArgument {
  int base;     // primitive in memory
  Shape shape;  // what the kernel wants it to look like
};

struct KernelResult {
  int value;          // primitive
  Shape shape;        // as the kernel writes it
  int argument = -1;  // written over this argument; -1: a tensor of its own
};

struct TensorFacts {
  // Names that people read: what to call the tensor behind a primitive.
  std::function<std::string(int base)> name;
  // True if nothing but this group reads the tensor, so that a result may take its place.
  std::function<bool(int base)> dies_here;
  // The tensor that a value must be written over; -1: none.
  std::function<int(int value)> home;
};

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

struct SignatureRequest {
  const PrimitiveGraph& graph;
  const Group& group;
  const TilePlan& tiles;
  const TensorFacts& facts;
  std::set<int> overwriting = {};  // results written by the last loops that read anything
  int product = -1;                // a base that the kernel computes itself: no parameter
};

// nullopt: an operand's strides fit no declared shape.
std::optional<KernelSignature> make_signature(const SignatureRequest& request, NamePool& pool);

}  // namespace tilepilot::agent::builtin
