#include "compiler/emulator/global_memory.h"

#include <algorithm>

namespace tilepilot::emulator {

GlobalMemory::GlobalMemory(const EmulatedArguments& arguments, const Options& options, const Clocks& clocks,
                           bool together)
    : clocks_(clocks), together_(together) {
  for (const EmulatedBuffer& given : arguments.buffers) {
    buffers_.push_back({given, nullptr});
    if (options.check_races || options.check_uninitialised)
      buffers_.back().shadow =
          std::make_unique<Shadow>(clocks, given.bytes, given.written || !options.check_uninitialised);
  }
}

void GlobalMemory::set_other_blocks(uint32_t first, uint32_t last) {
  for (const Buffer& buffer : buffers_)
    if (buffer.shadow) buffer.shadow->set_other_blocks(first, last);
}

void GlobalMemory::start_block(std::array<int64_t, 3> block) {
  blocks_.emplace_back(clocks_.epoch(), block);
  others_released_ |= releases_;
  ordered_ = met_ = fenced_ = releases_ = false;
  set_other_blocks(phase_epoch_, clocks_.epoch());
}

void GlobalMemory::resume_block(std::array<int64_t, 3> block, bool ordered) {
  start_block(block);
  if (ordered) synchronise_block();
}

void GlobalMemory::meet_atomic(bool changes) {
  met_ = true;
  releases_ |= changes && fenced_;
  if (together_) synchronise_block();
}

void GlobalMemory::fence() {
  fenced_ = true;
  if (met_ && others_released_) synchronise_block();
}

void GlobalMemory::synchronise_block() {
  if (ordered_) return;
  ordered_ = true;
  set_other_blocks(0, 0);
}

std::array<int64_t, 3> GlobalMemory::block_at(uint32_t epoch) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), epoch,
                                      [](uint32_t wanted, const auto& block) { return wanted < block.first; });
  return std::prev(after)->second;
}

}  // namespace tilepilot::emulator
