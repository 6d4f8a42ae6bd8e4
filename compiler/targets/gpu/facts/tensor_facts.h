// What code takes for granted about tensors beyond what a program declares, and programs for launches whose tensors are
// otherwise. Code is written for what LibTorch allocates: tensors that begin at a multiple of 16 bytes, whose rows are
// multiples of 16 bytes, with fewer than 2^31 elements. Slices may begin elsewhere, rows may have any length where an
// extent is known at launch alone, and so may there be more elements than 32 bits count: vectors and boxes of the copy
// TMA would fault there, indices would wrap. Facts are few, so that a program has few versions.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// See ir::BufferData. The usual ones hold of what they do not matter for: constant shapes say more.
struct TensorFacts {
  int64_t alignment = ir::kTensorAlignment;
  int64_t row_alignment = ir::kTensorAlignment;  // or 1
  bool few_elements = true;

  friend auto operator<=>(const TensorFacts&, const TensorFacts&) = default;
};

// Bytes that the address is a multiple of, 16 at most.
int64_t alignment_of(const void* address);
// Of a tensor's address as far as it is known, also under another name.
int64_t alignment_of(const ir::BufferData& tensor);

// Of a program's buffer parameters, then of its workspaces.
std::vector<TensorFacts> usual_facts(const ir::Program& program);

// The facts of a program's launches. What is the same for all of them is found once.
class FactFinder {
 public:
  explicit FactFinder(const ir::Program& program);
  // For tensors at these addresses, one a parameter, and these values of symbols.
  std::vector<TensorFacts> find(const std::vector<void*>& addresses, const ir::VarRanges& values) const;

 private:
  struct Tensor {
    ir::Buffer buffer;
    bool has_symbols;
    std::vector<bool>
        is_row;  // for each axis, whether a row's length, or how far it is apart, is known at launch alone
  };
  std::vector<Tensor> tensors_;

  static void find_extents(const Tensor& tensor, const ir::VarRanges& values, TensorFacts& facts);
};

// The program for tensors of which these facts hold.
// @pre as many as there are buffer parameters and workspaces
ir::Program with_facts(const ir::Program& program, const std::vector<TensorFacts>& facts);
inline ir::Program for_usual_tensors(const ir::Program& program) { return with_facts(program, usual_facts(program)); }

// For people: what code for the program relies on, a clause for each tensor whose shape has symbols.
std::vector<std::string> reliances(const ir::Program& program);

// What is known of a number of elements: that it is this one, or a multiple of it.
struct Multiple {
  int64_t of = 1;
  bool is_exact = false;
};

// How far the axes of a global buffer are apart, all but the last; none if elements of its rows are.
std::optional<std::vector<Multiple>> row_distances(const ir::BufferData& tensor);
// How many elements its rows have.
Multiple row_length(const ir::BufferData& tensor);

}  // namespace tilepilot::targets::gpu
