#include "eval/worker/judge/timing/roofline_guard.h"

#include <algorithm>

#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/target.h"
#include "eval/graph/preflight.h"

namespace tilepilot::eval {

namespace {

// Of what the program was timed on. Of a processor, twice what was measured: a busy machine shows less than it can.
std::optional<MachineRates> rates_of_machine(const JudgeOptions& options, const std::string& dtype, bool on_gpu) {
  if (on_gpu) {
    auto device = runtime::cuda::Device::open();
    return device.ok() ? rates_of_device((*device)->name(), dtype) : std::nullopt;
  }
  MachineRates rates = rates_of_processor(options.threads, options.cache);
  rates.bytes_per_s *= 2;
  return rates;
}

}  // namespace

void hold_against_roofline(const Reference& reference, const JudgeOptions& options, Verdict& verdict) {
  auto target = runtime::parse_target(options.target);
  if (!verdict.candidate || verdict.degenerate || !target.ok()) return;
  const bool on_gpu = target->place == runtime::Place::gpu;
  if (!on_gpu && target->place != runtime::Place::cpu) return;
  const GraphUses uses(reference.forward);
  const GraphCost cost = cost_of(uses);
  if (!on_gpu && cost.least_bytes <= last_level_cache()) return;
  double product_flops = cost.product_flops;
  for (auto& shortcut : find_shortcuts(uses)) {
    if (shortcut.kind == ShortcutKind::constant) return;  // what leads to it need not be read
    product_flops -= shortcut.saved_flops;
  }
  auto rates = rates_of_machine(options, options.precision.empty() ? reference.dtype : options.precision, on_gpu);
  if (!rates) return;
  ++verdict.guards_run["roofline"];
  auto finding = faster_than_possible(verdict.candidate->median_us * 1e-6, cost, std::max(0.0, product_flops), *rates);
  if (!finding) return;
  if (!on_gpu) {
    verdict.notes.push_back("faster than this processor is thought to be: " + *finding);
    return;
  }
  verdict.outcome = Outcome::rejected;
  verdict.guard = "roofline";
  verdict.detail = "faster than the machine can be: " + *finding;
}

}  // namespace tilepilot::eval
