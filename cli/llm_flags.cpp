#include "cli/llm_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/help.h"

namespace tilepilot::cli {

void LlmFlags::add_to(CLI::App& command, bool with_replay) {
  auto add = [&](const char* name, auto& value, const char* help) {
    CLI::Option* option = command.add_option(name, value, help)->group("Language model");
    options_.push_back(option);
    return option;
  };
  add("--llm-url", chat.url,
      "Base URL of an OpenAI-form chat endpoint, up to and including /v1; the key comes from TILEPILOT_API_KEY");
  add("--llm-model", chat.settings.model, "Model name at that endpoint");
  add("--llm-temperature", chat.settings.temperature, "Sampling temperature (default: the endpoint's)");
  add("--llm-max-tokens", chat.settings.max_output_tokens, "Longest answer, in tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add("--price-in", chat.dollars_per_million_input, "Dollars a million input tokens, for the budget")
      ->check(number_within(0, 1e9))
      ->capture_default_str();
  add("--price-out", chat.dollars_per_million_output, "Dollars a million output tokens, for the budget")
      ->check(number_within(0, 1e9))
      ->capture_default_str();
  dollars_option_ = add("--dollars", dollars, "Most money for the language model, by the prices above")
                        ->check(number_within(0, 1e9))
                        ->capture_default_str();
  if (with_replay) add("--replay", replay, "Take the model's answers from this earlier run instead of the network");
}

Status LlmFlags::check(const Session& session, const std::string& author) const {
  auto given = [](const CLI::Option* option) { return option->count() > 0; };
  if (author != "llm") {
    auto found = std::find_if(options_.begin(), options_.end(), given);
    if (found == options_.end()) return {};
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`{}` has no meaning for the author `{}`", (*found)->get_name(), author),
                      "add `--author llm`");
  }
  if (replay) return {};
  // A line break would end the header that carries the key, or start another one.
  const std::string& key = session.environment.api_key;
  if (std::any_of(key.begin(), key.end(), [](unsigned char letter) { return letter < ' ' || letter == 0x7f; }))
    return make_error(DiagnosticKind::bad_usage, {},
                      "`TILEPILOT_API_KEY` holds a line break or another control character",
                      "give the key alone, on one line");
  if (chat.url.empty() || chat.settings.model.empty())
    return make_error(DiagnosticKind::bad_usage, {}, "`--author llm` needs `--llm-url` and `--llm-model`",
                      "for example `--llm-url http://localhost:8000/v1 --llm-model NAME`");
  const bool priced = chat.dollars_per_million_input > 0 || chat.dollars_per_million_output > 0;
  if (given(dollars_option_) && !priced)
    session.progress("warning: `--dollars` limits nothing without `--price-in` and `--price-out`");
  return {};
}

}  // namespace tilepilot::cli
