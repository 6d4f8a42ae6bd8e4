#include "compiler/emulator/stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#if defined(__SANITIZE_ADDRESS__)
#define TILEPILOT_EMULATOR_TELLS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILEPILOT_EMULATOR_TELLS_SANITIZER 1
#endif
#endif
#ifdef TILEPILOT_EMULATOR_TELLS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// tilepilot_switch_stack(from, to, given): keeps what a function must keep on the stack, leaves its pointer in *from
// and takes the other from there. tilepilot_start_stack: what a new stack "returns" to; its function gets `given` too.
extern "C" void tilepilot_switch_stack(void** from, void* to, void* given);
extern "C" void tilepilot_start_stack();

#if defined(__x86_64__)
asm(R"(
.text
.globl tilepilot_switch_stack
.type tilepilot_switch_stack, @function
tilepilot_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tilepilot_switch_stack, .-tilepilot_switch_stack
.globl tilepilot_start_stack
.type tilepilot_start_stack, @function
tilepilot_start_stack:
  movq %r12, %rdi
  movq %rdx, %rsi
  callq *%rbx
  ud2
.size tilepilot_start_stack, .-tilepilot_start_stack
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl tilepilot_switch_stack
.type tilepilot_switch_stack, %function
tilepilot_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tilepilot_switch_stack, .-tilepilot_switch_stack
.globl tilepilot_start_stack
.type tilepilot_start_stack, %function
tilepilot_start_stack:
  mov x0, x20
  mov x1, x2
  blr x19
  brk #1
.size tilepilot_start_stack, .-tilepilot_start_stack
)");
#else
#error "the emulator knows no way to switch stacks on this processor"
#endif

namespace tilepilot::emulator {
namespace {

constexpr size_t kBytes = size_t{256} << 10;  // beside arrays

size_t page_bytes() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void tell_leaving([[maybe_unused]] void** kept, [[maybe_unused]] const Context& to) {
#ifdef TILEPILOT_EMULATOR_TELLS_SANITIZER
  __sanitizer_start_switch_fiber(kept, to.bottom, to.bytes);
#endif
}

// Functions that never returned left marks on the stack.
void forget_frames([[maybe_unused]] const void* bottom, [[maybe_unused]] size_t bytes) {
#ifdef TILEPILOT_EMULATOR_TELLS_SANITIZER
  __asan_unpoison_memory_region(bottom, bytes);
#endif
}

// What a new stack runs first.
struct Beginning {
  void (*body)(void*);
  void* argument;
};

// `from`: who switched here. Of a stack that nobody here has made, this alone tells where it is.
void begin(void* place, [[maybe_unused]] Context* from) {
#ifdef TILEPILOT_EMULATOR_TELLS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &from->bottom, &from->bytes);
#endif
  const Beginning beginning = *static_cast<Beginning*>(place);
  beginning.body(beginning.argument);
}

}  // namespace

void switch_context(Context& from, Context& to) {
  tell_leaving(&from.sanitizer, to);
  tilepilot_switch_stack(&from.pointer, to.pointer, &from);
#ifdef TILEPILOT_EMULATOR_TELLS_SANITIZER
  __sanitizer_finish_switch_fiber(from.sanitizer, nullptr, nullptr);
#endif
}

void leave_context(Context& from, Context& to) {
  tell_leaving(nullptr, to);
  tilepilot_switch_stack(&from.pointer, to.pointer, &from);
}

Stacks::Stacks(size_t count, size_t array_bytes)
    : count_(count), bytes_((kBytes + 5 * array_bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {
  void* memory = mmap(nullptr, count * bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<std::byte*>(memory);
  // A page below each stack faults.
  for (size_t k = 0; k < count; ++k) mprotect(memory_ + k * bytes_, page_bytes(), PROT_NONE);
}

Stacks::~Stacks() {
  if (memory_ == nullptr) return;
  forget_frames(memory_, count_ * bytes_);
  munmap(memory_, count_ * bytes_);
}

Context Stacks::start(size_t number, void (*body)(void*), void* argument) const {
  std::byte* bottom = memory_ + number * bytes_ + page_bytes();
  std::byte* top = memory_ + (number + 1) * bytes_ - 64;
  forget_frames(bottom, bytes_ - page_bytes());
  auto* beginning = reinterpret_cast<Beginning*>(top);
  *beginning = {body, argument};
  const auto function = reinterpret_cast<void*>(&begin);
  const auto entry = reinterpret_cast<void*>(&tilepilot_start_stack);
#if defined(__x86_64__)
  // r15, r14, r13, r12, rbx, rbp, the return address: as tilepilot_switch_stack takes them.
  void** frame = reinterpret_cast<void**>(top) - 7;
  const void* values[] = {nullptr, nullptr, nullptr, beginning, function, nullptr, entry};
#else
  // x19, x20, ..., x29, x30 and eight more.
  void** frame = reinterpret_cast<void**>(top) - 20;
  const void* values[20] = {function, beginning, nullptr, nullptr, nullptr, nullptr,
                            nullptr,  nullptr,   nullptr, nullptr, nullptr, entry};
#endif
  for (const void* value : values) *frame++ = const_cast<void*>(value);
  return {frame - std::size(values), bottom, bytes_ - page_bytes(), nullptr};
}

}  // namespace tilepilot::emulator
