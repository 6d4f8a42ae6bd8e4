// A function on a stack of its own, which can stop in its midst and be resumed later: what generators run on.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tilepilot::stage {

// Memory for one native stack, with a page below it that faults.
class FibreStack {
 public:
  // As much as a main thread has: only what is touched costs memory.
  static constexpr size_t kBytes = size_t{8} << 20;
  // Where deeper evaluation must end, so that native code called there has room.
  static constexpr size_t kReserve = size_t{1} << 20;

  FibreStack() = default;
  // An invalid one if the system has no memory.
  static FibreStack allocate();
  FibreStack(FibreStack&& other) noexcept;
  FibreStack& operator=(FibreStack&& other) noexcept;
  ~FibreStack();

  bool valid() const { return base_ != nullptr; }
  void* bottom() const;  // the lowest usable address
  uintptr_t floor() const { return reinterpret_cast<uintptr_t>(bottom()) + kReserve; }

 private:
  void* base_ = nullptr;
};

class Fibre {
 public:
  // `body` first runs at the first resume; it must end before the fibre is destroyed.
  Fibre(FibreStack stack, std::function<void()> body);
  Fibre(const Fibre&) = delete;

  // Runs until the body calls `suspend` or ends.
  void resume();
  // From inside the body: back to whoever resumed.
  void suspend();
  bool finished() const { return finished_; }
  uintptr_t floor() const { return stack_.floor(); }
  FibreStack take_stack() && { return std::move(stack_); }

 private:
  static void enter(unsigned high, unsigned low);
  void run();

  FibreStack stack_;
  std::function<void()> body_;
  ucontext_t self_{}, resumer_{};
  bool finished_ = false;
  // What AddressSanitizer knows of the resumer's stack.
  const void* resumer_bottom_ = nullptr;
  size_t resumer_size_ = 0;
};

}  // namespace tilepilot::stage
