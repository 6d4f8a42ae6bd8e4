// A row of the table of tensor-core instructions by what is written in it.
#pragma once

#include <stdexcept>
#include <string>

#include "compiler/layout/atoms.h"

namespace tilepilot::layout::testing {

inline const Atom& atom_named(std::string_view instruction, std::string_view operands) {
  for (const Atom& atom : atoms()) {
    if (atom.instruction == instruction && atom.operands == operands) return atom;
  }
  throw std::out_of_range("no " + std::string(instruction) + " of " + std::string(operands));
}

// The one that most examples are about.
inline const Atom& half_atom() { return atom_named("mma.sync.m16n8k16", "f16 bf16"); }

}  // namespace tilepilot::layout::testing
