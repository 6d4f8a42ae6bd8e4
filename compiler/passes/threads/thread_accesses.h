// Which elements of shared tiles and of global memory each thread of a block touches, and whether one thread may touch
// what another one does. Indices are split into what is known for each thread, what is the same for all of them, and
// what inner loops add; what fits none of these may be any index.
#pragma once

#include <unordered_set>

#include "compiler/passes/algebra/sum.h"
#include "compiler/passes/threads/thread_differences.h"
#include "compiler/passes/threads/thread_values.h"

namespace tilepilot::passes {

enum class AccessKind : uint8_t { read, write, atomic };

struct ThreadAccess {
  struct Axis {
    bool known = false;              // else any index, and the rest is empty
    std::vector<int64_t> of_thread;  // one a thread
    std::vector<Sum::Term> shared;   // the same for all threads
    int64_t lo = 0, hi = 0;          // what inner loops add, both ends included
    // Each number that they add, in order; none if there are too many.
    std::vector<int64_t> added = {0};
  };
  const ir::BufferData* buffer;
  AccessKind kind;
  std::vector<Axis> axes;
  std::vector<bool> by;    // which threads
  bool warps_met = false;  // since then the threads of each warp have met
  // All threads come to a tile operator or a parallel loop after it; of a later access: before it. Programs order what
  // threads do to global memory only so, or by barriers of their own.
  bool past_operator = false;
};

class ThreadAccesses {
 public:
  ThreadAccesses(const ir::Kernel& kernel, const ThreadDifferences& differences)
      : kernel_(kernel), differences_(differences), values_(kernel) {}

  // By the statement and everything below; `by`: by which threads.
  std::vector<ThreadAccess> of(const ir::Stmt& s, const std::vector<bool>& by) const;
  std::vector<ThreadAccess> of(const std::vector<ir::Expr>& exprs, const std::vector<bool>& by) const;
  std::vector<bool> all_threads() const;
  // Those among `by` for which the condition is `holds`, as far as it is about the thread alone.
  std::vector<bool> where(const ir::Expr& condition, bool holds, std::vector<bool> by) const;

  // The accesses of a loop's body as the accesses of the loop.
  std::vector<ThreadAccess> of_loop(std::vector<ThreadAccess> accesses, const ir::Stmt& loop) const;

  // Whether two threads may touch one element, one of them writing.
  bool conflict(const ThreadAccess& earlier, const ThreadAccess& later) const;
  // The same, `later` being some iterations of the loop after `earlier`, or only one.
  bool conflict_in(const ir::Stmt& loop, bool next_only, const ThreadAccess& earlier, const ThreadAccess& later) const;

 private:
  class Collector;
  ThreadAccess::Axis axis(const ir::Expr& index) const;

  const ir::Kernel& kernel_;
  const ThreadDifferences& differences_;
  const ThreadValues values_;
};

}  // namespace tilepilot::passes
