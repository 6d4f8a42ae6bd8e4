#include "agent/store/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/generate/finalists.h"
#include "agent/llm/endpoint/endpoint.h"
#include "agent/llm/endpoint/wire.h"
#include "agent/llm/feedback.h"
#include "agent/store/corpus_entry.h"
#include "agent/store/line_diff.h"
#include "eval/stage_text.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

ChatMessage::Role role_of(const std::string& name) {
  if (name == "system") return ChatMessage::Role::system;
  return name == "assistant" ? ChatMessage::Role::assistant : ChatMessage::Role::user;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '&')
      result += "&amp;";
    else if (letter == '<')
      result += "&lt;";
    else if (letter == '>')
      result += "&gt;";
    else if (letter == '"')
      result += "&quot;";
    else
      result += letter;
  }
  return result;
}

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}"
    "pre{background:#f6f6f6;padding:.7em;overflow:auto;font-size:13px}table{border-collapse:collapse}"
    "td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}.added{background:#dfd}.removed{background:#fdd}"
    ".verified{color:#060}.failed{color:#900}summary{cursor:pointer}";

std::string verdict_line(const Attempt& attempt) {
  const eval::Verdict& verdict = attempt.told();
  std::string text(eval::to_string(verdict.outcome));
  if (verdict.outcome == eval::Outcome::verified && verdict.candidate)
    return text + fmt::format(", {:.1f} us, {:.2f} times eager", verdict.candidate->median_us, verdict.speedup());
  if (verdict.line > 0) text += fmt::format(" at line {}", verdict.line);
  if (!verdict.detail.empty()) text += ": " + verdict.detail;
  return verdict.stages.empty() ? text : text + "; " + eval::stages_text(verdict.stages);
}

std::string folded(const std::string& title, const std::string& content) {
  return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", escaped(title), escaped(content));
}

std::string exchange_html(const Transcript& transcript, size_t number) {
  const Exchange& exchange = transcript.exchanges[number];
  const auto messages = messages_in(exchange.request);
  std::string text = fmt::format("<p>Request {}: {:.1f} s, {} tokens read{}, {} written{}, ${:.4f}{}</p>\n", number + 1,
                                 exchange.seconds, exchange.input_tokens,
                                 exchange.cached_tokens > 0 ? fmt::format(" ({} cached)", exchange.cached_tokens) : "",
                                 exchange.output_tokens, exchange.estimated ? ", as estimated" : "", exchange.dollars,
                                 exchange.failure.empty() ? "" : "; <b>" + escaped(exchange.failure) + "</b>");
  std::string all;
  for (const ChatMessage& message : messages)
    all += fmt::format("[{}]\n{}\n\n", role_name(message.role), message.content);
  text += folded(fmt::format("all that was sent ({} messages)", messages.size()), all);
  if (!messages.empty()) text += folded("what was asked", messages.back().content);
  if (const std::string reply = reply_text(transcript, exchange); !reply.empty())
    text += folded("what was answered", reply);
  return text;
}

std::string diff_html(std::string_view before, std::string_view after) {
  constexpr size_t kAround = 3;
  std::string text = "<pre>";
  for (const DiffLine& line : shorten_diff(diff_lines(before, after), kAround)) {
    const bool added = line.kind == DiffLine::Kind::added, removed = line.kind == DiffLine::Kind::removed;
    const std::string shown = escaped((added ? "+ " : removed ? "- " : "  ") + line.text);
    text += added || removed ? fmt::format("<span class=\"{}\">{}</span>\n", added ? "added" : "removed", shown)
                             : shown + "\n";
  }
  return text + "</pre>\n";
}

json messages_json(const std::vector<ChatMessage>& messages) {
  json list = json::array();
  for (const ChatMessage& message : messages)
    list.push_back({{"role", role_name(message.role)}, {"content", message.content}});
  return list;
}

