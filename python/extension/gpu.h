// GPUs that run tile programs: for each one and each target a context of the evaluator, whose backend compiles for it
// and whose outputs lie there. Used under the GIL.
#pragma once

#include <map>
#include <string>

#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/stage/tile/kernel/context.h"
#include "python/extension/tensors.h"

namespace tilepilot::package {

class Gpus {
 public:
  // `architecture` as in runtime::Target; empty: what the GPU is best at.
  stage::ContextRef context(int number, const std::string& architecture);
  // NVRTC is searched where torch brings it, then where the command searches.
  static runtime::cuda::NvrtcOptions nvrtc_options();

  // The GPU that torch allocates on; 0 where it does not know. Whether it has any.
  static int current();
  static bool is_available();
  // Whether a CUDA graph records what goes to torch's current stream.
  static bool is_capturing();

  // The child of a fork cannot use CUDA where its parent did.
  void leave_behind() { left_behind_ = !contexts_.empty(); }
  void check_usable() const;

 private:
  std::map<std::pair<int, std::string>, stage::ContextRef> contexts_;
  bool left_behind_ = false;
};

// A launch on a GPU, or compiling for it: the GPU that torch uses stays what it is.
class GpuTurn {
 public:
  explicit GpuTurn(int number);
  ~GpuTurn();
  GpuTurn(const GpuTurn&) = delete;
  // Where this thread's launches go.
  static void send_to(runtime::cuda::Stream stream);

 private:
  int other_ = -1;  // the GPU that torch used; -1: the same one
};

}  // namespace tilepilot::package
