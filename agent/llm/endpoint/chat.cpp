#include "agent/llm/endpoint/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "agent/llm/endpoint/rate_limits.h"

namespace tilepilot::agent {
namespace {

using End = ChatReply::End;

Error chat_failed(std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::author_failed, {}, std::move(message), std::move(hint));
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The other side failed, and may not the next time.
bool worth_retrying(const EndpointAnswer& answer) {
  const int status = answer.response.status;
  if (answer.response.failed != HttpFailure::none) return true;
  if (answer.problem.type == "insufficient_quota") return false;
  if (status == 408 || status == 409 || status == 425 || status == 429 || status >= 500) return true;
  if (status != 200) return false;
  if (answer.problem.exists()) return may_pass(answer.problem);
  const bool looks_like_json = answer.body.find_first_not_of(" \t\r\n") == std::string::npos || answer.body[0] == '{';
  return !answer.complete && (answer.streamed || looks_like_json);
}

// Whether the endpoint may have worked, and charge for it, though there is no count.
bool may_be_billed(const EndpointAnswer& answer) {
  const HttpResponse& response = answer.response;
  if (response.failed == HttpFailure::unreachable || response.status >= 300) return false;
  if (response.failed != HttpFailure::none) return true;
  if (answer.problem.exists()) return answer.reply && !(answer.reply->text.empty() && answer.reply->reasoning.empty());
  return worth_retrying(answer);
}

// Where prompts are marked to be cached, a request may cost what writing them does.
Prices prices_of(const ChatOptions& options, const Provider& provider) {
  Prices prices = options.prices;
  if (provider.form == "anthropic" && options.settings.cache_prompts && !prices.cache_write)
    prices.cache_write = cost_of({.input = 1'000'000, .cache_written = 1'000'000}, prices);
  return prices;
}

class LiveChat final : public ChatClient {
 public:
  LiveChat(ChatOptions options, Endpoint endpoint, ChatServices services, RunStore& store, int64_t run,
           std::vector<Exchange> earlier, int next_number)
      : options_(std::move(options)),
        endpoint_(std::move(endpoint)),
        services_(std::move(services)),
        store_(store),
        run_(run),
        earlier_(std::move(earlier)),
        next_number_(next_number),
        meter_(prices_of(options_, endpoint_.provider()), options_.limits),
        longest_output_(kMostLonger * options_.settings.max_output_tokens) {
    for (const Exchange& exchange : earlier_)
      meter_.charge(exchange.input_tokens + exchange.output_tokens, exchange.dollars);
  }

  void allow(double seconds) override { deadline_ = services_.clock.seconds() + seconds; }
  void begin_attempt(int number) override { attempt_ = number; }
  Spending spending() const override { return meter_.spent(); }

  bool allow_longer_answers() override {
    int& limit = options_.settings.max_output_tokens;
    if (limit >= longest_output_ || limit_was_lowered_) return false;
    limit = std::min(2 * limit, longest_output_);
    services_.progress(fmt::format("the answer was cut off; answers may now be {} tokens long", limit));
    return true;
  }

  Result<std::vector<ChatReply>> ask_each(const std::vector<ChatMessage>& messages, int count) override {
    std::vector<ChatReply> replies;
    // Of those that came before the run was interrupted, the ones that answer one request.
    for (size_t first = next_earlier_; static_cast<int>(replies.size()) < count;) {
      if (!replies.empty() &&
          (next_earlier_ == earlier_.size() || earlier_[next_earlier_].request != earlier_[first].request))
        break;
      auto reply = earlier_reply();
      if (!reply) break;
      replies.push_back(*std::move(reply));
    }
    if (replies.empty() && count > 1) replies = TRY(send_each(messages, count));
    // What failed alone is tried again, or told, as any other request is.
    if (replies.empty()) replies.push_back(TRY(ask(messages)));
    return replies;
  }

