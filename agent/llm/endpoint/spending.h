// What a conversation with a language model has cost and may cost: tokens, and dollars by prices that the user gives.
// Limits hold before a request is sent: it must fit with the most that it can cost.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "agent/generate/author.h"
#include "agent/llm/endpoint/provider.h"
#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

// Dollars a million tokens.
struct Prices {
  double input = 0, output = 0;
  std::optional<double> cached_input;  // read from a cache of prompts; none: as `input`
  std::optional<double> cache_write;   // written to it; none: a quarter more than `input`
  bool known() const { return input > 0 || output > 0; }
};

// The prices of a model in a JSON file: {"MODEL": {"input": 3, "output": 15, "cached_input": 0.3,
// "cache_write": 3.75}}; a name that ends in `*` stands for all that begin so, and the longest that fits wins. nullopt:
// the file has none for this model. Errors, of kind `bad_usage`: the file cannot be read or is of another form.
Result<std::optional<Prices>> prices_in(const std::filesystem::path& file, std::string_view model);

struct SpendingLimits {
  double dollars = std::numeric_limits<double>::infinity();
  int64_t tokens = std::numeric_limits<int64_t>::max();  // input and output
};

double cost_of(const TokenUsage& usage, const Prices& prices);

// About how many tokens a text is: the endpoint alone knows its tokenizer.
int64_t estimate_tokens(size_t bytes);

class Meter {
 public:
  Meter(const Prices& prices, SpendingLimits limits) : prices_(prices), limits_(limits) {}

  // The longest answer, in tokens, that a request with so many bytes of messages may have, at most `wanted`. nullopt:
  // what is left does not pay for a useful one, and `spent` says which limit it is.
  std::optional<int> affordable_output(size_t bytes, int wanted);
  // The most that such a request can use.
  TokenUsage most(size_t bytes, int output) const;
  // About what it used, where the endpoint does not say.
  TokenUsage estimate(size_t bytes, size_t reply_bytes) const;

  // Learns from what the endpoint counted how many tokens a byte is.
  void learn(size_t bytes, int64_t input_tokens);
  void charge(int64_t tokens, double dollars);
  double cost(const TokenUsage& usage) const { return cost_of(usage, prices_); }
  const Spending& spent() const { return spent_; }

 private:
  Prices prices_;
  SpendingLimits limits_;
  Spending spent_;
  double most_tokens_a_byte_ = 0;  // seen; 0: none yet
};

}  // namespace tilepilot::agent