json common_fields(const Transcript& transcript) {
  const std::string licence = licence_in(transcript.run.model_source);
  const json options = json::parse(transcript.run.options, nullptr, /*allow_exceptions*/ false);
  return {{"run", transcript.run.summary.id},
          {"model", transcript.run.summary.model},
          {"author", transcript.run.summary.author},
          {"language_model", text_at(options, {"model"})},
          {"prompt_versions", text_at(options, {"prompt"})},
          {"target", text_at(options, {"target"})},
          {"licence", {{"model", licence.empty() ? json() : json(licence)}, {"program", "generated"}}}};
}

// The exchange whose reply became the attempt: the last usable one asked for it.
const Exchange* exchange_of(const Transcript& transcript, size_t attempt) {
  const Candidate& candidate = transcript.run.attempts[attempt].candidate;
  if (candidate.is_variant) return nullptr;
  if (candidate.exchange) {
    const auto number = static_cast<size_t>(*candidate.exchange);
    return number < transcript.exchanges.size() ? &transcript.exchanges[number] : nullptr;
  }
  // Earlier versions did not write it down: the last one before the attempt.
  const Exchange* found = nullptr;
  for (const Exchange& exchange : transcript.exchanges)
    if (exchange.attempt == static_cast<int>(attempt) && !reply_text(transcript, exchange).empty()) found = &exchange;
  return found;
}

// Why the first is better; empty: it is not.
std::string better_because(const std::vector<Attempt>& attempts, size_t at, size_t beside) {
  const Attempt &one = attempts[at], &other = attempts[beside];
  if (!is_verified(one)) return "";
  if (!is_verified(other)) return fmt::format("verified rather than {}", eval::to_string(other.told().outcome));
  const auto pairing = pairing_of(attempts, at, beside);
  if (!pairing && one.told().speedup_high <= 0) return "";
  if (relation_of(attempts, at, beside) != Relation::faster) return "";
  return fmt::format("{:.2f} times as fast", pairing ? pairing->ratio : one.told().speedup() / other.told().speedup());
}

}  // namespace

Result<std::optional<Transcript>> load_transcript(RunStore& store, int64_t run) {
  auto found = TRY(store.find(run));
  if (!found) return std::optional<Transcript>();
  Transcript transcript{*std::move(found), TRY(store.exchanges(run)), "openai"};
  const json options = json::parse(transcript.run.options, nullptr, /*allow_exceptions*/ false);
  if (const std::string form = text_at(options, {"form"}); !form.empty()) transcript.form = form;
  return std::optional(std::move(transcript));
}

std::vector<ChatMessage> messages_in(const std::string& request) {
  const json body = json::parse(request, nullptr, /*allow_exceptions*/ false);
  std::vector<ChatMessage> messages;
  for (const char* key : {"instructions", "system"})
    if (const json* system = member(body, {key})) messages.push_back({ChatMessage::Role::system, text_of(*system)});
  for (const char* key : {"messages", "input"}) {
    const json* list = member(body, {key});
    if (!list || !list->is_array()) continue;
    for (const json& message : *list)
      if (const json* content = member(message, {"content"}))
        messages.push_back({role_of(text_at(message, {"role"})), text_of(*content)});
  }
  return messages;
}

std::string reply_text(const Transcript& transcript, const Exchange& exchange) {
  const Provider* provider = find_provider(transcript.form);
  if (!provider || !exchange.failure.empty()) return "";
  const auto reply = reply_in(*provider, exchange.reply);
  return reply ? reply->text : "";
}

TranscriptTotals totals_of(const std::vector<Exchange>& exchanges) {
  TranscriptTotals totals;
  for (const Exchange& exchange : exchanges) {
    ++totals.requests;
    totals.failed += exchange.failure.empty() ? 0 : 1;
    totals.input_tokens += exchange.input_tokens;
    totals.output_tokens += exchange.output_tokens;
    totals.cached_tokens += exchange.cached_tokens;
    totals.dollars += exchange.dollars;
    totals.seconds += exchange.seconds;
  }
  return totals;
}

