// Whether a launch did any work: a kernel that copies, adds zeros or multiplies by one may stand beside operators that
// do the whole job.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "compiler/runtime/kernel.h"

namespace tilepilot::eval {

class LaunchWork {
 public:
  // Before the launch with these arguments, whose tensors are on the device.
  LaunchWork(const std::vector<runtime::Argument>& arguments, c10::Device device);
  // After it, when it has ended: whether a tensor holds what it did not hold before, and what neither another argument
  // of that size holds nor one number everywhere is.
  bool was_done() const;

 private:
  struct Memory {
    void* data;
    int64_t bytes;
    std::string digest;  // before
  };
  std::string digest(const Memory& memory) const;
  bool is_one_number(const Memory& memory) const;

  c10::Device device_;
  std::vector<Memory> memories_;
};

}  // namespace tilepilot::eval
