#include "cli/flags/judge_flags.h"

#include "cli/manual/help.h"

namespace tilepilot::cli {

void JudgeFlags::add_to(CLI::App& command) {
  const std::string group = "Judge";
  command.add_option("--trials", trials, "Trials with fresh inputs and weights")
      ->check(CLI::Range(1, 1000))
      ->group(group)
      ->capture_default_str();
  command.add_option("--time-limit", time_limit_s, "Seconds for all trials of a candidate")
      ->check(number_within(0.001, 1e6))
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--memory", memory_gib,
                  "Memory of a candidate in GiB, not on the GPU (default: three quarters of the machine)")
      ->check(number_within(0.001, 1e6))
      ->group(group);
  command
      .add_option("--baselines", baselines,
                  "eager, or compile: time torch.compile too, default and max-autotune (compiling may take minutes)")
      ->check(CLI::IsMember({"eager", "compile"}))
      ->group(group)
      ->capture_default_str();
  command
      .add_option(
          "--aten", aten,
          "PyTorch's own operators in `forward`: none; data (copies, casts, fills); hybrid (all, beside kernels "
          "that matter); any")
      ->check(CLI::IsMember({"none", "data", "hybrid", "any"}))
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--protocol", protocol,
                  "tilepilot, or kernelbench: time as KernelBench's script does too (on a GPU; decides nothing)")
      ->check(CLI::IsMember({"tilepilot", "kernelbench"}))
      ->group(group)
      ->capture_default_str();
}

void JudgeFlags::apply_to(eval::JudgeOptions& options) const {
  options.trials = trials;
  options.aten = aten;
  options.time_limit_s = time_limit_s;
  options.memory_limit_bytes = static_cast<int64_t>(memory_gib * (1 << 30));
  options.kernelbench_timing = protocol == "kernelbench";
  options.baseline_compile = baselines == "compile";
}

}  // namespace tilepilot::cli
