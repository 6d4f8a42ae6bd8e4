// What memory that nobody has written yet holds: random bytes that are finite numbers in every floating type, others at
// each call, so that nothing a program left there, and no pattern, tells one call from another. Blocks that are freed
// wait here for the next allocation of their size, as in a caching allocator; between calls, outside the time, their
// contents are drawn anew. A block that is freed and taken again within one call gets a few random lines only, as
// refilling it would cost time.
#pragma once

#include <ATen/core/Tensor.h>

namespace tilepilot::eval {

enum class FreshMemory {
  plain,       // as the system gives it
  pooled,      // random, from blocks that are kept
  repeatable,  // always the same finite bytes, so that two constructions of a model do not differ in them
};

// Puts itself under LibTorch's CPU allocator, once, for the life of the process. Until told otherwise: plain.
void install_fresh_memory();
// Gives the mode before.
FreshMemory set_fresh_memory(FreshMemory mode);
// Draws the contents of all blocks that wait, and of those to come, anew, and their order.
void renew_fresh_memory(uint64_t seed);
// Writes the same into the stacks of LibTorch's threads, where what follows has its variables.
void renew_stacks();
// Gives the blocks that wait back to the system.
void release_fresh_memory();

// There is no standing under the allocator of a GPU. While it lives, notes what `torch.empty` and its like allocate on
// devices of this type in this thread; renew() then fills as much memory of those sizes and frees it, so that the
// allocations after it find it. What else calls made LibTorch take of the device they find, too, at once: memory that
// is taken within a call counts as the call's time, and the judge makes both sides give theirs back between calls.
class DeviceMemory {
 public:
  // So many batches of calls are watched.
  explicit DeviceMemory(c10::DeviceType type, int batches = 8);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;

  // So many calls begin, whose inputs are in place. What calls allocate is learned in the first batches, then no more.
  void renew(int64_t calls);
  // They have run, all of them, once: what LibTorch took of the device meanwhile is known from now on.
  void note();
  // They are over: what is allocated until the next ones is not theirs.
  void end();

 private:
  struct Learned;
  std::unique_ptr<Learned> learned_;
};

// What fresh memory holds at the time, in all of the tensor's memory.
void fill_with_random_bytes(const at::Tensor& tensor);
// How many elements are what fresh memory of the seed held. Types of less than 32 bits have too few bits to tell: 0.
int64_t unwritten_elements(const at::Tensor& tensor, uint64_t seed);

}  // namespace tilepilot::eval
