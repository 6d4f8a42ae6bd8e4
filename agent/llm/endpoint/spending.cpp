#include "agent/llm/endpoint/spending.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

// Programs are 3 to 4 bytes a token with today's tokenizers. A bound must hold for all of them before the first count
// is known.
constexpr double kTokensAByte = 1 / 3.0, kMostTokensAByte = 1 / 2.0;
// Endpoints count what they add around messages.
constexpr double kOverhead = 64;
// Counts vary from one part of a conversation to the next.
constexpr double kMargin = 1.1;

// An answer that is cut off is paid for in vain: below this, or half of what was wanted, none is asked for.
constexpr int kLeastAnswer = 4000;

Error bad_prices(const std::filesystem::path& file, const std::string& why) {
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("the prices in `{}` cannot be used: {}", file.string(), why),
                    R"(the form is {"MODEL": {"input": 3, "output": 15}}, in dollars a million tokens)");
}

// How much of a model's name the pattern fixes; nullopt: it does not fit.
std::optional<size_t> fits(std::string_view pattern, std::string_view model) {
  if (pattern == model) return model.size() + 1;
  if (!pattern.ends_with('*')) return std::nullopt;
  pattern.remove_suffix(1);
  return model.starts_with(pattern) ? std::optional(pattern.size()) : std::nullopt;
}

bool is_price(const json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
}

}  // namespace

Result<std::optional<Prices>> prices_in(const std::filesystem::path& file, std::string_view model) {
  std::string text, why;
  if (!read_file(file, text, &why)) return bad_prices(file, why);
  const json table = json::parse(text, nullptr, /*allow_exceptions*/ false);
  if (!table.is_object()) return bad_prices(file, "it is no JSON object");
  std::optional<Prices> best;
  size_t fixed = 0;
  for (const auto& [name, row] : table.items()) {
    if (!row.is_object()) return bad_prices(file, fmt::format("`{}` is no object", name));
    Prices prices;
    for (const auto& [key, value] : row.items()) {
      if (!is_price(value)) return bad_prices(file, fmt::format("`{}` of `{}` is no price", key, name));
      const double price = value.get<double>();
      if (key == "input")
        prices.input = price;
      else if (key == "output")
        prices.output = price;
      else if (key == "cached_input")
        prices.cached_input = price;
      else if (key == "cache_write")
        prices.cache_write = price;
      else
        return bad_prices(file, fmt::format("`{}` of `{}` is unknown", key, name));
    }
    const auto now_fixed = fits(name, model);
    if (!now_fixed || (best && *now_fixed < fixed)) continue;
    best = prices;
    fixed = *now_fixed;
  }
  return best;
}

double cost_of(const TokenUsage& usage, const Prices& prices) {
  const auto plain = static_cast<double>(std::max<int64_t>(usage.input - usage.cached - usage.cache_written, 0));
  return (plain * prices.input + static_cast<double>(usage.cached) * prices.cached_input.value_or(prices.input) +
          static_cast<double>(usage.cache_written) * prices.cache_write.value_or(1.25 * prices.input) +
          static_cast<double>(usage.output) * prices.output) /
         1e6;
}

int64_t estimate_tokens(size_t bytes) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * kTokensAByte));
}

TokenUsage Meter::most(size_t bytes, int output) const {
  const double rate = most_tokens_a_byte_ > 0 ? most_tokens_a_byte_ * kMargin : kMostTokensAByte;
  TokenUsage usage;
  usage.input = static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * rate + kOverhead));
  usage.output = output;
  // Whether a cache of prompts is written is the endpoint's choice.
  if (prices_.cache_write) usage.cache_written = usage.input;
  usage.estimated = true;
  return usage;
}

TokenUsage Meter::estimate(size_t bytes, size_t reply_bytes) const {
  const double rate = most_tokens_a_byte_ > 0 ? most_tokens_a_byte_ : kTokensAByte;
  TokenUsage usage;
  usage.input = static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * rate));
  usage.output = estimate_tokens(reply_bytes);
  usage.estimated = true;
  return usage;
}

std::optional<int> Meter::affordable_output(size_t bytes, int wanted) {
  const TokenUsage question = most(bytes, 0);
  const double dollars_left = limits_.dollars - spent_.dollars - cost(question);
  const double tokens_left = static_cast<double>(limits_.tokens) - static_cast<double>(spent_.tokens + question.input);
  const double by_dollars = prices_.output > 0 ? dollars_left * 1e6 / prices_.output : dollars_left >= 0 ? wanted : 0;
  const int least = std::min(wanted / 2, kLeastAnswer);
  // Who allows no money allows no request whose price is not known.
  const bool none_allowed = limits_.dollars <= 0 && !prices_.known();
  if (none_allowed || by_dollars < least || (dollars_left < 0 && prices_.known()))
    spent_.over = Spending::Over::dollars;
  else if (tokens_left < least)
    spent_.over = Spending::Over::tokens;
  if (spent_.over != Spending::Over::nothing) return std::nullopt;
  return static_cast<int>(std::min({static_cast<double>(wanted), by_dollars, tokens_left}));
}

void Meter::learn(size_t bytes, int64_t input_tokens) {
  if (bytes < 1000 || input_tokens <= 0) return;  // what is added around short messages says nothing
  most_tokens_a_byte_ = std::max(most_tokens_a_byte_, static_cast<double>(input_tokens) / static_cast<double>(bytes));
}

void Meter::charge(int64_t tokens, double dollars) {
  spent_.tokens += tokens;
  spent_.dollars += dollars;
  ++spent_.requests;
}

}  // namespace tilepilot::agent