  Result<ChatReply> ask(const std::vector<ChatMessage>& messages) override {
    if (auto reply = earlier_reply()) return *std::move(reply);
    double delay = options_.first_delay_s;
    for (int retries = 0, changes = 0;;) {
      const size_t bytes = bytes_of(messages);
      ChatSettings settings = options_.settings;
      const auto output = meter_.affordable_output(bytes, settings.max_output_tokens);
      if (!output) return ChatReply{.end = End::unaffordable};
      settings.max_output_tokens = *output;
      TRY(wait_for_limits());
      EndpointAnswer answer = TRY(send(settings, messages, bytes));
      if (answer.ok()) return *std::move(answer.reply);
      const bool refused = answer.response.status >= 400 && answer.response.status < 500;
      if (refused && changes < kMostChanges && change_request(answer, bytes)) {
        ++changes;
        continue;
      }
      if (refused && is_context_overflow(answer.problem))
        return ChatReply{.end = End::too_long, .context_tokens = context_of(answer.problem)};
      if (!worth_retrying(answer) || retries++ == options_.retries) return explain(answer, endpoint_);
      TRY(wait(answer, delay));
      delay = std::min(delay * 2, 60.0);
    }
  }

 private:
  static constexpr int kMostChanges = 8;
  static constexpr int kMostLonger = 4;  // times the limit that the user gave

  // What the run was told before it was interrupted.
  std::optional<ChatReply> earlier_reply() {
    while (next_earlier_ < earlier_.size()) {
      const Exchange& exchange = earlier_[next_earlier_++];
      if (exchange.status != 200 || !exchange.failure.empty()) continue;
      if (auto reply = reply_in(endpoint_.provider(), exchange.reply)) {
        reply->exchange = static_cast<int>(next_earlier_) - 1;
        return reply;
      }
    }
    return std::nullopt;
  }

  bool change_request(const EndpointAnswer& answer, size_t bytes) {
    const int before = options_.settings.max_output_tokens;
    const auto note = adapt(options_.settings, answer.problem, estimate_tokens(bytes));
    if (!note) return false;
    limit_was_lowered_ = limit_was_lowered_ || options_.settings.max_output_tokens < before;
    services_.progress(fmt::format("the endpoint refuses the request ({}): {}", answer.response.status, *note));
    return true;
  }

  // A request on its way.
  struct Sent {
    Exchange exchange;
    int number = 0;
    size_t bytes = 0;
    TokenUsage most;  // that it can cost
    EndpointAnswer answer = {};
  };

  // Written down before it is sent, with the most that it can cost.
  Result<Sent> write_down(const ChatSettings& settings, const std::vector<ChatMessage>& messages, size_t bytes) {
    Sent sent{{.request = endpoint_.request(settings, messages), .attempt = attempt_},
              next_number_++,
              bytes,
              meter_.most(bytes, settings.max_output_tokens)};
    bill(sent.exchange, sent.most);
    TRY(store_.save_exchange(run_, sent.number, sent.exchange));
    return sent;
  }

  // Touches nothing but `sent`: several may go at once.
  void send(Sent& sent, bool streamed, double seconds) const {
    const double start = services_.clock.seconds();
    sent.answer = endpoint_.send(sent.exchange.request, streamed, seconds);
    sent.exchange.seconds = services_.clock.seconds() - start;
  }

  // Written down again with what came of it.
  Result<EndpointAnswer> receive(Sent sent) {
    Exchange& exchange = sent.exchange;
    const EndpointAnswer& answer = sent.answer;
    exchange.status = answer.response.status;
    exchange.reply = answer.body;
    if (!answer.ok()) exchange.failure = explain(answer, endpoint_)->message;
    bill(exchange, usage_of(answer, sent.most, sent.bytes));
    meter_.charge(exchange.input_tokens + exchange.output_tokens, exchange.dollars);
    TRY(store_.save_exchange(run_, sent.number, exchange));
    if (const auto told = wait_told(answer.response, seconds_since_1970()); told && answer.ok())
      not_before_ = services_.clock.seconds() + *told;
    if (sent.answer.reply) sent.answer.reply->exchange = sent.number;
    return std::move(sent.answer);
  }

  Result<EndpointAnswer> send(const ChatSettings& settings, const std::vector<ChatMessage>& messages, size_t bytes) {
    Sent sent = TRY(write_down(settings, messages, bytes));
    send(sent, settings.stream, seconds_left());
    return receive(std::move(sent));
  }

