// tilepilot llm ping: whether an endpoint answers, how fast, and what it says of itself.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "agent/llm/endpoint/chat.h"
#include "agent/llm/endpoint/rate_limits.h"
#include "cli/command.h"
#include "cli/flags/llm_flags.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::cli {
namespace {

using agent::ChatMessage;

// Reasoning models think even about this.
constexpr int kPingTokens = 2000;

struct Ping {
  agent::EndpointAnswer answer;
  agent::ChatSettings settings;
  std::vector<std::string> changes;  // that the endpoint asked for
  double seconds = 0;
};

Ping ping(const agent::Endpoint& endpoint, agent::ChatSettings settings) {
  const std::vector<ChatMessage> messages = {{ChatMessage::Role::system, "Answer in one word."},
                                             {ChatMessage::Role::user, "Say: pong"}};
  Ping result{{}, std::move(settings), {}, 0};
  result.settings.max_output_tokens = std::min(result.settings.max_output_tokens, kPingTokens);
  const double start = agent::steady_clock().seconds();
  for (int tries = 0; tries < 8; ++tries) {
    const double begin = agent::steady_clock().seconds();
    result.answer = endpoint.send(endpoint.request(result.settings, messages), result.settings.stream, 300);
    result.seconds = agent::steady_clock().seconds() - begin;
    const int status = result.answer.response.status;
    auto change = status >= 400 && status < 500 ? agent::adapt(result.settings, result.answer.problem, 20)
                                                : std::optional<std::string>();
    if (!change || agent::steady_clock().seconds() - start > 300) break;
    result.changes.push_back(*std::move(change));
  }
  return result;
}

std::string limits_of(const agent::HttpResponse& response) {
  std::string text;
  for (const auto& [name, value] : response.headers)
    if (name.find("ratelimit") != std::string::npos && name.find("remaining") != std::string::npos)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, printable(value, 40));
  return text;
}

std::string report(const agent::Endpoint& endpoint, const Ping& result, const agent::Prices& prices) {
  const agent::ChatReply& reply = *result.answer.reply;
  std::string text = fmt::format("{} answers in the form `{}`: {:?}\n", endpoint.url().shown(),
                                 endpoint.provider().form, printable(reply.text, 80));
  text +=
      fmt::format("  first byte     {:.0f} ms, whole answer {:.0f} ms{}\n", result.answer.response.first_byte_s * 1e3,
                  result.seconds * 1e3, result.answer.streamed ? ", streamed" : ", not streamed");
  if (reply.usage.input > 0 || reply.usage.output > 0)
    text += fmt::format("  tokens         {} read, {} written\n", reply.usage.input, reply.usage.output);
  else
    text += "  tokens         not told: budgets go by our own estimate\n";
  if (!reply.reasoning.empty()) text += "  reasoning      shown, and kept apart from the answer\n";
  text += prices.known() ? fmt::format(
                               "  prices         ${:g} and ${:g} a million tokens read and written; this cost "
                               "${:.6f}\n",
                               prices.input, prices.output, agent::cost_of(reply.usage, prices))
                         : "  prices         unknown: `--dollars` will limit nothing\n";
  if (const std::string limits = limits_of(result.answer.response); !limits.empty())
    text += fmt::format("  rate limits    {}\n", limits);
  for (const std::string& change : result.changes) text += fmt::format("  note           {}\n", change);
  text.pop_back();
  return text;
}

int run_ping(Session& session, LlmFlags& flags) {
  if (flags.chat.endpoint.url.empty() || flags.chat.settings.model.empty())
    return session.fail({DiagnosticKind::bad_usage,
                         {},
                         "`llm ping` needs `--llm-url` and `--llm-model`",
                         {},
                         "for example `--llm-url http://localhost:8000/v1 --llm-model NAME`"});
  if (auto status = flags.complete(session); !status) return session.fail(status.error());
  auto endpoint = agent::Endpoint::open(flags.chat.endpoint, agent::curl_client());
  if (!endpoint) return session.fail(endpoint.error());
  const Ping result = ping(*endpoint, flags.chat.settings);
  if (!result.answer.ok()) return session.fail(*agent::explain(result.answer, *endpoint));
  const agent::ChatReply& reply = *result.answer.reply;
  session.answer(report(*endpoint, result, flags.chat.prices));
  session.finish({{"ok", true},
                  {"url", endpoint->url().shown()},
                  {"form", endpoint->provider().form},
                  {"model", flags.chat.settings.model},
                  {"reply", reply.text},
                  {"streamed", result.answer.streamed},
                  {"first_byte_s", result.answer.response.first_byte_s},
                  {"seconds", result.seconds},
                  {"input_tokens", reply.usage.input},
                  {"output_tokens", reply.usage.output},
                  {"dollars", agent::cost_of(reply.usage, flags.chat.prices)},
                  {"changes", result.changes}});
  return kDone;
}

}  // namespace

void add_llm(CLI::App& app, Session& session) {
  auto flags = std::make_shared<LlmFlags>();
  auto* command = app.add_subcommand("llm", "Language models: ping");
  command->require_subcommand(1);
  auto* sub = command->add_subcommand("ping", "Ask an endpoint for one word, and tell what it says of itself");
  flags->add_endpoint(*sub);
  sub->callback([&session, flags] { session.run = [&session, flags] { return run_ping(session, *flags); }; });
  command->footer("Example:\n  tilepilot llm ping --llm-url http://localhost:8000/v1 --llm-model NAME");
}

}  // namespace tilepilot::cli
