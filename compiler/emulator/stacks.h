// Stacks for the threads of a block, and switching between them: a dozen instructions, no system call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilepilot::emulator {

// A place to go on from. What runs now has none until it leaves.
struct Context {
  void* pointer = nullptr;  // of the stack
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* sanitizer = nullptr;  // what AddressSanitizer keeps of it
};

// Leaves `from` and goes on at `to`; returns when somebody switches to `from`.
void switch_context(Context& from, Context& to);
// The same, but nobody will come back.
void leave_context(Context& from, Context& to);

class Stacks {
 public:
  // With room for so many bytes of arrays, each element of which has a mark of 4 bytes. Only what is touched costs
  // memory.
  Stacks(size_t count, size_t array_bytes);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  bool valid() const { return memory_ != nullptr; }
  size_t count() const { return count_; }
  // A context on stack `number` that calls body(argument), which must never return.
  Context start(size_t number, void (*body)(void*), void* argument) const;

 private:
  size_t count_, bytes_;  // `bytes_` each
  std::byte* memory_ = nullptr;
};

}  // namespace tilepilot::emulator