  // As many at once as the limits pay for, if each costs the most that it can. Gives the answers that are whole.
  Result<std::vector<ChatReply>> send_each(const std::vector<ChatMessage>& messages, int count) {
    TRY(wait_for_limits());
    const size_t bytes = bytes_of(messages);
    Meter reserved = meter_;
    std::vector<Sent> all;
    for (int i = 0; i < count; ++i) {
      ChatSettings settings = options_.settings;
      const auto output = reserved.affordable_output(bytes, settings.max_output_tokens);
      if (!output) break;
      settings.max_output_tokens = *output;
      all.push_back(TRY(write_down(settings, messages, bytes)));
      reserved.charge(all.back().most.input + all.back().most.output, all.back().exchange.dollars);
    }
    std::vector<std::thread> threads;
    const double seconds = seconds_left();
    for (Sent& sent : all)
      threads.emplace_back([this, &sent, seconds] { send(sent, options_.settings.stream, seconds); });
    for (std::thread& thread : threads) thread.join();
    std::vector<ChatReply> replies;
    for (Sent& sent : all) {
      EndpointAnswer answer = TRY(receive(std::move(sent)));
      if (answer.ok()) replies.push_back(*std::move(answer.reply));
    }
    return replies;
  }

  // What the endpoint counted; else our own estimate, or, of a try that broke off, the most that it can have cost.
  TokenUsage usage_of(const EndpointAnswer& answer, const TokenUsage& most, size_t bytes) {
    if (answer.ok()) {
      TokenUsage usage = answer.reply->usage;
      const TokenUsage estimate = meter_.estimate(bytes, answer.reply->text.size() + answer.reply->reasoning.size());
      if (usage.input > 0) learn(bytes, usage.input);
      usage.estimated = usage.input == 0 || usage.output == 0;
      if (usage.input == 0) usage.input = estimate.input;
      if (usage.output == 0) usage.output = answer.reply->end == End::cut_off ? most.output : estimate.output;
      return usage;
    }
    return may_be_billed(answer) ? most : TokenUsage{};
  }

  void learn(size_t bytes, int64_t input) {
    meter_.learn(bytes, input);
    constexpr double kTooFew = 0.5;
    constexpr size_t kEnoughToTell = 8000;
    if (warned_ || bytes < kEnoughToTell ||
        static_cast<double>(input) > kTooFew * static_cast<double>(estimate_tokens(bytes)))
      return;
    warned_ = true;
    services_.progress(
        fmt::format("warning: the endpoint counted {} input tokens where about {} were sent: its context may be too "
                    "short for them (with Ollama, raise `num_ctx`)",
                    input, estimate_tokens(bytes)));
  }

  void bill(Exchange& exchange, const TokenUsage& usage) const {
    exchange.input_tokens = usage.input;
    exchange.output_tokens = usage.output;
    exchange.cached_tokens = usage.cached;
    exchange.estimated = usage.estimated;
    exchange.dollars = meter_.cost(usage);
  }

  double seconds_left() const { return std::max(deadline_ - services_.clock.seconds(), 1.0); }

  // Until the moment that the last reply gave as that of new requests.
  Status wait_for_limits() {
    const double seconds = not_before_ - services_.clock.seconds();
    if (seconds <= 0) return {};
    not_before_ = 0;
    if (seconds >= seconds_left())
      return chat_failed(
          fmt::format("the endpoint takes the next request in {:.3g} s, when the time of this run is spent", seconds));
    services_.progress(fmt::format("the endpoint takes the next request in {:.3g} s", seconds));
    services_.sleep(seconds);
    return {};
  }

  // Errors: the run would be over before the wait is.
  Status wait(const EndpointAnswer& answer, double delay) {
    const auto told = wait_told(answer.response, seconds_since_1970());
    // Never earlier than told, and not all at once.
    const double seconds =
        told ? *told + std::min(1.0, 0.1 * *told) * services_.random() : delay * (0.5 + services_.random());
    if (seconds >= seconds_left()) {
      Error error = explain(answer, endpoint_);
      error->note({}, fmt::format("the next try would be in {:.3g} s, when the time of this run is spent", seconds));
      return error;
    }
    const HttpResponse& response = answer.response;
    const std::string what = response.failed != HttpFailure::none ? "did not answer (" + response.failure + ")"
                             : response.status != 200             ? fmt::format("answered {}", response.status)
                             : answer.problem.exists()            ? "answered with an error: " + answer.problem.message
                                                                  : "sent an answer that is not complete";
    services_.progress(fmt::format("the endpoint {}; trying again in {:.3g} s", what, seconds));
    services_.sleep(seconds);
    return {};
  }

