// How a parallel loop with serial loops inside is run as vector code: which of its variables is the lane of a vector,
// how many iterations, called lanes, make a chunk, and which buffers a chunk keeps in arrays of its own, small enough
// for registers.
#pragma once

#include <optional>

#include "compiler/targets/cpu/loops/lane_runs.h"
#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {

// Lanes of 4 bytes that fill a vector of 64, the longest there is.
inline constexpr int64_t kVectorLanes = 16;

// Steps of a serial loop that are done together where lanes walk along rows (see transposed_loads.h), as `row_steps` of
// the prelude: a line of a cache has so many elements of 4 bytes.
inline constexpr int64_t kRowSteps = 16;

struct LanePlan {
  std::vector<Dimension> outer;  // plain loops around the chunks
  std::optional<Dimension> row;  // a chunk has several rows of lanes, else one
  Dimension lane;
  int64_t rows = 1;             // they divide the extent of `row`
  int64_t width = 1;            // lanes of a row
  bool is_whole = true;         // they divide the extent of `lane`; else the last chunk has fewer
  std::vector<ir::Buffer> own;  // used in serial loops, by each lane its own elements: [.., dimensions]; or private
  std::unordered_set<const ir::BufferData*> fresh;  // those of which lanes read only what they wrote before
  std::vector<Dimension> thread;                    // the dimensions, in the order in which `own` buffers have them

  LaneRuns runs;
  bool ends_with_runs = false;  // a chunk ends where a run does; else none ends inside a chunk

  std::unordered_set<const ir::BufferData*> without_thread;  // of `own`, those that have no axes of the dimensions

  int64_t chunk_size() const { return rows * width; }
  // The axes of a buffer of `own` before the thread's.
  size_t leading_axes(const ir::Buffer& buffer) const {
    return buffer->rank() - (without_thread.contains(buffer.get()) ? 0 : thread.size());
  }
};

// What lanes differ in.
class LaneFacts {
 public:
  LaneFacts(const std::vector<Dimension>& dimensions, const ir::Stmt& body);
  // The same for all lanes, whenever it is computed.
  bool is_uniform(const ir::Expr& expr) const;
  bool is_varying(const ir::Var& var) const { return varying_.contains(var.get()); }
  // Does not read what the body writes.
  bool is_stable(const ir::Expr& expr) const;
  bool is_stored(const ir::Buffer& buffer) const { return stored_.contains(buffer.get()); }
  bool stores_any(const std::unordered_set<const ir::BufferData*>& buffers) const;

  // A loop that all lanes take the same way.
  bool is_common(const ir::For& loop) const;
  // A branch that may stand around each statement of its body alone.
  bool is_guard(const ir::If& branch) const { return branch.otherwise == nullptr && is_stable(branch.condition); }
  // There is a common loop that the lanes reach together, or behind guards.
  bool has_common_loop(const ir::Stmt& stmt) const;

 private:
  std::unordered_set<const ir::VarData*> varying_;
  std::unordered_set<const ir::BufferData*> stored_;
};

// Nullopt if lanes would have to keep too much.
std::optional<LanePlan> plan_lanes(const c::Context& context, const LaneFacts& facts,
                                   const std::vector<Dimension>& dimensions, const ir::Stmt& body);

}  // namespace tilepilot::targets::cpu
