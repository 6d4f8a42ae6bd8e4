// What was before fences of one sort, of the threads that share clocks: with a fence that somebody knows of comes all
// that was ordered before it.
#pragma once

#include <memory>

#include "compiler/emulator/order/clocks.h"

namespace tilepilot::emulator {

class FenceLog {
 public:
  FenceLog(Clocks& clocks, size_t threads) : clocks_(clocks), fences_(threads) {}

  // The clocks are another block's or cluster's from here on.
  void clear() {
    catch_up();
    past_ = std::make_shared<Frontier>();
  }
  // The thread fences. When that was.
  Moment add(int thread);
  // What was before all fences that the thread knows of.
  std::shared_ptr<const Frontier> known_to(int thread);
  // Whether the moment was before such a fence. @pre it is of the same clocks
  bool covers(const Moment& moment, int thread);
  bool is_empty() {
    catch_up();
    return past_->epoch == 0 && fencing_.empty();
  }

 private:
  struct Fence {
    Moment at;
    std::shared_ptr<const Frontier> known;
  };
  static constexpr size_t kMost = 8;  // of a thread between two barriers of the block; older ones are taken for one

  Clocks& clocks_;
  uint32_t epoch_ = 0;
  std::shared_ptr<const Frontier> past_ = std::make_shared<Frontier>();  // before fences of earlier epochs
  std::vector<std::vector<Fence>> fences_;                               // of each thread in this one
  std::vector<uint16_t> fencing_;                                        // threads that have any

  void catch_up();
  // Its last one that the thread knows of, or null.
  const Fence* last_of(uint16_t other, int thread) const;
};

}  // namespace tilepilot::emulator
