// Stands between the tile language and a target's backend, and watches: which generated kernels run, for how long,
// where a crash happens; and it can turn launches into nothing, to see whether they matter.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "compiler/runtime/kernel.h"
#include "eval/worker/candidate/launches/ghost_launch.h"
#include "eval/worker/candidate/launches/recorded_launches.h"
#include "eval/worker/crash_marker.h"

namespace tilepilot::eval {

struct LaunchLog {
  std::set<std::string> kernels;
  std::map<std::string, std::string> low_precision;  // those with floating buffers of 16 bit: of which type
  int64_t launches = 0;
  double seconds = 0;  // inside kernels, if they are waited for
  // On a GPU a launch only begins the work. Waits for it, so that its faults, and the time it takes, are known to be
  // that kernel's; empty: there is nothing to wait for.
  std::function<Status()> wait = nullptr;
  bool waits = true;  // else a launch does not
  // Called right before each launch that is waited for; empty: nothing is to be done. Other processes of the GPU, which
  // run while this one waits, leave its shared memory full of zeros.
  std::function<void()> before_launch = nullptr;
  Ghost ghost = Ghost::none;
  // On a GPU, what is made for kernels, and by `torch.empty`, is filled; so it is where launches do not run or are
  // looked at.
  bool fills = false;
  runtime::BlockOrder order = runtime::BlockOrder::first_to_last;
  // Launches are looked at, and whether one did any work (launch_work.h).
  bool looks = false, worked = false;
  c10::Device device = c10::DeviceType::CPU;
  RecordedLaunches* recorded = nullptr;  // gets what launches write; null: nobody asks
  // Programs that bring device source of their own are refused; or, where they are admitted, told of before they run.
  bool admits_foreign = false, refused_foreign = false;
  std::function<void()> tell_foreign = nullptr;
};

// `log` and `marker` must outlive the result and the kernels it makes.
std::unique_ptr<runtime::KernelBackend> watch(std::unique_ptr<runtime::KernelBackend> backend, LaunchLog& log,
                                              CrashMarker& marker);

}  // namespace tilepilot::eval
