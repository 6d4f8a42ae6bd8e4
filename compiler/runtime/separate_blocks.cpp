#include "compiler/runtime/separate_blocks.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"

namespace tilepilot::runtime {
namespace {

constexpr int64_t kMostPerLaunch = 1 << 28;  // bytes to copy

std::vector<const ir::BufferData*> global_buffers(const ir::Program& program) {
  std::vector<const ir::BufferData*> all;
  for (const auto& parameter : program.parameters)
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) all.push_back(buffer->get());
  for (const ir::Buffer& buffer : program.workspaces) all.push_back(buffer.get());
  return all;
}

// Whether a block may learn what others have done: by a lock, a counter, a barrier, or foreign code.
bool may_wait(const ir::Stmt& body) {
  return ir::contains(body, [](const ir::Stmt& stmt) {
    const auto* sync = ir::as<ir::Sync>(stmt);
    const bool others = sync && sync->scope != ir::SyncScope::block && sync->scope != ir::SyncScope::warp;
    return others || ir::as<ir::While>(stmt) || ir::as<ir::ExternCall>(stmt) || ir::as<ir::Roles>(stmt) ||
           (ir::as<ir::Atomic>(stmt) && ir::bound_variable(*stmt));
  });
}

std::unique_ptr<std::byte[]> allocate(size_t bytes) {
  return std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]);
}

bool overlap(const std::byte* a, size_t bytes_of_a, const std::byte* b, size_t bytes_of_b) {
  return std::less()(a, b + bytes_of_b) && std::less()(b, a + bytes_of_a);
}

}  // namespace

std::vector<size_t> changed_in_place(const ir::Program& program, const ir::Kernel& kernel) {
  if (!kernel.cluster.empty() || may_wait(kernel.body)) return {};
  const ir::Effects effects = ir::memory_effects_of(kernel.body);
  const auto by_address = [](const ir::BufferData* buffer) { return buffer->address != nullptr; };
  if (std::any_of(effects.reads.begin(), effects.reads.end(), by_address) ||
      std::any_of(effects.writes.begin(), effects.writes.end(), by_address))
    return {};
  ir::BufferSet atomic;
  const auto look = [&](const ir::Stmt& stmt) {
    if (const auto* update = ir::as<ir::Atomic>(stmt)) atomic.insert(ir::memory_of(update->element.buffer));
  };
  ir::walk(kernel.body, look, [](const ir::Expr&) {});
  std::vector<size_t> changed;
  const auto all = global_buffers(program);
  for (size_t number = 0; number < all.size(); ++number)
    if (effects.reads.contains(all[number]) && effects.writes.contains(all[number]) && !atomic.contains(all[number]) &&
        all[number]->strides.empty() && all[number]->type.bits >= 8)
      changed.push_back(number);
  return changed;
}

SeparateBlocks::SeparateBlocks(const ir::Program& program, const std::vector<size_t>& changed,
                               const BoundArguments& bound, int64_t blocks, std::atomic<int64_t>& left_to_copy)
    : bound_(bound), blocks_(blocks) {
  if (changed.empty() || blocks < 2 || !find_memory(program, changed)) return;
  int64_t bytes = 0;
  for (const Memory& memory : changed_) bytes += static_cast<int64_t>(memory.bytes);
  const int64_t parts = std::min(blocks, std::min(kMostPerLaunch, left_to_copy.load()) / std::max<int64_t>(1, bytes));
  if (parts < 2) return;
  for (const Memory& memory : changed_) {
    before_.push_back(allocate(memory.bytes));
    if (!before_.back()) return;
    std::memcpy(before_.back().get(), memory.data, memory.bytes);
  }
  left_to_copy -= parts * bytes;
  parts_ = parts;
}

// False where other buffers of the launch lie there, too: a copy would hide from them what their own block writes.
bool SeparateBlocks::find_memory(const ir::Program& program, const std::vector<size_t>& changed) {
  const auto buffers = global_buffers(program);
  std::vector<Memory> all;
  for (size_t number = 0; number < buffers.size(); ++number) {
    int64_t elements = 1;
    for (const ir::Expr& extent : buffers[number]->shape)
      elements *= std::max<int64_t>(0, evaluate(extent, bound_.values));
    for (size_t axis = 0; axis < buffers[number]->strides.size() && elements > 0; ++axis)
      elements += (evaluate(buffers[number]->shape[axis], bound_.values) - 1) *
                  std::abs(evaluate(buffers[number]->strides[axis], bound_.values));
    const auto element = static_cast<size_t>(std::max<int64_t>(1, buffers[number]->type.bytes()));
    all.push_back(
        {number, static_cast<std::byte*>(bound_.buffers[number]), static_cast<size_t>(elements) * element, element});
  }
  for (const size_t number : changed) {
    const Memory& own = all[number];
    const auto shares = [&](const Memory& other) {
      return other.number != number && overlap(own.data, own.bytes, other.data, other.bytes);
    };
    if (std::any_of(all.begin(), all.end(), shares)) return false;
    changed_.push_back(own);
  }
  return true;
}

void SeparateBlocks::run(int64_t first, int64_t last, const Run& run) {
  std::vector<void*> buffers = bound_.buffers;
  std::vector<Copy> copies;
  for (const Memory& memory : changed_) {
    copies.push_back(allocate(memory.bytes));
    if (!copies.back()) return run(bound_.buffers.data(), first, last);
    buffers[memory.number] = copies.back().get();
  }
  // Parts of unlike sizes: their ends may not always lie between the same rows of a grid.
  const int64_t size = (blocks_ + parts_ - 1) / parts_;
  std::minstd_rand random(static_cast<unsigned>(first + 1));
  std::uniform_int_distribution<int64_t> draw(size - size / 2, size + size / 2);
  while (first < last) {
    const int64_t end = std::min(last, first + draw(random));
    for (size_t k = 0; k < changed_.size(); ++k) std::memcpy(copies[k].get(), before_[k].get(), changed_[k].bytes);
    run(buffers.data(), first, end);
    merge(copies);
    first = end;
  }
}

void SeparateBlocks::merge(const std::vector<Copy>& copies) {
  const std::lock_guard lock(merging_);
  for (size_t k = 0; k < changed_.size(); ++k) {
    const Memory& memory = changed_[k];
    for (size_t at = 0; at < memory.bytes; at += memory.element)
      if (std::memcmp(copies[k].get() + at, before_[k].get() + at, memory.element) != 0)
        std::memcpy(memory.data + at, copies[k].get() + at, memory.element);
  }
}

}  // namespace tilepilot::runtime
