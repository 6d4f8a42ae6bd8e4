#include "agent/llm/expected_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilepilot::agent {
namespace {

// Where nothing was recorded: programs of a hundred lines, and questions or second answers now and then.
constexpr double kUsualAnswer = 3'000, kUsualAttempts = 6, kUsualRequests = 1.2;

// In three digits, with commas: 82,900 of 82,934.
std::string round_number(double number) {
  const double unit = number >= 1000 ? std::pow(10, std::floor(std::log10(number)) - 2) : 1;
  std::string text = fmt::format("{:.0f}", std::round(number / unit) * unit);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

Result<ExpectedCost> expected_cost(RunStore& store, const std::string& model, size_t first_request_bytes, int attempts,
                                   const Prices& prices) {
  const RecordedUse use = TRY(store.recorded_use(model));
  ExpectedCost cost;
  cost.runs = use.runs;
  const bool known = use.runs > 0;
  cost.output_tokens = known ? use.output_tokens : kUsualAnswer;
  const double tried = std::min<double>(attempts, known ? use.attempts : kUsualAttempts);
  cost.requests = tried * (known ? use.requests_an_attempt : kUsualRequests);
  // Later requests hold the current program, too, which is about an answer.
  cost.input_tokens = static_cast<double>(estimate_tokens(first_request_bytes)) +
                      (cost.requests > 1 ? cost.output_tokens * (1 - 1 / cost.requests) : 0);
  cost.dollars = cost.requests * (cost.input_tokens * prices.input + cost.output_tokens * prices.output) / 1e6;
  return cost;
}

std::string to_text(const ExpectedCost& cost) {
  std::string text =
      fmt::format("about {:.0f} requests, {} tokens", std::max(1.0, cost.requests), round_number(cost.tokens()));
  if (cost.dollars > 0) text += fmt::format(", ${:.2f}", cost.dollars);
  if (cost.runs == 0) return text + " (a guess: no earlier run with this model is recorded)";
  return text + fmt::format(" (as {} earlier run{} with this model)", cost.runs, cost.runs == 1 ? "" : "s");
}

}  // namespace tilepilot::agent
