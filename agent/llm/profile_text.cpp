#include "agent/llm/profile_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "agent/llm/quotation.h"
#include "eval/profile/profile_text.h"

namespace tilepilot::agent {
namespace {

using eval::KernelProfile;
using eval::OperatorProfile;
using eval::Profile;

constexpr size_t kMostKernelsTold = 5, kMostOperatorsTold = 6, kMostObstaclesTold = 3, kMostGainsTold = 6;
constexpr double kNotableShare = 0.02;    // of a call: parts below are told together, and gains below are not told
constexpr double kMostHostUsAPiece = 60;  // between kernels and operators of PyTorch, for each of them
constexpr double kShortCallUs = 8;        // of a kernel on a GPU: much of it is beginning and ending

std::string share_text(double us, double share) {
  return fmt::format("{:.0f} %, {}", share * 100, eval::time_text(us));
}
std::string at_line(int line) { return line > 0 ? fmt::format(", line {}", line) : ""; }
std::string in_line(int line) { return line > 0 ? fmt::format(" (line {})", line) : ""; }
std::string times(double count, std::string_view one, std::string_view many) {
  const bool whole = std::abs(count - std::round(count)) < 1e-6;
  return whole ? fmt::format("{:.0f} {}", count, count == 1 ? one : many) : fmt::format("{:.1f} {}", count, many);
}

std::string_view name_without_space(std::string_view name) {
  const size_t colons = name.rfind(':');
  return colons == std::string_view::npos ? name : name.substr(colons + 1);
}

// Operators of PyTorch by what a kernel of one's own can gain on them.
enum class OperatorKind { product, copy, allocation, other };
OperatorKind kind_of(std::string_view full_name) {
  static constexpr std::array<std::string_view, 19> kProducts = {
      "linear", "matmul", "mm",  "bmm",      "addmm",  "baddbmm", "addbmm", "mv",   "addmv", "dot",
      "inner",  "einsum", "dot", "bilinear", "conv1d", "conv2d",  "conv3d", "lstm", "gru"};
  static constexpr std::array<std::string_view, 11> kCopies = {
      "copy_", "clone", "contiguous", "to", "_to_copy", "cat", "stack", "pad", "repeat", "roll", "flip"};
  const std::string_view name = name_without_space(full_name);
  const auto is_among = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (is_among(kProducts) || name.find("convolution") != std::string_view::npos || name.starts_with("conv_transpose") ||
      name.starts_with("scaled_dot_product"))
    return OperatorKind::product;
  if (name.starts_with("empty") || name.starts_with("new_empty")) return OperatorKind::allocation;
  return is_among(kCopies) ? OperatorKind::copy : OperatorKind::other;
}

// An operator in one line of the program, or in so many that they are told together: a loop written out hides in rows
// of one call each.
struct Operators : OperatorProfile {
  std::vector<int> lines;
};
constexpr size_t kMostLinesApart = 3;

std::vector<Operators> operators_of(const Profile& profile) {
  std::map<std::string_view, size_t> lines;
  for (const OperatorProfile& each : profile.operators) ++lines[each.name];
  std::vector<Operators> told;
  for (const OperatorProfile& each : profile.operators) {
    const bool is_apart = lines[each.name] <= kMostLinesApart;
    auto found =
        std::find_if(told.begin(), told.end(), [&](auto& other) { return !is_apart && other.name == each.name; });
    if (found == told.end()) {
      told.push_back({each, {}});
      found = told.end() - 1;
    } else {
      const double count = found->count + each.count;
      found->time.low_us = (found->count * found->time.low_us + each.count * each.time.low_us) / count;
      found->count = count;
      found->us += each.us;
      found->share += each.share;
    }
    if (each.line > 0) found->lines.push_back(each.line);
  }
  std::stable_sort(told.begin(), told.end(), [](const auto& a, const auto& b) { return a.us > b.us; });
  for (Operators& each : told) std::sort(each.lines.begin(), each.lines.end());
  return told;
}

// Beyond that many times of what the machine's rates allow, PyTorch's library is far from them.
constexpr double kFarFromRates = 4;

// What a product of PyTorch takes, and the least by the machine's rates.
struct SlowProduct {
  double us, least_us;
};

// An operator whose calls take far longer than the rates allow, its faster ones, too, where others are at work; a
// product that the model has as well. Which of several, the profile does not know: the longest of them.
std::optional<SlowProduct> slow_product(const OperatorProfile& each, const ModelTimes& model) {
  const auto known = model.products.find(each.name);
  if (known == model.products.end() || kind_of(each.name) != OperatorKind::product) return std::nullopt;
  const SlowProduct product = {std::min(each.us, each.count * each.time.low_us), each.count * known->second * 1e6};
  return product.us > kFarFromRates * product.least_us ? std::optional(product) : std::nullopt;
}

// What could be gained, and how.
struct Gain {
  double us;
  std::string words;
};

std::vector<int> lines_of_obstacles(const KernelProfile& kernel) {
  std::vector<int> lines;
  for (const eval::Choice& choice : kernel.choices)
    if (!choice.obstacles.empty() && choice.line > 0) lines.push_back(choice.line);
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

// "line 24", "lines 24, 30, 31, 40 and more".
std::string lines_text(const std::vector<int>& lines) {
  constexpr size_t kMostLines = 4;
  const auto told = static_cast<std::ptrdiff_t>(std::min(lines.size(), kMostLines));
  return fmt::format("line{} {}{}", lines.size() == 1 ? "" : "s", fmt::join(lines.begin(), lines.begin() + told, ", "),
                     lines.size() > kMostLines ? " and more" : "");
}

std::string in_lines(const std::vector<int>& lines) {
  return lines.empty() ? "" : fmt::format(" ({})", lines_text(lines));
}

std::string name_of(const KernelProfile& kernel) {
  return in_backticks(kernel.name) +
         (kernel.number > 0 ? fmt::format(" (number {} of its program)", kernel.number + 1) : std::string());
}

double roofline_of(const KernelProfile& kernel) { return kernel.launches * kernel.roofline_us; }

void add_kernel_gains(const Profile& profile, std::vector<Gain>& gains) {
  for (const KernelProfile& kernel : profile.kernels) {
    if (kernel.efficiency() <= 0 || kernel.efficiency() >= 1) continue;
    std::vector<std::string> causes;
    const bool is_short = kernel.gpu && kernel.time.median_us < kShortCallUs;
    if (is_short) causes.push_back("it is too short for a launch of its own: merge it with the kernel before or after");
    for (const std::string& hint : eval::hints_of(kernel, profile)) causes.push_back(hint);
    if (const auto lines = lines_of_obstacles(kernel); !lines.empty())
      causes.push_back("what the compiler could not do in " + lines_text(lines));
    if (causes.empty()) causes.push_back("no cause is seen: other tile sizes, or another way through memory");
    double us = kernel.us;
    if (eval::was_disturbed(kernel)) {
      us = std::min(us, kernel.launches * kernel.time.low_us);
      causes.push_back(fmt::format("its faster calls take {}, the others waited for a processor", eval::time_text(us)));
    }
    gains.push_back({us - roofline_of(kernel),
                     fmt::format("kernel {}{}, whose roofline is {}: {}", name_of(kernel), in_line(kernel.line),
                                 eval::time_text(roofline_of(kernel)), fmt::join(causes, "; "))});
  }
}

// Operators that are small each may be many.
struct SmallOperators {
  double us = 0;
  size_t count = 0;
  std::vector<int> lines;
};

void add_operator_gains(const Profile& profile, const ModelTimes& model, std::vector<Gain>& gains) {
  SmallOperators small;
  for (const Operators& each : operators_of(profile)) {
    const OperatorKind kind = kind_of(each.name);
    if (const auto slow = slow_product(each, model))
      gains.push_back({slow->us - slow->least_us,
                       fmt::format("{}{}, which takes {} by the machine's rates: PyTorch's library is far from them "
                                   "here; write it as a kernel, with what comes before and after it",
                                   in_backticks(each.name), in_lines(each.lines), eval::time_text(slow->least_us))});
    // Else PyTorch's library is hard to beat, as its row says, and outputs need memory.
    if (kind == OperatorKind::product || kind == OperatorKind::allocation) continue;
    if (each.share < kNotableShare) {
      small.us += each.us;
      ++small.count;
      small.lines.insert(small.lines.end(), each.lines.begin(), each.lines.end());
      continue;
    }
    gains.push_back({each.us, fmt::format("{}{}: {}", in_backticks(each.name), in_lines(each.lines),
                                          kind == OperatorKind::copy
                                              ? "let a kernel index the original, and leave the copy out"
                                              : "do it in the kernel before or after it, while the values are there")});
  }
  if (small.count > 1)
    gains.push_back({small.us, fmt::format("{} small operators of PyTorch together{}: do them in kernels", small.count,
                                           small.lines.empty() ? "" : " (" + lines_text(small.lines) + ")")});
}

// What goes through memory from one kernel to the next is no part of what the model as a whole must move.
void add_gain_of_fusing(const Profile& profile, double least_us, std::vector<Gain>& gains) {
  double together = 0, launches = 0;
  for (const KernelProfile& kernel : profile.kernels) {
    if (kernel.efficiency() <= 0) return;
    together += std::min(kernel.us, roofline_of(kernel));
    launches += kernel.launches;
  }
  if (least_us <= 0 || launches < 2) return;
  gains.push_back(
      {together - least_us,
       fmt::format("fewer kernels: the {} need at least {} for their own bytes and operations, the whole "
                   "model {}; keep on the chip what one hands to the next",
                   times(launches, "launch", "launches"), eval::time_text(together), eval::time_text(least_us))});
}

void add_host_gain(const eval::Verdict& verdict, std::vector<Gain>& gains) {
  const Profile& profile = *verdict.profile;
  // More than that a call's pieces do not cost: the rest is waiting, for a processor or for others.
  double pieces = 0;
  for (const KernelProfile& kernel : profile.kernels) pieces += kernel.launches;
  for (const OperatorProfile& each : profile.operators) pieces += each.count;
  double us = std::min(profile.host_us, kMostHostUsAPiece * (1 + pieces));
  std::string words =
      "what `forward` does between kernels and operators: fewer of them, no new tensors that a kernel "
      "could do without, constants made in `__init__`";
  if (verdict.graph) {
    us = std::max(us, profile.call.median_us - verdict.graph->candidate.median_us);
    words += fmt::format(" (as a CUDA graph, without launching, a call takes {})",
                         eval::time_text(verdict.graph->candidate.median_us));
  }
  gains.push_back({us, std::move(words)});
}

std::string gains_text(const eval::Verdict& verdict, const ModelTimes& model) {
  const Profile& profile = *verdict.profile;
  std::vector<Gain> gains;
  add_kernel_gains(profile, gains);
  add_operator_gains(profile, model, gains);
  add_gain_of_fusing(profile, model.least_s * 1e6, gains);
  add_host_gain(verdict, gains);
  std::erase_if(gains, [&](const Gain& gain) { return !(gain.us >= kNotableShare * profile.call.median_us); });
  std::stable_sort(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) { return a.us > b.us; });
  if (gains.size() > kMostGainsTold) gains.resize(kMostGainsTold);
  if (gains.empty()) return "";
  std::string text = "\nWhat could be gained at most, the largest first:\n\n";
  for (size_t i = 0; i < gains.size(); ++i)
    text += fmt::format("{}. {}: {}\n", i + 1, eval::time_text(gains[i].us), gains[i].words);
  return text;
}

std::string kernel_row(const KernelProfile& kernel) {
  std::string text = fmt::format("- {}: kernel {}{}, {}", share_text(kernel.us, kernel.share), name_of(kernel),
                                 at_line(kernel.line), times(kernel.launches, "launch", "launches"));
  if (const std::string bound = eval::bound_text(kernel); !bound.empty()) text += ": " + bound;
  return text + "\n";
}

std::string kernel_details(const KernelProfile& kernel) {
  std::string text = fmt::format("  - {}\n", eval::rates_text(kernel));
  for (const std::string& line : eval::use_lines(kernel)) text += fmt::format("  - {}\n", in_one_line(line));
  for (const auto& [name, value] : kernel.metrics) text += fmt::format("  - {}: {:.4g}\n", in_one_line(name), value);
  size_t told = 0, left = 0;
  for (const eval::Choice& choice : kernel.choices) {
    if (choice.obstacles.empty()) continue;
    if (told == kMostObstaclesTold) {
      ++left;
      continue;
    }
    ++told;
    text += fmt::format("  - line {}: {}: {}; {}\n", choice.line, in_one_line(choice.what), in_one_line(choice.chosen),
                        in_one_line(fmt::format("{}", fmt::join(choice.obstacles, "; "))));
  }
  if (left > 0) text += fmt::format("  - {} more like these\n", left);
  return text;
}

std::string note_on(const OperatorProfile& each, const ModelTimes& model) {
  if (const auto slow = slow_product(each, model))
    return fmt::format(": PyTorch's library, {:.0f} times what the machine's rates allow", slow->us / slow->least_us);
  if (kind_of(each.name) == OperatorKind::product)
    return ": PyTorch's library, which is hard to beat where it is near the machine's rates; what follows it can be "
           "fused where a kernel does it as well";
  return "";
}

std::string operator_row(const Operators& each, const ModelTimes& model) {
  return fmt::format("- {}: {}{}, {}{}\n", share_text(each.us, each.share), in_backticks(each.name),
                     each.lines.empty() ? "" : ", " + lines_text(each.lines), times(each.count, "call", "calls"),
                     note_on(each, model));
}

bool is_notable(double share) { return share >= kNotableShare; }

template <class Part>
size_t count_told(const std::vector<Part>& parts, size_t most) {
  size_t told = 0;
  while (told < parts.size() && told < most && (is_notable(parts[told].share) || told == 0)) ++told;
  return told;
}

template <class Part>
void add_rest(const std::vector<Part>& parts, size_t told, std::string_view words, std::string& text) {
  double us = 0, share = 0;
  for (size_t i = told; i < parts.size(); ++i) {
    us += parts[i].us;
    share += parts[i].share;
  }
  if (told < parts.size()) text += fmt::format("- {}: {} {}\n", share_text(us, share), parts.size() - told, words);
}

// Memory for new tensors, and what is in no kernel and no operator: no work of the program's.
std::string overhead_row(const Profile& profile) {
  double allocating = 0, share = profile.host_share;
  for (const OperatorProfile& each : profile.operators)
    if (kind_of(each.name) == OperatorKind::allocation) {
      allocating += each.us;
      share += each.share;
    }
  std::string text =
      fmt::format("- {}: no work: `forward` itself, launching", share_text(profile.host_us + allocating, share));
  if (allocating > 0) text += fmt::format(", memory for new tensors ({})", eval::time_text(allocating));
  return text + "; on a busy machine mostly waiting for a processor\n";
}

// Beside kernels.
std::string other_rows(const Profile& profile, size_t kernels_told, const ModelTimes& model) {
  std::string text;
  add_rest(profile.kernels, kernels_told, "other kernels", text);
  std::vector<Operators> working = operators_of(profile);
  std::erase_if(working, [](const Operators& each) { return kind_of(each.name) == OperatorKind::allocation; });
  const size_t operators = count_told(working, kMostOperatorsTold);
  for (size_t i = 0; i < operators; ++i) text += operator_row(working[i], model);
  add_rest(working, operators, "other operators of PyTorch", text);
  return text + overhead_row(profile);
}

}  // namespace

std::vector<PromptPart> profile_parts(const eval::Verdict& verdict, const ModelTimes& model) {
  const Profile& profile = *verdict.profile;
  std::vector<PromptPart> parts;
  const size_t kernels = count_told(profile.kernels, kMostKernelsTold);
  for (size_t i = 0; i < kernels; ++i) {
    parts.push_back({kernel_row(profile.kernels[i])});
    parts.push_back({kernel_details(profile.kernels[i]), Keep::details});
  }
  parts.push_back({other_rows(profile, kernels, model) + gains_text(verdict, model)});
  return parts;
}

std::string profile_rows(const Profile& profile, const ModelTimes& model) {
  std::string text;
  const size_t kernels = count_told(profile.kernels, kMostKernelsTold);
  for (size_t i = 0; i < kernels; ++i) text += kernel_row(profile.kernels[i]);
  return text + other_rows(profile, kernels, model);
}

}  // namespace tilepilot::agent
