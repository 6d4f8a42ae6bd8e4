// Marks between the parts of a call on the clock of what does the work: the processor's, or events of the GPU, so that
// a part's time is the GPU's own.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

namespace tilepilot::eval {

class PartClock {
 public:
  virtual ~PartClock() = default;
  virtual const char* method() const = 0;
  // Forgets earlier marks. What follows keeps the host busy for about so many seconds: a GPU gets work for as long, so
  // that it never waits for the host between two marks.
  virtual void begin(double host_seconds) = 0;
  virtual void mark() = 0;
  // Seconds from the first mark to each, in order. Waits for the device; may throw what LibTorch throws if it failed.
  virtual std::vector<double> read() = 0;
};

std::unique_ptr<PartClock> part_clock_for(c10::Device device);

}  // namespace tilepilot::eval
