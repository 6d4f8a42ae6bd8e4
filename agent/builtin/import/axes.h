// The axes of a fused group. Each value's dimensions are sequences of atoms; operators make atoms of different values
// the same, and reshapes split them, until every value of the group is indexed by one common set of loop axes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "agent/builtin/import/primitives.h"

namespace tilepilot::agent::builtin {

using AtomList = std::vector<int>;

class AxisSpace {
 public:
  AtomList fresh(int64_t extent);  // empty for extent 1
  // Makes two sequences of equal total extent the same, splitting atoms where needed. False: they do not align.
  bool unify(const AtomList& a, const AtomList& b);
  AtomList resolve(const AtomList& atoms) const;
  int64_t extent(int atom) const { return atoms_[static_cast<size_t>(atom)].extent; }

 private:
  struct Atom {
    int64_t extent;
    AtomList parts;  // what it was split into or made equal to; empty: itself
  };
  mutable std::vector<Atom> atoms_;  // resolve() shortens the way from an atom to its parts
};

// A tensor that a group reads: a strided window of the memory behind `base`.
struct Leaf {
  int base;  // primitive whose value lies contiguous in memory
  Strided view;
};

// Where a value of the group lies along an atom, in elements of its memory; 0: it does not vary.
using AtomStrides = std::map<int, int64_t>;

struct GroupAxes {
  std::map<int, int64_t> extents;             // atoms in use
  std::map<int, std::vector<AtomList>> dims;  // value -> atoms of each dimension
  std::map<int, AtomStrides> leaf_strides;    // leaf value -> strides
  std::map<int, Leaf> leaves;
  std::vector<int> reduced;  // atoms reduced, sorted

  bool varies(int value, int atom) const;
  AtomList atoms_of(int value) const;  // in the order of its dimensions
};

// The window of memory that `id` is, following views down to something that is in memory: a source, a call, or a value
// that `materialised` names. A view that needs a copy is its own base.
Leaf resolve_leaf(const PrimitiveGraph& graph, int id);

// nullopt: the members cannot share loops.
std::optional<GroupAxes> analyse_axes(const PrimitiveGraph& graph, const std::vector<int>& members);

}  // namespace tilepilot::agent::builtin
