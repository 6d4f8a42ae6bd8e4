// `T.thread_return()`: a thread ends. While a kernel is built that is a store to a flag of the thread's own, which
// starts as false; the kernel that is built has branches instead of jumps, and the flag only where a branch does not
// say it.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::stage {

class ThreadReturn {
 public:
  // The flag, which belongs to the kernel that is open; made when first asked for.
  const ir::Buffer& flag(Span span);
  // What a thread does that comes to `T.thread_return()`.
  ir::Stmt statement(Span span);
  // The kernel so that nothing runs after such a statement. Only branches and loops that keep their order may be around
  // one. Forgets the flag.
  ir::Kernel applied(ir::Kernel kernel);

 private:
  ir::Buffer flag_;
};

}  // namespace tilepilot::stage
