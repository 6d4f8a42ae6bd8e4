// Arithmetic by class, as tables of a GPU's throughput have it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/source/source.h"

namespace tilepilot::targets::c {

// 16-bit floats have no class: each of their operations is one of float32 and conversions, here as on the GPU.
enum class Operation : uint8_t {
  fp32,              // sums, differences and products
  fp32_fma,          // a product in a sum or difference
  fp64,              // the same, quotients and functions
  integer,           // sums, products, shifts and bits; quotients by powers of two; indices among them
  integer_division,  // other quotients and remainders, of some tens of instructions unless they are by a constant
  comparison,        // comparisons, choices, minima, maxima
  conversion,        // from, to and between floating-point types, to integers of 4 bits, roundings to whole numbers
  special,           // functions and quotients of float32, each of a few instructions
};
constexpr size_t kOperationClasses = 8;
std::string_view name_of(Operation operation);

class Operations {
 public:
  int64_t& operator[](Operation operation) { return counts_[static_cast<size_t>(operation)]; }
  int64_t operator[](Operation operation) const { return counts_[static_cast<size_t>(operation)]; }
  int64_t total() const;
  void add(const Operations& other, int64_t times = 1);
  friend bool operator==(const Operations&, const Operations&) = default;

 private:
  std::array<int64_t, kOperationClasses> counts_{};
};

// What a call `count_operations(number)` in generated code counts, by the places in the program that it is for.
struct OperationCounter {
  struct Part {
    Span span;
    Operations operations;
  };
  std::vector<Part> parts;
};

}  // namespace tilepilot::targets::c
