#include "cli/verdict_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilepilot::cli {
namespace {

std::string timing_line(std::string_view name, const eval::Timing& timing) {
  return fmt::format("  {:<14} {:>10.1f} us   (quartiles {:.1f} to {:.1f}, {} samples)\n", name, timing.median_us,
                     timing.low_us, timing.high_us, timing.samples);
}

// The error nearest to its bound, of all outputs and trials.
const eval::OutputError* tightest(const eval::Verdict& verdict) {
  auto used = [](const eval::OutputError& error) {
    return error.bound > 0 ? error.max_abs / error.bound : error.max_abs;
  };
  auto found = std::max_element(verdict.errors.begin(), verdict.errors.end(),
                                [&](const auto& a, const auto& b) { return used(a) < used(b); });
  return found == verdict.errors.end() ? nullptr : &*found;
}

}  // namespace

std::string state_of(const eval::Verdict& verdict) {
  std::string name(eval::to_string(verdict.outcome));
  return verdict.degenerate ? name + ", but degenerate" : name;
}

std::string one_line(const eval::Verdict& verdict) {
  std::string text = state_of(verdict);
  if (verdict.outcome != eval::Outcome::verified) {
    if (verdict.line > 0) text += fmt::format(" at line {}", verdict.line);
    return verdict.detail.empty() ? text : text + ": " + verdict.detail;
  }
  if (verdict.candidate && verdict.eager)
    text += fmt::format(", {:.1f} us against {:.1f} us of eager: {:.2f}x", verdict.candidate->median_us,
                        verdict.eager->median_us, verdict.speedup());
  return text;
}

std::string full_text(const eval::Verdict& verdict) {
  std::string text = one_line(verdict) + "\n";
  if (verdict.target != "cpu") text += fmt::format("  target         {}\n", verdict.target);
  if (const eval::OutputError* error = tightest(verdict)) {
    text += fmt::format("  largest error  {:.3g}{} of output {}, allowed {:.3g}; PyTorch's own {:.3g}\n",
                        error->max_abs, error->where.empty() ? "" : " at " + error->where, error->output, error->bound,
                        error->eager_max_abs);
    if (!error->pattern.empty()) text += fmt::format("  pattern        {}\n", error->pattern);
  }
  if (verdict.candidate) text += timing_line("candidate", *verdict.candidate);
  if (verdict.eager) text += timing_line("eager", *verdict.eager);
  if (verdict.compiled) text += timing_line("torch.compile", *verdict.compiled);
  if (!verdict.kernels.empty()) {
    text += fmt::format("  kernels        {}", fmt::join(verdict.kernels, ", "));
    if (verdict.candidate) text += fmt::format(" ({:.0f} % of the time)", verdict.generated_share * 100);
    text += "\n";
  }
  for (const std::string& note : verdict.notes) text += fmt::format("  note           {}\n", note);
  text.pop_back();
  return text;
}

}  // namespace tilepilot::cli
