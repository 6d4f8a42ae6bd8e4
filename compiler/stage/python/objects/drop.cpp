#include "compiler/stage/python/objects/drop.h"

#include <vector>

namespace tilepilot::stage {

void drop(std::shared_ptr<const void> object) noexcept {
  struct Drops {
    int depth = 0;
    std::vector<std::shared_ptr<const void>> waiting;
  };
  constexpr int kDeepest = 50;
  thread_local Drops* outermost = nullptr;
  if (object.use_count() != 1) return;
  if (outermost) {
    if (outermost->depth == kDeepest) return outermost->waiting.push_back(std::move(object));
    ++outermost->depth;
    object.reset();
    --outermost->depth;
    return;
  }
  Drops drops;
  outermost = &drops;
  object.reset();
  while (!drops.waiting.empty()) {
    auto next = std::move(drops.waiting.back());
    drops.waiting.pop_back();
    next.reset();
  }
  outermost = nullptr;
}

}  // namespace tilepilot::stage
