#include "eval/worker/poison.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstring>

namespace tilepilot::eval {
namespace {

// All bits set: NaN in every floating type, -1 or the largest number in integers.
constexpr int kPattern = 0xFF;

class PoisonAllocator final : public c10::Allocator {
 public:
  explicit PoisonAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t size) override {
    c10::DataPtr data = inner_->allocate(size);
    if (on.load(std::memory_order_relaxed) && size > 0) std::memset(data.get(), kPattern, size);
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t count) const override { inner_->copy_data(to, from, count); }

  std::atomic<bool> on = false;

 private:
  c10::Allocator* inner_;
};

PoisonAllocator& allocator() {
  static PoisonAllocator instance(c10::GetCPUAllocator());
  return instance;
}

}  // namespace

void install_poison() { c10::SetCPUAllocator(&allocator()); }
void set_poison(bool on) { allocator().on = on; }

}  // namespace tilepilot::eval
