// One parallel loop as what each thread does of it. The first mode of a loop's registers, if its iterations are
// neighbours along an axis, is the lanes: what they load and store becomes vectors where vectors.h allows it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/loop_body.h"
#include "compiler/targets/gpu/layout/lane_window.h"
#include "compiler/targets/gpu/lower/vectors.h"

namespace tilepilot::targets::gpu {

class LoopLowering {
 public:
  LoopLowering(Lowering& lowering, const ir::Stmt& stmt, const layout::Fragment& fragment)
      : lowering_(lowering),
        stmt_(stmt),
        loop_(*ir::as<ir::For>(stmt)),
        body_(loop_, lowering.inference.machine.adds_vectors),
        matrices_(matrix_stores(lowering, loop_, fragment)),
        fragment_(matrices_.matrices ? matrices_.matrices->iterations : fragment) {}

  void run(Lowering::Stmts& out);

 private:
  void write(Lowering::Stmts& out);
  void all_registers(Lowering::Stmts& out);

  Lowering& lowering_;
  const ir::Stmt& stmt_;
  const ir::For& loop_;
  LoopBody body_;   // of what is done under `guard_`
  ir::Expr guard_;  // of all that an iteration does, the same for all lanes; null: there is none
  MatrixStores matrices_;
  const layout::Fragment fragment_;
  Indices thread_, digits_;
  ir::Expr lane_;  // of a warp
  std::unordered_map<const ir::StmtNode*, ir::Buffer>
      held_;                   // what a thread has of the matrices that such a store writes
  std::vector<ir::Var> vars_;  // of the digits of a register
  ir::Expr first_;             // true for the first of several threads with the same iterations; null if there is one
  int64_t lanes_ = 1;
  int64_t rounds_ = 1;        // how often the lanes come round
  bool loads_first_ = false;  // of all rounds: no store holds back a load, and iterations do not depend on each other
  std::vector<ir::Expr> early_;  // of single elements, these loads
  // For each way in which a fragment is named: the register that each register of the loop stands for, as multiples of
  // digits.
  struct Map {
    std::vector<int64_t> registers, steps;
    int64_t start = 0;
  };
  std::map<std::pair<const ir::BufferData*, std::string>, Map> by_use_;  // see `key`
  bool linear_ = true;
  int64_t reg_ = 0;  // where registers are written out one by one
  bool names_fragments_ = false;
  const bool is_guarded_ = fragment_.needs_guard();
  std::vector<std::string> widths_, obstacles_;  // of accesses to memory, for the decision

  static void add_once(std::vector<std::string>& all, std::string text) {
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
  }
  void take_guard();
  void note_obstacles();
  void decide();
  std::string tma_obstacle(const ir::Buffer& from, const ir::Buffer& to) const;

  Span span() const { return stmt_->span; }

  void replicas(Lowering::Stmts& out);
  // Indices of one fragment are told apart by how they are written over the loop's variables.
  static std::string key(const std::vector<ir::Expr>& indices);

  void find_register_maps();
  Map linear(std::vector<int64_t> registers);
  ir::Expr register_of(const ir::Buffer& buffer, const std::string& use) const;

  // The last mode of registers within the matrices that one instruction stores.
  size_t modes_of_matrices() const {
    return held_.empty() ? SIZE_MAX : static_cast<size_t>(matrices_.matrices->digits);
  }
  void hold_matrices(Lowering::Stmts& out);
  ir::Expr place_in_matrices() const;
  void store_matrices(Lowering::Stmts& out) const;

  ir::Stmt around(const ir::Var& var, int64_t count, Lowering::Stmts body) const;

  // What is done for one register, or for all lanes; `loads` comes before `out`, and may be the same.
  void iteration(Lowering::Stmts& loads, Lowering::Stmts& out);

  ir::Expr at_place(const ir::Var& var, const Indices& at) const;

  // The expression in the iteration that is there.
  ir::Expr placed(const ir::Expr& expr, const Indices& at) const;

  // Registers are found by the indices as the loop has them, before its variables are replaced.
  class Placer;
  struct LaneAccess {
    std::optional<Vector> vector;
    std::optional<LaneWindow> window;
  };
  LaneAccess access_of(const ir::Load& load, Placer& placer, Lowering::Stmts& lets);
  std::optional<Vector> vector_of(const ir::Buffer& buffer, const std::vector<ir::Expr>& given, Placer& placer,
                                  Lowering::Stmts& lets);
  std::optional<std::vector<ir::Expr>> lane_indices(const ir::Buffer& buffer, const std::vector<ir::Expr>& given,
                                                    Placer& placer, Lowering::Stmts& reads);
  void note_width(const ir::Buffer& buffer, int64_t elements);
  struct LaneLoads {
    std::vector<ir::Expr> parts;  // of the loop's body
    LaneAccess access;
  };
  std::vector<LaneLoads> lane_loads(Placer& placer, Lowering::Stmts& before);
  void load_windows(std::vector<LaneLoads>& all, Placer& placer, Lowering::Stmts& before);
  bool is_left_alone(const ir::Buffer& buffer) const;
  void store_windows(Placer& placer, Lowering::Stmts& after);
  VectorMove moved(const Vector& vector, int64_t elements, bool stores);
  Lowering::Stmts element(const Indices& at, Lowering::Stmts& before);
  ir::Expr place_of_round(int64_t weight, size_t first) const;
  void in_lanes(const Indices& at, Lowering::Stmts& loads, Lowering::Stmts& out);
};

// Replaces the loop's variables by coordinates, tiles and fragments by their places, and accesses that became vectors
// by the lane's element of these.
class LoopLowering::Placer : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Placer(const LoopLowering& loop, const Indices& at) : loop_(loop), at_(at) {}

  struct Place {
    ir::Buffer registers;
    ir::Expr index;
  };
  std::map<const ir::ExprNode*, ir::Expr> loads;  // instead of these
  std::map<const ir::StmtNode*, Place> stores;    // and sums

  ir::Expr rewrite(const ir::Expr& expr) override;
  ir::Stmt rewrite(const ir::Stmt& stmt) override;

 private:
  const LoopLowering& loop_;
  const Indices& at_;
  std::map<const ir::VarData*, ir::Var> own_;  // of iterations that are written out one by one

  // The variable that a statement binds, in one scope with those of the iterations before if these are written out.
  ir::Var own(const ir::Var& var) {
    return loop_.linear_ || !var ? var : own_[var.get()] = ir::make_var(var->name, var->type);
  }

  const std::unordered_map<const ir::BufferData*, ir::Buffer>& places() const { return loop_.lowering_.places; }

  std::vector<ir::Expr> indices(const ir::Buffer& buffer, const std::vector<ir::Expr>& given);

  // What others see is written by one of the threads that do the same.
  ir::Stmt by_first(ir::Stmt stmt, const ir::Buffer& buffer) const;

  // Arrivals are counted, lines are read.
  ir::Stmt once(const ir::Stmt& stmt) const;

  ir::Stmt rewrite_store(const ir::Stmt& stmt, const ir::Store& store);
  ir::Stmt rewrite_atomic(const ir::Stmt& stmt, const ir::Atomic& atomic);
};

}  // namespace tilepilot::targets::gpu
