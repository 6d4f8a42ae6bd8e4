// The buffers of a launch, which its blocks share. They run one after another or take turns; what nothing orders
// between them is found all the same.
#pragma once

#include <memory>

#include "compiler/emulator/emulator.h"
#include "compiler/emulator/order/launch_order.h"
#include "compiler/emulator/order/shadow.h"

namespace tilepilot::emulator {

class GlobalMemory {
 public:
  struct Buffer {
    EmulatedBuffer given;
    std::unique_ptr<Shadow> shadow;  // null: nothing is checked
  };

  GlobalMemory(const EmulatedArguments& arguments, const Options& options);

  int64_t count() const { return static_cast<int64_t>(buffers_.size()); }
  Buffer& buffer(int64_t number) { return buffers_[static_cast<size_t>(number)]; }
  const Buffer& buffer(int64_t number) const { return buffers_[static_cast<size_t>(number)]; }

  // From here on it is used from there.
  void enter(const Viewpoint& view) { view_ = view; }

 private:
  Viewpoint view_;
  std::vector<Buffer> buffers_;
};

}  // namespace tilepilot::emulator
