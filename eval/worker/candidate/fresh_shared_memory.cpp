#include "eval/worker/candidate/fresh_shared_memory.h"

namespace tilepilot::eval {
namespace {

// Each word is a mixture of its place and the seed; of each byte one bit stays 0, so that numbers are finite in every
// floating type. Volatile stores: nothing reads them here.
constexpr const char* kFill = R"(.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 all[];
.visible .entry fill(.param .u32 seed, .param .u32 words)
{
  .reg .pred %p;
  .reg .b32 %r<10>;
  ld.param.u32 %r1, [seed];
  ld.param.u32 %r2, [words];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %ctaid.x;
  mad.lo.u32 %r1, %r5, 0x9E3779B1, %r1;
  mov.u32 %r6, all;
next:
  setp.ge.u32 %p, %r3, %r2;
  @%p bra done;
  mad.lo.u32 %r7, %r3, 0x85EBCA77, %r1;
  shr.u32 %r8, %r7, 15;
  xor.b32 %r7, %r7, %r8;
  mul.lo.u32 %r7, %r7, 0xC2B2AE3D;
  shr.u32 %r8, %r7, 13;
  xor.b32 %r7, %r7, %r8;
  and.b32 %r7, %r7, 0xFBFBFBFB;
  shl.b32 %r8, %r3, 2;
  add.u32 %r9, %r6, %r8;
  st.volatile.shared.u32 [%r9], %r7;
  add.u32 %r3, %r3, %r4;
  bra next;
done:
  ret;
}
)";

}  // namespace

Result<FreshSharedMemory> FreshSharedMemory::make(const std::shared_ptr<const runtime::cuda::Device>& device) {
  FreshSharedMemory memory;
  memory.device_ = device;
  memory.module_ = TRY(device->load(kFill));
  memory.fill_ = TRY(memory.module_->function("fill", device->shared_bytes()));
  return memory;
}

// A block takes all that a multiprocessor has, so that each gets one.
Status FreshSharedMemory::renew(uint64_t seed, runtime::cuda::Stream stream) const {
  TRY(device_->use());
  runtime::cuda::Function::Shape shape;
  shape.grid[0] = static_cast<uint32_t>(device_->multiprocessors());
  shape.threads[0] = 1024;
  shape.shared_bytes = static_cast<uint32_t>(device_->shared_bytes());
  auto low = static_cast<uint32_t>(seed);
  uint32_t words = shape.shared_bytes / sizeof(uint32_t);
  void* parameters[] = {&low, &words};
  return fill_.launch(shape, parameters, stream);
}

}  // namespace tilepilot::eval