std::string transcript_page(const Transcript& transcript) {
  const StoredRun& run = transcript.run;
  const TranscriptTotals totals = totals_of(transcript.exchanges);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Run {0}</title><style>{1}</style>\n"
      "<h1>Run {0}: {2}</h1>\n<p>Author {3}, {4}, {5}. {6} requests ({7} failed), {8} tokens read, {9} written, "
      "${10:.4f}, "
      "{11:.1f} s of waiting for the language model.</p>\n",
      run.summary.id, kStyle, escaped(run.summary.model), escaped(run.summary.author), escaped(run.summary.started),
      escaped(run.summary.ending.empty() ? "did not end" : run.summary.ending), totals.requests, totals.failed,
      totals.input_tokens, totals.output_tokens, totals.dollars, totals.seconds);
  page += folded("the model", run.model_source);
  const int attempts = static_cast<int>(run.attempts.size());
  for (int number = 0; number <= attempts; ++number) {
    std::string exchanges;
    for (size_t i = 0; i < transcript.exchanges.size(); ++i)
      if (std::min(transcript.exchanges[i].attempt, attempts) == number) exchanges += exchange_html(transcript, i);
    if (number == attempts) {
      if (!exchanges.empty()) page += "<h2>After the last attempt</h2>\n" + exchanges;
      break;
    }
    const Attempt& attempt = run.attempts[static_cast<size_t>(number)];
    page +=
        fmt::format("<h2>Attempt {}{}: {}</h2>\n<p class=\"{}\">{}</p>\n", number + 1,
                    run.best == static_cast<size_t>(number) ? " (the best)" : "", escaped(attempt.candidate.summary),
                    is_verified(attempt) ? "verified" : "failed", escaped(verdict_line(attempt)));
    for (const std::string& diagnostic : attempt.verdict.rendered)
      page += fmt::format("<pre>{}</pre>\n", escaped(diagnostic));
    page += exchanges;
    if (const auto before = compared_with(run, static_cast<size_t>(number)))
      page += fmt::format("<p>What differs from attempt {}:</p>\n", *before + 1) +
              diff_html(run.attempts[*before].candidate.source, attempt.candidate.source);
    page += folded("the program", attempt.candidate.source);
  }
  return page + "</html>\n";
}

std::optional<size_t> compared_with(const StoredRun& run, size_t number) {
  const auto& changes = run.attempts[number].candidate.changes;
  if (changes && *changes < number) return changes;
  return number > 0 ? std::optional(number - 1) : std::nullopt;
}

std::vector<json> training_records(const Transcript& transcript) {
  const auto& attempts = transcript.run.attempts;
  std::vector<json> records;
  if (std::none_of(attempts.begin(), attempts.end(), is_verified)) return records;
  const json common = common_fields(transcript);
  for (size_t i = 0; i < attempts.size(); ++i) {
    const Exchange* exchange = exchange_of(transcript, i);
    if (exchange == nullptr) continue;
    json record = common;
    record.update({{"type", "attempt"},
                   {"attempt", i},
                   {"messages", messages_json(messages_in(exchange->request))},
                   {"reply", reply_text(transcript, *exchange)},
                   {"program", attempts[i].candidate.source},
                   {"outcome", eval::to_string(attempts[i].told().outcome)},
                   {"speedup", attempts[i].told().speedup()},
                   {"best", transcript.run.best == i}});
    records.push_back(std::move(record));
  }
  const Exchange* first = exchange_of(transcript, 0);
  for (size_t i = 0; i < attempts.size(); ++i)
    for (size_t j = 0; j < attempts.size(); ++j) {
      const std::string why = i == j ? "" : better_because(attempts, i, j);
      if (why.empty()) continue;
      json record = common;
      record.update({{"type", "preference"},
                     {"prompt", first != nullptr ? messages_json(messages_in(first->request)) : json(nullptr)},
                     {"model_source", transcript.run.model_source},
                     {"chosen", attempts[i].candidate.source},
                     {"rejected", attempts[j].candidate.source},
                     {"reason", why}});
      records.push_back(std::move(record));
    }
  return records;
}

}  // namespace tilepilot::agent
