// A run of `generate` with all that was said in it, as a page, and as records that a language model can learn from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/llm/endpoint/provider.h"
#include "agent/store/run_store.h"

namespace tilepilot::agent {

struct Transcript {
  StoredRun run;
  std::vector<Exchange> exchanges;
  std::string form;  // that the run's endpoint spoke
};

// nullopt: there is no such run.
Result<std::optional<Transcript>> load_transcript(RunStore& store, int64_t run);

// The conversation of a request, in any form; the last message is what was asked.
std::vector<ChatMessage> messages_in(const std::string& request);
// The text of an exchange's reply; empty: it has none.
std::string reply_text(const Transcript& transcript, const Exchange& exchange);

// The attempt that this one is shown beside: the one that it changes, else the one before.
std::optional<size_t> compared_with(const StoredRun& run, size_t number);

struct TranscriptTotals {
  int requests = 0, failed = 0;
  int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  double dollars = 0, seconds = 0;  // in all requests
};
TranscriptTotals totals_of(const std::vector<Exchange>& exchanges);

// One HTML page without anything from elsewhere: verdicts, what was asked and answered, and how each program differs
// from the one before.
std::string transcript_page(const Transcript& transcript);

// Of a run with a verified program: a record for each reply that became an attempt (`type` "attempt"), and one for each
// pair of programs of which one is better (`type` "preference"): verified rather than not, or faster by intervals that
// do not overlap. Each names where its texts come from and under which licence, if the model's file says it.
std::vector<nlohmann::json> training_records(const Transcript& transcript);

}  // namespace tilepilot::agent
