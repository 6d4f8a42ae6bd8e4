#include "eval/profile/profile_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tilepilot::eval {
namespace {

constexpr double kNearRoofline = 0.6;  // of the roofline and more: little is left to gain
constexpr double kShortLaunchUs = 8;   // on a GPU: much of it is beginning and ending
constexpr double kManyReads = 3;       // bytes that blocks ask for, over those that must move
constexpr double kLowOccupancy = 0.25;
constexpr double kNegligibleShare = 0.01;  // of a call: told together
constexpr size_t kMostOperatorsShown = 12, kMostChoicesShown = 4;
constexpr size_t kProfileIndent = 24;

std::string percent_of(double share) { return fmt::format("{:.0f} %", share * 100); }

// "16.8 MB", "1.2 TFLOP": three digits and a prefix.
std::string amount_text(double amount, std::string_view unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; amount >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix) amount /= 1000;
  return fmt::format("{:.3g} {}{}", amount, kPrefixes[prefix], unit);
}

std::string place_of(int line) { return line > 0 ? fmt::format(", line {}", line) : ""; }
std::string times_text(double count, std::string_view one, std::string_view many) {
  const bool whole = std::abs(count - std::round(count)) < 1e-6;
  return whole ? fmt::format("{:.0f} {}", count, count == 1 ? one : many) : fmt::format("{:.1f} {}", count, many);
}
std::string spread_text(const Timing& time) {
  if (time.samples < 4) return time_text(time.median_us);
  return fmt::format("{} (quartiles {} to {})", time_text(time.median_us), time_text(time.low_us),
                     time_text(time.high_us));
}

std::string row(const std::string& share, const std::string& time, const std::string& what) {
  return fmt::format("{:>6} {:>12}    {}\n", share, time, what);
}
std::string below(const std::string& line) { return fmt::format("{:{}}{}\n", "", kProfileIndent, line); }

std::string gpu_text(const GpuUse& gpu) {
  std::string text = fmt::format("grid {} x {} x {} of {} x {} x {} threads", gpu.grid[0], gpu.grid[1], gpu.grid[2],
                                 gpu.threads[0], gpu.threads[1], gpu.threads[2]);
  if (gpu.cluster > 1) text += fmt::format(", clusters of {} blocks", gpu.cluster);
  text += fmt::format("; {} registers, {} spilled", gpu.registers, amount_text(gpu.spilled_bytes, "B"));
  text += fmt::format("; shared memory {} static, {} dynamic", amount_text(static_cast<double>(gpu.static_shared), "B"),
                      amount_text(static_cast<double>(gpu.dynamic_shared), "B"));
  text += fmt::format("; occupancy {} ({} a multiprocessor)", percent_of(gpu.occupancy),
                      times_text(static_cast<double>(gpu.resident_blocks), "block", "blocks"));
  return text;
}

int most_threads(const Profile& profile) {
  int threads = 1;
  for (const KernelProfile& kernel : profile.kernels)
    if (kernel.cpu) threads = std::max(threads, kernel.cpu->threads);
  // "... on 2 threads"
  const size_t at = profile.machine.name.rfind(" on ");
  return at == std::string::npos ? threads : std::max(threads, std::atoi(profile.machine.name.c_str() + at + 4));
}

// What is worth a look, the likeliest cause first.
std::vector<std::string> gpu_hints(const KernelProfile& kernel) {
  std::vector<std::string> hints;
  const GpuUse& gpu = *kernel.gpu;
  const int64_t blocks = gpu.grid[0] * gpu.grid[1] * gpu.grid[2];
  if (gpu.spilled_bytes > 0)
    hints.push_back(fmt::format("{} a thread spill to memory: smaller tiles, or more threads",
                                amount_text(gpu.spilled_bytes, "B")));
  if (blocks < gpu.multiprocessors)
    hints.push_back(fmt::format("{} for {} multiprocessors: smaller tiles, or a split of the reduction",
                                times_text(static_cast<double>(blocks), "block", "blocks"), gpu.multiprocessors));
  const bool has_products = kernel.work.product_flops > 0;
  const auto emits = [&](std::string_view name) {
    return std::find(kernel.instructions.begin(), kernel.instructions.end(), name) != kernel.instructions.end();
  };
  if (has_products && !emits("wgmma") && !emits("mma"))
    hints.push_back("products by multiply-adds, not by tensor cores: see the choices below");
  if (gpu.occupancy > 0 && gpu.occupancy < kLowOccupancy && !emits("wgmma"))
    hints.push_back("low occupancy: fewer registers or less shared memory a block");
  return hints;
}