  ChatOptions options_;
  Endpoint endpoint_;
  ChatServices services_;
  RunStore& store_;
  int64_t run_;
  std::vector<Exchange> earlier_;
  size_t next_earlier_ = 0;
  double deadline_ = std::numeric_limits<double>::infinity();
  double not_before_ = 0;
  int next_number_;
  int attempt_ = 0;
  Meter meter_;
  int longest_output_;
  bool limit_was_lowered_ = false;  // the endpoint said how long answers may be
  bool warned_ = false;
};

class RecordedChat final : public ChatClient {
 public:
  RecordedChat(Recording recording, const Provider& provider, RunStore& store, int64_t run)
      : recording_(std::move(recording)), provider_(provider), store_(store), run_(run) {}

  void begin_attempt(int number) override { attempt_ = number; }
  // As it was then: the request that follows had a longer limit.
  bool allow_longer_answers() override { return *goes_on(); }
  std::optional<bool> goes_on() const override { return next_ < recording_.exchanges.size(); }

  Result<ChatReply> ask(const std::vector<ChatMessage>&) override {
    const auto& exchanges = recording_.exchanges;
    // What did not succeed and has a successor was tried again then.
    while (next_ + 1 < exchanges.size() && !reply_of(exchanges[next_])) ++next_;
    if (next_ == exchanges.size()) return chat_failed("the recorded run has no further replies");
    const int number = static_cast<int>(next_);
    Exchange exchange = exchanges[next_++];
    exchange.attempt = attempt_;
    TRY(store_.save_exchange(run_, saved_, exchange));
    auto reply = reply_of(exchange);
    if (reply) {
      reply->exchange = saved_;
      reply->changed = recording_.changed_by(number);
    }
    ++saved_;
    if (reply) return *std::move(reply);
    if (!exchange.failure.empty()) return chat_failed("as it was recorded: " + exchange.failure);
    if (exchange.status == 200) return chat_failed("a recorded reply cannot be read");
    return chat_failed(exchange.status == 0 ? "the recorded run was killed while it waited for a reply"
                                            : fmt::format("the recorded endpoint answered {}", exchange.status));
  }

  Spending spending() const override { return {}; }

 private:
  std::optional<ChatReply> reply_of(const Exchange& exchange) const {
    if (exchange.status != 200 || !exchange.failure.empty()) return std::nullopt;
    return reply_in(provider_, exchange.reply);
  }

  Recording recording_;
  const Provider& provider_;
  RunStore& store_;
  int64_t run_;
  size_t next_ = 0;
  int saved_ = 0;
  int attempt_ = 0;
};

}  // namespace

Result<std::vector<ChatReply>> ChatClient::ask_each(const std::vector<ChatMessage>& messages, int count) {
  std::vector<ChatReply> replies;
  for (int i = 0; i < count; ++i) {
    auto reply = ask(messages);
    if (!reply && replies.empty()) return std::move(reply).take_error();
    if (!reply) break;
    replies.push_back(*std::move(reply));
  }
  return replies;
}

double ChatServices::random_fraction() {
  static thread_local std::mt19937 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

Result<std::unique_ptr<ChatClient>> live_chat(ChatOptions options, ChatServices services, RunStore& store,
                                              int64_t run) {
  Endpoint endpoint = TRY(Endpoint::open(options.endpoint, std::move(services.http)));
  auto earlier = TRY(store.exchanges(run));
  const int next = TRY(store.next_exchange(run));
  return std::make_unique<LiveChat>(std::move(options), std::move(endpoint), std::move(services), store, run,
                                    std::move(earlier), next);
}

Result<std::unique_ptr<ChatClient>> recorded_chat(Recording recording, RunStore& store, int64_t run) {
  const Provider* provider = find_provider(recording.form);
  if (!provider) return chat_failed(fmt::format("unknown form of endpoint `{}`", recording.form));
  if (recording.exchanges.empty()) return chat_failed("the recorded run had no exchanges with a language model");
  return std::make_unique<RecordedChat>(std::move(recording), *provider, store, run);
}

}  // namespace tilepilot::agent
