// Order through atomic elements (PTX ISA, "Release and Acquire Patterns"): what a thread did before a fence and a later
// atomic update is ordered before what another does after an atomic access that may have seen it, and a fence.
#pragma once

#include <map>

#include "compiler/emulator/clocks.h"

namespace tilepilot::emulator {

class FenceOrder {
 public:
  FenceOrder(Clocks& clocks, size_t threads) : clocks_(clocks), fenced_(threads), seen_(threads) {}

  void fence(int thread) {
    for (const Knowledge* element : seen_[static_cast<size_t>(thread)]) clocks_.acquire(thread, *element);
    seen_[static_cast<size_t>(thread)].clear();
    clocks_.release(thread, fenced_[static_cast<size_t>(thread)]);
  }
  // By address in the host's memory.
  void access(int thread, const void* address, bool changes) {
    Knowledge& element = elements_[address];
    std::vector<const Knowledge*>& seen = seen_[static_cast<size_t>(thread)];
    if (seen.empty() || seen.back() != &element) seen.push_back(&element);
    if (changes) clocks_.merge(element, fenced_[static_cast<size_t>(thread)]);
  }

 private:
  Clocks& clocks_;
  std::map<const void*, Knowledge> elements_;
  std::vector<Knowledge> fenced_;                    // what each knew at its last fence
  std::vector<std::vector<const Knowledge*>> seen_;  // since then
};

}  // namespace tilepilot::emulator
