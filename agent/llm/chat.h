// A conversation partner that keeps records: sends a request, retries what may pass (429, 5xx, timeouts), and stores
// each try before its outcome is used. A recorded run answers in place of the network.
#pragma once

#include <functional>
#include <memory>

#include "agent/improve.h"
#include "agent/llm/http.h"
#include "agent/llm/provider.h"
#include "agent/run_store.h"

namespace tilepilot::agent {

class ChatClient {
 public:
  virtual ~ChatClient() = default;
  // Errors (`author_failed`): no network, wrong key, unknown model, a reply that is none.
  virtual Result<ChatReply> ask(const std::vector<ChatMessage>& messages) = 0;
  // From now on, `ask` has this long in all: no request or wait goes beyond it.
  virtual void allow(double /*seconds*/) {}
  virtual double dollars_spent() const = 0;
};

struct ChatOptions {
  std::string form = "openai";
  std::string url;  // base URL, up to and including the version: "http://localhost:8000/v1"
  std::string key;  // may be empty for local servers
  ChatSettings settings;
  double dollars_per_million_input = 0;  // prices, for the budget
  double dollars_per_million_output = 0;
  int retries = 5;
  double first_delay_s = 1;  // doubled after each retry, at most 60; a Retry-After header wins
  double request_time_limit_s = 300;
};

struct ChatServices {
  std::unique_ptr<HttpClient> http;
  std::function<void(double seconds)> sleep;
  std::function<void(const std::string&)> progress;  // "endpoint answered 429, trying again in 2 s"
  const Clock& clock = steady_clock();
};

// Of a run that was interrupted, the replies that it got come first: they are paid for. `store` outlives the client.
Result<std::unique_ptr<ChatClient>> live_chat(ChatOptions options, ChatServices services, RunStore& store, int64_t run);

// Answers from the exchanges of an earlier run, in order; copies them to `run`. When they end, so does the run.
Result<std::unique_ptr<ChatClient>> recorded_chat(RunStore& store, int64_t recorded_run, int64_t run, std::string form);

}  // namespace tilepilot::agent