std::vector<std::string> cpu_hints(const KernelProfile& kernel, int threads) {
  std::vector<std::string> hints;
  if (kernel.cpu->threads < threads)
    hints.push_back(kernel.cpu->blocks == 1 ? "one block, so one thread: a larger grid"
                                            : "one thread: its blocks are too little work for more");
  if (!kernel.cpu->checked_lines.empty())
    hints.push_back(
        fmt::format("bounds are checked as it runs in line{} {}: tiles that divide the extents need no check",
                    kernel.cpu->checked_lines.size() == 1 ? "" : "s", fmt::join(kernel.cpu->checked_lines, ", ")));
  return hints;
}

std::string kernel_text(const KernelProfile& kernel, const Profile& profile) {
  const std::string number = kernel.number > 0 ? fmt::format(" (number {} of its program)", kernel.number + 1) : "";
  std::string text = row(percent_of(kernel.share), time_text(kernel.us),
                         fmt::format("kernel `{}`{}{}: {} of {}", kernel.name, number, place_of(kernel.line),
                                     times_text(kernel.launches, "launch", "launches"), spread_text(kernel.time)));
  const std::string bound = bound_text(kernel);
  text += below((bound.empty() ? "" : bound + "; ") + rates_text(kernel));
  for (const std::string& line : use_lines(kernel)) text += below(line);
  for (const std::string& hint : hints_of(kernel, profile)) text += below("-> " + hint);
  for (const auto& [name, value] : kernel.metrics) text += below(fmt::format("{} {:.4g}", name, value));
  // Choices are long: those that something stood against.
  size_t shown = 0;
  for (const Choice& choice : kernel.choices) {
    if (choice.obstacles.empty() || ++shown > kMostChoicesShown) continue;
    text += below(
        fmt::format("line {}: {}: {}; {}", choice.line, choice.what, choice.chosen, fmt::join(choice.obstacles, "; ")));
  }
  if (shown > kMostChoicesShown) text += below(fmt::format("and {} more in the JSON", shown - kMostChoicesShown));
  return text;
}

std::string operators_text(const std::vector<OperatorProfile>& operators) {
  std::string text;
  size_t shown = 0, left = 0;
  double rest_us = 0, rest_share = 0;
  for (const OperatorProfile& each : operators) {
    if (shown == kMostOperatorsShown || (each.share < kNegligibleShare && shown > 0)) {
      ++left;
      rest_us += each.us;
      rest_share += each.share;
      continue;
    }
    ++shown;
    text += row(percent_of(each.share), time_text(each.us),
                fmt::format("{}{}: {} of {}", each.name, place_of(each.line), times_text(each.count, "call", "calls"),
                            spread_text(each.time)));
  }
  if (left > 0)
    text += row(percent_of(rest_share), time_text(rest_us), fmt::format("{} more kinds of operators", left));
  return text;
}

std::string how_measured(const Profile& profile) {
  if (profile.method == "events") return ", parts by events of the GPU";
  if (profile.method == "CUPTI") return ", kernels by CUPTI";
  return "";
}

}  // namespace

std::string time_text(double us) {
  if (us >= 1e6) return fmt::format("{:.2f} s", us * 1e-6);
  if (us >= 1e4) return fmt::format("{:.1f} ms", us * 1e-3);
  if (us >= 1e3) return fmt::format("{:.2f} ms", us * 1e-3);
  return us >= 100 ? fmt::format("{:.0f} us", us) : fmt::format("{:.3g} us", us);
}

bool was_disturbed(const KernelProfile& kernel) {
  constexpr double kSteady = 0.6;  // of the median: where no one else is at work, the lower quartile is not below
  return kernel.cpu && kernel.time.low_us > 0 && kernel.time.low_us < kSteady * kernel.time.median_us;
}

