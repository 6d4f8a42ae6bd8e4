#include "agent/llm/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tilepilot::agent {
namespace {

Error failed(std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::author_failed, {}, std::move(message), std::move(hint));
}

bool worth_retrying(const HttpResponse& response) {
  return response.status == 0 || response.status == 408 || response.status == 429 || response.status >= 500;
}

class LiveChat final : public ChatClient {
 public:
  LiveChat(ChatOptions options, const Provider& provider, ChatServices services, RunStore& store, int64_t run,
           std::vector<Exchange> earlier, int next_number)
      : options_(std::move(options)),
        provider_(provider),
        services_(std::move(services)),
        store_(store),
        run_(run),
        earlier_(std::move(earlier)),
        next_number_(next_number) {
    for (const Exchange& exchange : earlier_) dollars_ += exchange.dollars;
  }

  void allow(double seconds) override { deadline_ = services_.clock.seconds() + seconds; }

  Result<ChatReply> ask(const std::vector<ChatMessage>& messages) override {
    if (auto reply = earlier_reply()) return *std::move(reply);
    double delay = options_.first_delay_s;
    for (int retries = 0;;) {
      auto [response, reply] = TRY(send(provider_.request(options_.settings, messages)));
      if (reply) return *std::move(reply);
      if (response.status == 400 && provider_.adapt(options_.settings, response.body)) continue;
      if (!worth_retrying(response) || retries++ == options_.retries) return refusal(response);
      TRY(wait(response, delay));
      delay = std::min(delay * 2, 60.0);
    }
  }

  double dollars_spent() const override { return dollars_; }

 private:
  struct Answer {
    HttpResponse response;
    std::optional<ChatReply> reply;
  };

  // What the run was told before it was interrupted.
  std::optional<ChatReply> earlier_reply() {
    while (next_earlier_ < earlier_.size()) {
      const Exchange& exchange = earlier_[next_earlier_++];
      if (exchange.status != 200) continue;
      if (auto reply = provider_.reply(exchange.reply)) return reply;
    }
    return std::nullopt;
  }

  // One request, written down before it is sent and with what came of it.
  Result<Answer> send(std::string body) {
    Exchange exchange{.request = std::move(body)};
    const int number = next_number_++;
    TRY(store_.save_exchange(run_, number, exchange));
    const double start = services_.clock.seconds();
    Answer answer;
    answer.response = services_.http->post({endpoint(provider_, options_.url), provider_.headers(options_.key),
                                            exchange.request, std::min(options_.request_time_limit_s, seconds_left())});
    exchange.seconds = services_.clock.seconds() - start;
    exchange.status = answer.response.status;
    exchange.reply = exchange.status == 0 ? answer.response.failure : answer.response.body;
    if (exchange.status == 200) answer.reply = provider_.reply(answer.response.body);
    if (answer.reply) charge(*answer.reply, exchange);
    TRY(store_.save_exchange(run_, number, exchange));
    return answer;
  }

  double seconds_left() const { return std::max(deadline_ - services_.clock.seconds(), 1.0); }

  // Errors: the run would be over before the wait is.
  Status wait(const HttpResponse& response, double delay) {
    const double seconds = response.retry_after_s >= 0 ? response.retry_after_s : delay;
    if (seconds >= seconds_left()) {
      Error error = refusal(response);
      error->note({}, fmt::format("the next try would be in {:.3g} s, when the time of this run is spent", seconds));
      return error;
    }
    services_.progress(fmt::format("the endpoint {}; trying again in {:.3g} s",
                                   response.status == 0 ? "did not answer (" + response.failure + ")"
                                                        : fmt::format("answered {}", response.status),
                                   seconds));
    services_.sleep(seconds);
    return {};
  }

