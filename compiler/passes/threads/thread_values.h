// What integer expressions of thread indices alone are for each thread of a block.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Of a block.
int64_t thread_count(const ir::Kernel& kernel);

class ThreadValues {
 public:
  explicit ThreadValues(const ir::Kernel& kernel);

  // The expression with lets that read no memory replaced by their values.
  ir::Expr expanded(const ir::Expr& e) const;
  bool names_thread(const ir::Expr& expanded) const;
  // For each thread, threadIdx.x fastest. Nullopt if the expression depends on anything else, or has no value for some.
  std::optional<std::vector<int64_t>> of(const ir::Expr& expanded) const;

 private:
  size_t count_;
  std::unordered_map<const ir::VarData*, std::vector<int64_t>> indices_;  // of thread variables
  std::unordered_map<const ir::VarData*, ir::Expr> lets_;                 // expanded
};

// The kernel with a number for each quotient that is the same for all threads: of 32 threads each is in warp 0.
ir::Kernel with_common_quotients(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
