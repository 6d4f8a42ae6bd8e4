#include "eval/worker/poison.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstring>

namespace tilepilot::eval {
namespace {

constexpr int kOff = -1;

class PoisonAllocator final : public c10::Allocator {
 public:
  explicit PoisonAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t size) override {
    c10::DataPtr data = inner_->allocate(size);
    int byte = pattern.load(std::memory_order_relaxed);
    if (byte != kOff && size > 0) {
      std::memset(data.get(), byte, size);
      bytes += static_cast<int64_t>(size);
    }
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t count) const override { inner_->copy_data(to, from, count); }

  std::atomic<int> pattern = kOff;
  std::atomic<int64_t> bytes = 0;

 private:
  c10::Allocator* inner_;
};

PoisonAllocator& allocator() {
  static PoisonAllocator instance(c10::GetCPUAllocator());
  return instance;
}

}  // namespace

void install_poison() { c10::SetCPUAllocator(&allocator()); }
void set_poison(std::optional<uint8_t> pattern) { allocator().pattern = pattern ? *pattern : kOff; }
int64_t poisoned_bytes() { return allocator().bytes; }

}  // namespace tilepilot::eval
