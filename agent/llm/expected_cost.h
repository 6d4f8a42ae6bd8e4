// About what a run with a language model will cost, told before the first request is sent.
#pragma once

#include <string>

#include "agent/llm/endpoint/spending.h"
#include "agent/store/run_store.h"

namespace tilepilot::agent {

struct ExpectedCost {
  double requests = 0;
  double input_tokens = 0, output_tokens = 0;  // of a request
  double dollars = 0;                          // of the run; 0: no prices are known
  int runs = 0;                                // earlier ones with the same model that this is taken from; 0: a guess
  double tokens() const { return requests * (input_tokens + output_tokens); }
};

// From the first request's size and from what earlier runs with the model (by its name) took: answers of their mean
// length, as many requests for an attempt, as many attempts, at most `attempts`.
Result<ExpectedCost> expected_cost(RunStore& store, const std::string& model, size_t first_request_bytes, int attempts,
                                   const Prices& prices);

// "about 7 requests, 83,000 tokens, $0.21 (as 12 earlier runs with this model)"
std::string to_text(const ExpectedCost& cost);

}  // namespace tilepilot::agent
