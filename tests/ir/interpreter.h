// A slow, obvious interpreter of the IR: the oracle that passes and backends are compared with. One element at a time,
// one block after the other, in the order of the text.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir::testing {

// An element: integers and bools in `i`, floating point in `f` (always a value that its type has).
struct Element {
  int64_t i = 0;
  double f = 0;
};

// The bits of an element, to compare and to reinterpret.
uint64_t to_bits(Element element, DType type);
Element from_bits(uint64_t bits, DType type);

struct Arguments {
  std::vector<std::vector<Element>> buffers;  // of the buffer parameters in order, row-major whatever their strides
  std::vector<Element> scalars;               // of the scalar parameters in order
  std::vector<int64_t> symbols;
};

// Random contents for a program's parameters; symbols are small.
Arguments random_arguments(const Program& program, uint32_t seed);

// Runs the program on the arguments. False if it takes more than `budget` steps.
bool interpret(const Program& program, Arguments& arguments, int64_t budget = 20'000'000);

}  // namespace tilepilot::ir::testing