  void charge(const ChatReply& reply, Exchange& exchange) {
    exchange.input_tokens = reply.input_tokens;
    exchange.output_tokens = reply.output_tokens;
    exchange.dollars = (static_cast<double>(reply.input_tokens) * options_.dollars_per_million_input +
                        static_cast<double>(reply.output_tokens) * options_.dollars_per_million_output) /
                       1e6;
    dollars_ += exchange.dollars;
  }

  Error refusal(const HttpResponse& response) const {
    if (response.status == 0)
      return failed(fmt::format("no answer from `{}`: {}", options_.url, response.failure),
                    "check `--llm-url` and the network; `--author builtin` needs neither");
    std::string words = provider_.problem(response.body);
    std::string detail = words.empty() ? "" : ": " + words;
    if (response.status == 401 || response.status == 403)
      return failed(fmt::format("the endpoint refuses the key ({}){}", response.status, detail),
                    "set `TILEPILOT_API_KEY` to a key that is valid for this endpoint");
    if (response.status == 404)
      return failed(fmt::format("the endpoint does not know this address or model (404){}", detail),
                    "check `--llm-url` (up to and including `/v1`) and `--llm-model`");
    if (response.status == 200) return failed("the endpoint's answer is not a chat completion", "check `--llm-url`");
    return failed(fmt::format("the endpoint answered {}{}", response.status, detail));
  }

  ChatOptions options_;
  const Provider& provider_;
  ChatServices services_;
  RunStore& store_;
  int64_t run_;
  std::vector<Exchange> earlier_;
  size_t next_earlier_ = 0;
  double deadline_ = std::numeric_limits<double>::infinity();
  int next_number_;
  double dollars_ = 0;
};

class RecordedChat final : public ChatClient {
 public:
  RecordedChat(std::vector<Exchange> exchanges, const Provider& provider, RunStore& store, int64_t run)
      : exchanges_(std::move(exchanges)), provider_(provider), store_(store), run_(run) {}

  Result<ChatReply> ask(const std::vector<ChatMessage>&) override {
    if (next_ == exchanges_.size()) return failed("the recorded run has no further replies");
    // What did not succeed and has a successor was tried again then.
    while (exchanges_[next_].status != 200 && next_ + 1 < exchanges_.size()) ++next_;
    const Exchange& exchange = exchanges_[next_++];
    TRY(store_.save_exchange(run_, saved_++, exchange));
    auto reply = exchange.status == 200 ? provider_.reply(exchange.reply) : std::nullopt;
    if (!reply) return failed(fmt::format("the recorded endpoint answered {}", exchange.status));
    return *std::move(reply);
  }

  double dollars_spent() const override { return 0; }

 private:
  std::vector<Exchange> exchanges_;
  const Provider& provider_;
  RunStore& store_;
  int64_t run_;
  size_t next_ = 0;
  int saved_ = 0;
};

Result<const Provider*> provider_of(const std::string& form) {
  if (const Provider* provider = find_provider(form)) return provider;
  return failed(fmt::format("unknown form of endpoint `{}`", form), "this version speaks `openai`");
}

}  // namespace

Result<std::unique_ptr<ChatClient>> live_chat(ChatOptions options, ChatServices services, RunStore& store,
                                              int64_t run) {
  const Provider* provider = TRY(provider_of(options.form));
  auto earlier = TRY(store.exchanges(run));
  const int next = TRY(store.next_exchange(run));
  return std::make_unique<LiveChat>(std::move(options), *provider, std::move(services), store, run, std::move(earlier),
                                    next);
}

Result<std::unique_ptr<ChatClient>> recorded_chat(RunStore& store, int64_t recorded_run, int64_t run,
                                                  std::string form) {
  const Provider* provider = TRY(provider_of(form));
  auto exchanges = TRY(store.exchanges(recorded_run));
  if (exchanges.empty()) return failed(fmt::format("run {} recorded no exchanges with a language model", recorded_run));
  return std::make_unique<RecordedChat>(std::move(exchanges), *provider, store, run);
}

}  // namespace tilepilot::agent
