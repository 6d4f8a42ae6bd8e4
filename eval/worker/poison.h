// Fresh memory that is visibly not a result: while on, whatever LibTorch allocates is filled with a pattern first, so
// that elements a candidate never writes cannot hold what an earlier run left there.
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <optional>

namespace tilepilot::eval {

// All bits set: NaN in every floating type, -1 or the largest number in integers.
inline constexpr uint8_t kPoisonNan = 0xFF;
inline constexpr uint8_t kPoisonZero = 0x00;
// A harmless number in every floating type: 0.011 in float32 and bfloat16, 1.06 in float16.
inline constexpr uint8_t kPoisonFinite = 0x3C;

// Puts itself under LibTorch's CPU allocator, once, for the life of the process.
void install_poison();
// Every byte is `pattern`; none: memory comes as it is.
void set_poison(std::optional<uint8_t> pattern);
// The memory of tensors without values (`torch.empty`, what a kernel is to write) on devices of this type is filled
// too, from now on; none: no more. There is no standing under the allocator of a GPU: what operators allocate for
// themselves, and write, comes as it is.
void poison_fresh_tensors(std::optional<c10::DeviceType> type);
// How much memory was filled so far.
int64_t poisoned_bytes();

}  // namespace tilepilot::eval
