// One candidate's examination: load, two trials, then the other trials, guards and timing, shuffled; the first failure
// is the verdict.
#pragma once

#include "compiler/runtime/cuda/gpu_monitor.h"
#include "eval/judge.h"
#include "eval/process/compiler_broker.h"
#include "eval/process/fork_server.h"
#include "eval/profile/profile.h"
#include "eval/worker/judge/timing/compiled_rounds.h"
#include "eval/worker/judge/timing/timing_lock.h"
#include "eval/worker/truth/reference_side.h"

namespace tilepilot::eval {

struct ExaminationOptions {
  const JudgeOptions& judge;
  std::filesystem::path executable;
  CompilerBroker* broker = nullptr;                     // null: candidates compile themselves
  ForkServer* fork_server = nullptr;                    // null: each candidate's process is started anew
  runtime::cuda::GpuMonitor* monitor = nullptr;         // of the GPU; null: nobody watches it
  int64_t gpu_limit_bytes = 0;                          // of a candidate's process; 0: none
  const CompiledSides* compiled = nullptr;              // that take part in timing; null: none
  std::optional<SideProfile>* eager_profile = nullptr;  // known once a program has been profiled; null: not kept
  DeviceShare* share = nullptr;                         // of the GPU; null: there is none
  std::filesystem::path timing_lock = {};               // held while it is timed; empty: nobody else is
};

// `verified`: what an earlier examination of the same program found, or null. Then two trials lead to the timing, and
// the rest of its findings stand.
Verdict examine(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options,
                const Verdict* verified = nullptr);

// Times programs and eager side by side. `verified`: by request, what an earlier examination found. A verdict for each,
// in order.
std::vector<Verdict> compare_verified(const ReferenceSide& side, const std::vector<CheckRequest>& requests,
                                      const ExaminationOptions& options, const std::vector<Verdict>& verified);

}  // namespace tilepilot::eval
