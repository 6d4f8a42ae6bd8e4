// What the judge asks of a candidate: a batch of calls, always in the same steps, whatever the calls are for. `prepare`
// writes the inputs, `go` runs the calls and answers, `fetch` hands out what one call returned. Which calls are checked
// is decided after `go`; which are timed is never said. Three kinds of batch are known for what they are: that which is
// timed as KernelBench's script does, that whose call is captured as a CUDA graph, and that whose calls are profiled
// when all else is over.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "eval/worker/candidate/launches/ghost_launch.h"
#include "eval/worker/truth/input_change.h"

namespace tilepilot::eval {

struct Call {
  int64_t base = 0;          // the inputs that it starts from
  InputChange change, last;  // one after the other
};

struct Batch {
  std::vector<Call> calls;
  int64_t lead = 0;     // so many run in `prepare`: threads wake, caches fill
  uint64_t seed = 0;    // before the first
  uint64_t memory = 0;  // of what fresh memory holds
  Ghost ghost = Ghost::none;
  bool looks = false;      // at what launches do
  bool fills = false;      // on a GPU: all that is made and not written is filled, as it is where launches do not run
  bool backwards = false;  // where blocks run one after another, from the last to the first
  bool waits = true;       // for each kernel, so that a fault and the time of a kernel are known to be its own
  // Not empty: a batch that KernelBench's rules time (kernelbench_trials.h). All calls are on the tensors of the first,
  // and only the results of these calls are kept.
  std::vector<int64_t> kept;
  bool graph = false;      // its one call becomes a CUDA graph, whose replays are timed (graph_replays.h)
  bool profile = false;    // each call is watched part by part (eval/worker/profile)
  bool records = false;    // what launches write is kept for the judge
  bool by_device = false;  // of profiled ones: the GPU itself tells how long kernels take; @pre there were others
  std::vector<ChangeRule> changes;  // by tensor: how the calls' changes apply to it; empty: not at all
};

bool keeps(const Batch& batch, size_t call);

// On a GPU, inputs larger than that in all lie in a candidate's process only while it runs a batch: they come with
// every batch that starts from them, and freed memory goes back to the GPU.
inline constexpr int64_t kLargeOnGpu = int64_t{1} << 30;
int64_t bytes_of(const std::vector<at::Tensor>& tensors);

nlohmann::json to_json(const Batch& batch);
// May throw what nlohmann::json throws on another shape.
Batch batch_from_json(const nlohmann::json& node);

// The inputs of a call.
std::vector<at::Tensor> inputs_of(const Batch& batch, const Call& call, const std::vector<at::Tensor>& base,
                                  c10::Device device);

}  // namespace tilepilot::eval
