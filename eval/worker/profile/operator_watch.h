// Which of ATen's operators a thread calls, as LibTorch's dispatcher sees them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilepilot::eval {

class OperatorObserver {
 public:
  virtual ~OperatorObserver() = default;
  // Around an operator that no other one calls. `name`: as the dispatcher knows it, "aten::add".
  virtual void begin_operator(std::string_view name) = 0;
  virtual void end_operator() = 0;
};

// While it lives, tells of this thread's operators. One at a time in a thread.
class OperatorWatch {
 public:
  explicit OperatorWatch(OperatorObserver& observer);
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;

 private:
  uint64_t callback_;
};

}  // namespace tilepilot::eval
