// What is known of a model before a candidate is written: costs, the roofline, exact shortcuts, and the memory that
// judging takes, so that what cannot fit is told before it is tried. Plain data, from the exported graph alone.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "eval/graph/roofline.h"
#include "eval/graph/shortcuts.h"

namespace tilepilot::eval {

// Bytes; the plan of a batch run adds them up over what runs side by side.
struct MemoryNeed {
  int64_t inputs = 0, weights = 0, outputs = 0;
  int64_t eager_peak = 0;  // what a call makes, at once, in the model's types
  int64_t exact_peak = 0;  // the same in float64: of a slice, and the outputs, where the graph is run in slices
  int64_t host = 0;        // of all processes of a check: judge and candidate
  int64_t gpu = 0;         // 0: the target is no GPU
  int64_t gpu_idle = 0;    // of it, what the judge may keep that it has freed
  int64_t gpu_limit = 0;   // what a candidate's process may take of it for itself: more than it needs
};
MemoryNeed memory_need(const GraphUses& uses, bool on_gpu);
// Of looking at the model alone, without a candidate.
MemoryNeed reference_need(const GraphUses& uses, bool on_gpu);
// With `torch.compile` in two modes beside that: processes that have the model, too.
MemoryNeed with_compiled_modes(MemoryNeed need, bool on_gpu);
nlohmann::json to_json(const MemoryNeed& need);

struct MemoryAvailable {
  int64_t host = 0;  // free now, for this process's group too
  int64_t gpu = 0;   // 0: not asked
};
MemoryAvailable memory_available();
// Errors: `out_of_memory`, with both numbers and advice.
Status check_memory(const MemoryNeed& need, const MemoryAvailable& available);

struct Preflight {
  GraphCost cost;
  std::vector<Shortcut> shortcuts;
  double product_flops = 0;  // after the shortcuts
  MachineRates rates;
  Roofline least;
  LeastTime bound;                      // for all programs, not for the operators as the model writes them
  double eager_s = 0;                   // modelled
  bool random = false;                  // `forward` draws random numbers
  std::vector<std::string> unused;      // inputs and weights that no output depends on
  std::vector<std::string> degenerate;  // why every answer would pass; empty: not found from the graph
  MemoryNeed memory;
};
Preflight preflight(const Reference& reference, const MachineRates& rates, bool on_gpu);
nlohmann::json to_json(const Preflight& preflight);

}  // namespace tilepilot::eval
