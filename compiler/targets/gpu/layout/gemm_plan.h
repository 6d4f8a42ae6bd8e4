// How the threads of a block share a GEMM: which tensor-core instruction, how warps tile C, and which thread holds
// what. Where no instruction fits, each thread multiplies and adds a small tile of its own.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>

#include "compiler/ir/stmt.h"
#include "compiler/layout/atoms.h"
#include "compiler/layout/swizzle.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

struct GemmPlan {
  const layout::Atom* atom = nullptr;  // null: fused multiply-adds
  int64_t m = 0, n = 0, k = 0;
  int64_t warps_m = 1, warps_n = 1;  // warp w stands at (w % warps_m, w / warps_m); of a wgmma: warpgroup w
  layout::Fragment c;
  // Where an operand is held in registers. Without an atom neither can be.
  std::optional<layout::Fragment> a, b;
  bool splits = false;   // float32 operands are multiplied in parts (see split_product of the prelude)
  bool moves_b = false;  // of a wgmma that splits: B is not stored as it reads it, so both parts are written anew
  std::string reason;    // why there is no atom
  bool has_instruction = true;  // some tensor-core instruction multiplies these types
  std::string wgmma_obstacle;   // why the atom is no wgmma, where the architecture has it

  bool is_wgmma() const { return atom != nullptr && atom->threads == 128; }
  // Atoms of one warp, or warpgroup, along each axis.
  int64_t tiles_m() const { return m / (warps_m * atom->m); }
  int64_t tiles_n() const { return n / (warps_n * atom->n); }
  int64_t steps() const { return k / atom->k; }
  // Steps whose parts of A are held at a time by a wgmma that splits, and summed on their own.
  int64_t steps_together() const;
  // Of multiply-adds: steps of an operand that lie side by side, which threads load at once where C has no places
  // without an element.
  static constexpr int64_t kStepsAtOnce = 4;
  bool loads_steps_at_once() const { return atom == nullptr && k % kStepsAtOnce == 0 && !c.needs_guard(); }
};

// @post c covers [m, n] for `threads` threads
// @post registers of c: those of an atom, then atoms along n, then along m; of a: along k, then along m; of b: along k,
// then along n
// `viewed`: buffers that are seen as other types or shapes, which no layout but the linear one allows.
GemmPlan plan_gemm(const ir::Gemm& gemm, int64_t threads, const Machine& machine,
                   const std::unordered_set<const ir::BufferData*>& viewed);

// As what tensor cores take an operand: of float32, if the program allows it, the bits of tfloat32.
ir::DType mma_operand_type(const ir::Gemm& gemm, ir::DType operand);

}  // namespace tilepilot::targets::gpu
