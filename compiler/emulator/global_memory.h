// The buffers of a launch, which its blocks share. They run one after another; what nothing orders between them is
// found all the same.
#pragma once

#include <memory>

#include "compiler/emulator/emulator.h"
#include "compiler/emulator/shadow.h"

namespace tilepilot::emulator {

class GlobalMemory {
 public:
  struct Buffer {
    EmulatedBuffer given;
    std::unique_ptr<Shadow> shadow;  // null: nothing is checked
  };

  // `together`: blocks are all there at once, and take turns.
  GlobalMemory(const EmulatedArguments& arguments, const Options& options, const Clocks& clocks, bool together);

  int64_t count() const { return static_cast<int64_t>(buffers_.size()); }
  Buffer& buffer(int64_t number) { return buffers_[static_cast<size_t>(number)]; }
  const Buffer& buffer(int64_t number) const { return buffers_[static_cast<size_t>(number)]; }

  // A block begins in a new epoch.
  void start_block(std::array<int64_t, 3> block);
  // It goes on in a new epoch after others had their turn. `ordered`: by what it met before, and no barrier of the grid
  // stands between.
  void resume_block(std::array<int64_t, 3> block, bool ordered);
  // What other blocks did counts as ordered before what the block does.
  bool is_ordered() const { return ordered_; }
  // What all blocks have done so far is ordered before what follows.
  void synchronise_grid() { phase_epoch_ = clocks_.epoch() + 1; }
  // A thread of the block meets an atomic element, or fences. What other blocks did before a fence and an update of
  // theirs counts as ordered after such an access and a fence. Of blocks that take turns the access alone is enough:
  // they may go on in the middle.
  void meet_atomic(bool changes);
  void fence();
  std::array<int64_t, 3> block_at(uint32_t epoch) const;

 private:
  const Clocks& clocks_;
  std::vector<Buffer> buffers_;
  uint32_t phase_epoch_ = 0;
  const bool together_;
  bool ordered_ = false, met_ = false, fenced_ = false;              // of the block
  bool releases_ = false, others_released_ = false;                  // it may have told others, earlier ones may have
  std::vector<std::pair<uint32_t, std::array<int64_t, 3>>> blocks_;  // first epoch, block

  void synchronise_block();
  void set_other_blocks(uint32_t first, uint32_t last);
};

}  // namespace tilepilot::emulator