std::string bound_text(const KernelProfile& kernel) {
  if (kernel.efficiency() <= 0) return "";
  if (kernel.gpu && kernel.time.median_us < kShortLaunchUs && kernel.efficiency() < kNearRoofline)
    return fmt::format("launch-bound: {} of work in a launch of {}", time_text(kernel.roofline_us),
                       time_text(kernel.time.median_us));
  if (kernel.efficiency() > 1.05)
    return fmt::format("{}-bound, {:.1f} times what the roofline allows: {}", kernel.bound, kernel.efficiency(),
                       kernel.bound == "memory" ? "its tensors lie in a cache" : "not all that is counted is computed");
  const std::string faster = was_disturbed(kernel) ? fmt::format(" ({} in its faster calls: others were at work)",
                                                                 percent_of(kernel.roofline_us / kernel.time.low_us))
                                                   : "";
  return fmt::format("{}-bound at {} of the roofline{}", kernel.bound, percent_of(kernel.efficiency()), faster);
}

std::string rates_text(const KernelProfile& kernel) {
  const KernelWork& work = kernel.work;
  std::string text = fmt::format("{}{} and {}", work.exact ? "" : "about ", amount_text(work.least_bytes, "B"),
                                 amount_text(work.flops(), "FLOP"));
  if (kernel.time.median_us > 0)
    text += fmt::format(" a launch: {} and {}", amount_text(kernel.bytes_per_s(), "B/s"),
                        amount_text(kernel.flops_per_s(), "FLOP/s"));
  return text;
}

std::vector<std::string> use_lines(const KernelProfile& kernel) {
  std::vector<std::string> lines;
  if (kernel.gpu) lines.push_back(gpu_text(*kernel.gpu));
  if (!kernel.instructions.empty()) lines.push_back(fmt::format("has {}", fmt::join(kernel.instructions, ", ")));
  if (kernel.cpu)
    lines.push_back(fmt::format("{} on {}", times_text(static_cast<double>(kernel.cpu->blocks), "block", "blocks"),
                                times_text(kernel.cpu->threads, "thread", "threads")));
  return lines;
}

std::vector<std::string> hints_of(const KernelProfile& kernel, const Profile& profile) {
  if (kernel.efficiency() >= kNearRoofline && kernel.efficiency() <= 1.05)
    return {"near the roofline: only less work would help"};
  std::vector<std::string> hints = kernel.gpu ? gpu_hints(kernel) : std::vector<std::string>();
  if (kernel.cpu) hints = cpu_hints(kernel, most_threads(profile));
  const KernelWork& work = kernel.work;
  if (work.least_bytes > 0 && work.requested_bytes > kManyReads * work.least_bytes && kernel.bound == "memory")
    hints.push_back(fmt::format("blocks ask for {:.1f} times the bytes that must move: larger tiles read less again",
                                work.requested_bytes / work.least_bytes));
  return hints;
}

std::string choices_text(const KernelProfile& kernel) {
  std::string text;
  for (const Choice& choice : kernel.choices) {
    text += fmt::format("line {}: {}: {}\n", choice.line, choice.what, choice.chosen);
    for (const std::string& obstacle : choice.obstacles) text += fmt::format("    {}\n", obstacle);
  }
  return text;
}

std::string counts_text(const KernelProfile& kernel) {
  std::string text = fmt::format("`{}`{}: {} a call; {} a launch", kernel.name, place_of(kernel.line),
                                 times_text(kernel.launches, "launch", "launches"), rates_text(kernel));
  if (!kernel.instructions.empty()) text += fmt::format("; has {}", fmt::join(kernel.instructions, ", "));
  return text + "\n";
}

std::string top_kernel_text(const Profile& profile) {
  if (profile.kernels.empty()) return "";
  const KernelProfile& top = profile.kernels.front();
  const std::string bound = bound_text(top);
  return fmt::format("`{}`{}: {} of a call{}", top.name, place_of(top.line), percent_of(top.share),
                     bound.empty() ? "" : ", " + bound);
}

std::string profile_text(const Profile& profile) {
  std::string text = fmt::format("profile on {}, {}: a call takes {}{}\n", profile.target, profile.machine.name,
                                 spread_text(profile.call), how_measured(profile));
  for (const KernelProfile& kernel : profile.kernels) text += kernel_text(kernel, profile);
  text += operators_text(profile.operators);
  text += row(percent_of(profile.host_share), time_text(profile.host_us),
              "between them: the program's own Python, waiting");
  for (const std::string& note : profile.notes) text += fmt::format("note: {}\n", note);
  if (profile.eager) {
    text += fmt::format("eager: a call takes {}\n", spread_text(profile.eager->call));
    text += operators_text(profile.eager->operators);
  }
  text.pop_back();
  return text;
}

}  // namespace tilepilot::eval
