// Lets the runs on one machine share its memory. Each says what it needs before it takes any, and waits while that does
// not fit beside what the others have said. A reservation is a locked range of a file, as long as the need in
// megabytes, so it ends with the process that holds it, however that ends, and leaves nothing behind. There is a file
// for the host's memory, and one for that of each GPU.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "eval/graph/preflight.h"
#include "eval/process/wire.h"

namespace tilepilot::eval {

struct ReservationOptions {
  std::filesystem::path folder;  // as lock_folder() gives it; empty: nothing is shared
  std::string gpu = {};          // which one: its bus id; empty: there is but one
  // What is free now: counts for each kind of memory of which nobody else has reserved any.
  std::function<Result<MemoryAvailable>()> available;
  // Called once, with what it waits for, if it must wait.
  std::function<void(const std::string&)> waits = [](const std::string&) {};
  double patience_s = 1800;
  // What processes that have ended held is free within this time: so long less may be free than there was before.
  double settling_s = 10;
};

class MemoryReservation {
 public:
  // What is small beside the machine never waits, and counts all the same. Of those that wait, the first is admitted
  // first; larger ones are not overtaken by others that wait. Errors: `out_of_memory`, if it does not fit alone, or if
  // the others hold theirs for longer than the patience. Where the system has no such locks, only the first is checked.
  static Result<MemoryReservation> take(const MemoryNeed& need, const ReservationOptions& options);

  MemoryReservation() = default;
  // Whether others see it.
  bool is_shared() const { return host_.number() >= 0; }

 private:
  Descriptor host_, gpu_;
};

}  // namespace tilepilot::eval
