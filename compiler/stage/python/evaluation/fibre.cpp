#include "compiler/stage/python/evaluation/fibre.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define TILEPILOT_TELLS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILEPILOT_TELLS_SANITIZER 1
#endif
#endif
#ifdef TILEPILOT_TELLS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace tilepilot::stage {
namespace {

size_t guard_bytes() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// AddressSanitizer has to know which stack is in use. `saved` keeps what it holds for the stack that is left; null:
// that stack is left for good.
void leave_stack([[maybe_unused]] void** saved, [[maybe_unused]] const void* bottom, [[maybe_unused]] size_t size) {
#ifdef TILEPILOT_TELLS_SANITIZER
  __sanitizer_start_switch_fiber(saved, bottom, size);
#endif
}
void arrive_on_stack([[maybe_unused]] void* saved, [[maybe_unused]] const void** from,
                     [[maybe_unused]] size_t* from_size) {
#ifdef TILEPILOT_TELLS_SANITIZER
  __sanitizer_finish_switch_fiber(saved, from, from_size);
#endif
}

}  // namespace

FibreStack FibreStack::allocate() {
  FibreStack stack;
  void* memory = mmap(nullptr, kBytes + guard_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return stack;
  stack.base_ = memory;
  mprotect(memory, guard_bytes(), PROT_NONE);
  return stack;
}

FibreStack::FibreStack(FibreStack&& other) noexcept : base_(std::exchange(other.base_, nullptr)) {}

FibreStack& FibreStack::operator=(FibreStack&& other) noexcept {
  std::swap(base_, other.base_);
  return *this;
}

FibreStack::~FibreStack() {
  if (base_) munmap(base_, kBytes + guard_bytes());
}

void* FibreStack::bottom() const { return static_cast<std::byte*>(base_) + guard_bytes(); }

Fibre::Fibre(FibreStack stack, std::function<void()> body) : stack_(std::move(stack)), body_(std::move(body)) {
  getcontext(&self_);
  self_.uc_stack.ss_sp = stack_.bottom();
  self_.uc_stack.ss_size = FibreStack::kBytes;
  self_.uc_link = nullptr;
  // The arguments of a context are ints.
  const auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(&self_, reinterpret_cast<void (*)()>(&Fibre::enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

void Fibre::enter(unsigned high, unsigned low) {
  reinterpret_cast<Fibre*>(static_cast<uintptr_t>(high) << 32 | low)->run();
}

void Fibre::run() {
  arrive_on_stack(nullptr, &resumer_bottom_, &resumer_size_);
  body_();
  finished_ = true;
  leave_stack(nullptr, resumer_bottom_, resumer_size_);
  setcontext(&resumer_);
}

void Fibre::resume() {
  void* saved = nullptr;
  leave_stack(&saved, stack_.bottom(), FibreStack::kBytes);
  swapcontext(&resumer_, &self_);
  arrive_on_stack(saved, nullptr, nullptr);
}

void Fibre::suspend() {
  void* saved = nullptr;
  leave_stack(&saved, resumer_bottom_, resumer_size_);
  swapcontext(&self_, &resumer_);
  arrive_on_stack(saved, &resumer_bottom_, &resumer_size_);
}

}  // namespace tilepilot::stage
