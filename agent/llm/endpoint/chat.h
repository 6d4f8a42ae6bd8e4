// A conversation partner that keeps records and accounts: sends a request, retries what may pass (429, 5xx, broken and
// silent connections), stores each try before its outcome is used, and sends nothing that could exceed a limit of
// spending. A recorded run answers in place of the network.
#pragma once

#include <functional>
#include <memory>

#include "agent/generate/improve.h"
#include "agent/llm/endpoint/endpoint.h"
#include "agent/llm/endpoint/spending.h"
#include "agent/store/recording.h"
#include "agent/store/run_store.h"

namespace tilepilot::agent {

class ChatClient {
 public:
  virtual ~ChatClient() = default;
  // Errors (`author_failed`): no network, wrong key, unknown model, a reply that is none.
  virtual Result<ChatReply> ask(const std::vector<ChatMessage>& messages) = 0;
  // So many answers to the same messages, asked for at the same time where the partner can; fewer, but one at least, if
  // the limits of spending leave no more or some come to nothing.
  virtual Result<std::vector<ChatReply>> ask_each(const std::vector<ChatMessage>& messages, int count);
  // From now on, `ask` has this long in all: no request or wait goes beyond it.
  virtual void allow(double /*seconds*/) {}
  // What follows is about this attempt.
  virtual void begin_attempt(int /*number*/) {}
  // The last answer was cut off before it said anything: allow longer ones. False: they are as long as they may be.
  virtual bool allow_longer_answers() { return false; }
  virtual Spending spending() const = 0;
  // Of a recorded conversation: whether it goes on. nullopt: it is none.
  virtual std::optional<bool> goes_on() const { return std::nullopt; }
};

struct ChatOptions {
  EndpointOptions endpoint;
  ChatSettings settings;
  Prices prices;
  SpendingLimits limits;
  int retries = 5;
  double first_delay_s = 1;  // doubled after each retry, at most 60; what the endpoint says wins
};

struct ChatServices {
  std::unique_ptr<HttpClient> http;
  std::function<void(double seconds)> sleep;
  std::function<void(const std::string&)> progress;  // "the endpoint answered 429; trying again in 2 s"
  const Clock& clock = steady_clock();
  std::function<double()> random = random_fraction;  // 0 to 1: many clients must not come back at one moment

  static double random_fraction();
};

// Of a run that was interrupted, the replies that it got come first: they are paid for. `store` outlives the client.
// Errors, of kind `bad_usage`: those of Endpoint::open.
Result<std::unique_ptr<ChatClient>> live_chat(ChatOptions options, ChatServices services, RunStore& store, int64_t run);

// Answers from the exchanges of an earlier run, in order; copies them to `run`. When they end, so does the run.
Result<std::unique_ptr<ChatClient>> recorded_chat(Recording recording, RunStore& store, int64_t run);

}  // namespace tilepilot::agent
