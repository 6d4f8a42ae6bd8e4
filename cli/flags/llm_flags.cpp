#include "cli/flags/llm_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "agent/llm/endpoint/key_file.h"
#include "cli/manual/help.h"
#include "compiler/source/file.h"

namespace tilepilot::cli {

CLI::Option* LlmFlags::add(CLI::App& command, const char* name, auto& value, const char* help) {
  CLI::Option* option = command.add_option(name, value, help)->group("Language model");
  options_.push_back(option);
  return option;
}

void LlmFlags::add_endpoint(CLI::App& command) {
  add(command, "--llm-url", chat.endpoint.url,
      "Base URL of a chat endpoint, up to and including its version, as http://localhost:8000/v1");
  add(command, "--llm-model", chat.settings.model, "Model name at that endpoint");
  add(command, "--llm-form", chat.endpoint.form, "What the endpoint speaks (default: as its address says)")
      ->check(CLI::IsMember({"openai", "openai-responses", "anthropic"}));
  add(command, "--llm-key-file", key_file_,
      "File of mode 0600 that holds the key (default: the key in TILEPILOT_API_KEY)")
      ->type_name("FILE");
  add(command, "--llm-key-header", chat.endpoint.key_header,
      "Header that carries the key, as `api-key` (default: as the form has it, or Azure)");
  add(command, "--llm-temperature", chat.settings.temperature, "Sampling temperature (default: the endpoint's)");
  add(command, "--llm-max-tokens", chat.settings.max_output_tokens, "Longest answer, in tokens, reasoning included")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  add(command, "--llm-idle-limit", chat.endpoint.idle_limit_s,
      "Longest silence of the endpoint while it streams an answer, in seconds")
      ->check(number_within(1, 1e6))
      ->capture_default_str();
  CLI::Option* stream = command.add_flag("--llm-no-stream", no_stream_, "Ask for answers in one piece");
  options_.push_back(stream->group("Language model"));
  price_in_ = add(command, "--price-in", chat.prices.input, "Dollars a million input tokens")
                  ->check(number_within(0, 1e9))
                  ->capture_default_str();
  price_out_ = add(command, "--price-out", chat.prices.output, "Dollars a million output tokens")
                   ->check(number_within(0, 1e9))
                   ->capture_default_str();
  add(command, "--prices", prices_,
      "JSON file of prices by model (default: $TILEPILOT_PRICES, else tilepilot/prices.json in your config folder)")
      ->type_name("FILE");
}

void LlmFlags::add_to(CLI::App& command, bool with_replay) {
  add_endpoint(command);
  dollars_option_ = add(command, "--dollars", dollars, "Most money for the language model, by the prices")
                        ->check(number_within(0, 1e9))
                        ->capture_default_str();
  add(command, "--tokens", tokens, "Most tokens for the language model, read and written (default: no limit)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50));
  add(command, "--llm-context", context,
      "The model's context in tokens: of prompts that are longer, what matters least is left out (default: what the "
      "endpoint says when it refuses one)")
      ->check(CLI::Range(2000, 100'000'000));
  add(command, "--llm-parallel", parallel,
      "Answers that are asked for at once, each judged, unless a program is mended; each is paid for")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  if (with_replay)
    add(command, "--replay", replay,
        "Take the model's answers from an earlier run (its number, or a file of `trace RUN --save`) instead of "
        "the network")
        ->type_name("FILE");
}

Status LlmFlags::check(Session& session, const std::string& author) {
  auto given = [](const CLI::Option* option) { return option->count() > 0; };
  if (author == "builtin") {
    auto found = std::find_if(options_.begin(), options_.end(), given);
    if (found == options_.end()) return {};
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`{}` has no meaning for the author `{}`", (*found)->get_name(), author),
                      "add `--author llm`");
  }
  if (!replay.empty()) return {};
  if (chat.endpoint.url.empty() || chat.settings.model.empty())
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`--author {}` needs `--llm-url` and `--llm-model`", author),
                      "for example `--llm-url http://localhost:8000/v1 --llm-model NAME`");
  TRY(complete(session));
  if (given(dollars_option_) && !chat.prices.known())
    session.progress(
        fmt::format("warning: `--dollars` limits nothing without `--price-in` and `--price-out`, or prices of `{}` in "
                    "a file (`--prices`)",
                    chat.settings.model));
  return {};
}

Result<std::optional<agent::Recording>> LlmFlags::recording(const Session& session) const {
  if (replay.empty()) return std::optional<agent::Recording>();
  int64_t run = 0;
  const auto [end, problem] = std::from_chars(replay.data(), replay.data() + replay.size(), run);
  if (problem == std::errc() && end == replay.data() + replay.size()) {
    auto store = TRY(agent::RunStore::open(session.store_file()));
    if (auto found = TRY(agent::load_recording(*store, run))) return found;
    return make_error(session.no_run(run));
  }
  std::string text, why;
  if (!read_file(replay, text, &why))
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`--replay`: cannot read `{}`: {}", replay, why),
                      "give the number of a run, or a file that `tilepilot trace RUN --save FILE` wrote");
  return std::optional(TRY(agent::recording_in(text, replay)));
}

Status LlmFlags::complete(Session& session) {
  std::string& key = session.environment.api_key;  // `bench` hands it on
  if (!key_file_.empty()) key = TRY(agent::key_in(key_file_));
  // A line break would end the header that carries the key, or start another one.
  if (std::any_of(key.begin(), key.end(), [](unsigned char letter) { return letter < ' ' || letter == 0x7f; }))
    return make_error(DiagnosticKind::bad_usage, {},
                      "`TILEPILOT_API_KEY` holds a line break or another control character",
                      "give the key alone, on one line");
  chat.endpoint.key = key;
  chat.settings.stream = !no_stream_;
  TRY(agent::parse_endpoint_url(chat.endpoint.url));
  const std::filesystem::path file = prices_.empty() ? session.environment.prices : std::filesystem::path(prices_);
  std::error_code error;
  if (prices_.empty() && (file.empty() || !std::filesystem::exists(file, error))) return {};
  auto known = TRY(agent::prices_in(file, chat.settings.model));
  const agent::Prices given = chat.prices;
  if (known) chat.prices = *known;
  if (price_in_->count() > 0) chat.prices.input = given.input;
  if (price_out_->count() > 0) chat.prices.output = given.output;
  return {};
}

}  // namespace tilepilot::cli
