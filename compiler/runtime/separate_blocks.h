// Blocks of a launch that see nothing of what others write, as on a GPU, where all of them may run at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/runtime/arguments.h"

namespace tilepilot::runtime {

// Which of a program's global buffers, parameters first, then workspaces, blocks of the kernel read and write, none of
// it by atomics. None where blocks may wait for each other.
std::vector<size_t> changed_in_place(const ir::Program& program, const ir::Kernel& kernel);

// Runs blocks in parts, each on copies of these buffers as they were before the launch. What a part has changed there
// enters the buffers when it ends, and no other part sees it: what several of them change is as the last one left it.
class SeparateBlocks {
 public:
  using Run = std::function<void(void* const* buffers, int64_t first, int64_t last)>;

  // `left_to_copy`: bytes, of which it takes what it needs. Without enough of them, or of memory, or where buffers
  // share memory, nothing is copied.
  SeparateBlocks(const ir::Program& program, const std::vector<size_t>& changed, const BoundArguments& bound,
                 int64_t blocks, std::atomic<int64_t>& left_to_copy);

  bool copies() const { return parts_ > 0; }
  // Runs blocks from `first` up to, not including, `last`. Several threads may call it at once.
  void run(int64_t first, int64_t last, const Run& run);

 private:
  struct Memory {
    size_t number;  // of the buffer
    std::byte* data;
    size_t bytes, element;  // of an element, in bytes
  };
  using Copy = std::unique_ptr<std::byte[]>;

  const BoundArguments& bound_;
  std::vector<Memory> changed_;
  int64_t blocks_, parts_ = 0;
  std::vector<Copy> before_;  // one a buffer
  std::mutex merging_;

  bool find_memory(const ir::Program& program, const std::vector<size_t>& changed);
  void merge(const std::vector<Copy>& copies);
};

}  // namespace tilepilot::runtime
