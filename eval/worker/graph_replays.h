// A call timed as a CUDA graph, the same way for eager and for candidates: made a few times, captured, then replayed.
// Caches are flushed before each replay, as before each call that is timed for itself.
#pragma once

#include <functional>
#include <memory>

#include "compiler/diagnostics/result.h"
#include "compiler/runtime/cuda/driver.h"
#include "eval/torch/stopwatch.h"

namespace tilepilot::eval {

inline constexpr int kGraphWarmUps = 3, kGraphReplays = 20;

struct GraphReplays {
  using Step = std::function<Status()>;
  Stopwatch& stopwatch;
  Step call;
  std::function<Result<Step>(const Step& call)> capture;  // gives what replays it
};
// Seconds of a replay, on average. Errors: those of the steps, and what LibTorch throws.
Result<double> run_graph_replays(const GraphReplays& replays);

// On a stream of its own. Results of the last `call` are those of the replays: they must live until then, and hold
// nothing before.
Result<double> replay_on_gpu(const std::shared_ptr<const runtime::cuda::Device>& gpu, c10::Device device,
                             const GraphReplays::Step& call);

}  // namespace tilepilot::eval
