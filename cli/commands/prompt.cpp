// tilepilot prompt MODEL.py: what a language model would be asked at first.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "agent/generate/briefing.h"
#include "agent/llm/expected_cost.h"
#include "agent/work_folder.h"
#include "cli/command.h"
#include "cli/flags/chosen_target.h"
#include "cli/flags/judge_flags.h"
#include "cli/flags/llm_flags.h"
#include "retrieval/seeds.h"

namespace tilepilot::cli {
namespace {

struct PromptFlags {
  std::string model;
  JudgeFlags judge;
  LlmFlags llm;
};

struct Prompt {
  std::vector<agent::ChatMessage> messages;
  int left_out = 0;
  agent::ExpectedCost cost;  // of a run, by the prices given
  std::string request;       // JSON body; empty: no endpoint is named
};

// A judge of its own, which looks at nothing else.
Result<eval::EagerTimes> measure_eager(const std::filesystem::path& reference, eval::JudgeOptions options) {
  options.eager_only = true;
  const auto judge = TRY(eval::open_judge(reference, options));
  return judge->eager_times();
}

Result<Prompt> make_prompt(Session& session, PromptFlags& flags) {
  eval::JudgeOptions judge = TRY(session.judge_options());
  flags.judge.apply_to(judge);
  const std::string target = runtime::to_string(chosen_target(TRY(runtime::parse_target(judge.target))));
  auto corpus = TRY(retrieval::open_corpus(session.store_file()));
  auto lessons = TRY(retrieval::Lessons::open(session.store_file()));
  TRY(retrieval::sync_seeds(*corpus, session.environment.root / "seeds"));
  auto work = TRY(agent::WorkFolder::make(session.work_folder()));
  session.progress(fmt::format("exporting {}", flags.model));
  const auto folder = work.path() / "reference";
  const auto reference = TRY(agent::export_reference(session.sources, flags.model, folder, session.exporter_options()));
  const auto briefing = TRY(agent::brief(reference, agent::preflight_for(reference, target, judge), {*corpus, *lessons},
                                         {.target = target,
                                          .judge = judge,
                                          .context_tokens = flags.llm.context,
                                          .answer_tokens = flags.llm.chat.settings.max_output_tokens,
                                          .progress = [&](const std::string& line) { session.progress(line); },
                                          .measure_eager = [&] { return measure_eager(folder, judge); }}));
  Prompt prompt;
  prompt.messages = agent::first_messages(briefing.author, &prompt.left_out);
  if (prompt.left_out < 0)
    return make_error(DiagnosticKind::bad_usage, {}, "the task does not fit `--llm-context`", "give a longer one");
  const bool has_endpoint = !flags.llm.chat.endpoint.url.empty();
  if (has_endpoint) TRY(flags.llm.complete(session));
  auto runs = TRY(agent::RunStore::open(session.store_file()));
  prompt.cost = TRY(agent::expected_cost(*runs, flags.llm.chat.settings.model, agent::bytes_of(prompt.messages),
                                         agent::Budget().attempts, flags.llm.chat.prices));
  if (!has_endpoint) return prompt;
  const auto endpoint = TRY(agent::Endpoint::open(flags.llm.chat.endpoint, agent::curl_client()));
  prompt.request = endpoint.request(flags.llm.chat.settings, prompt.messages);
  return prompt;
}

int run_prompt(Session& session, PromptFlags& flags) {
  auto prompt = make_prompt(session, flags);
  if (!prompt) return session.fail(prompt.error());
  size_t bytes = 0;
  nlohmann::json object = {{"ok", true}, {"messages", nlohmann::json::array()}};
  for (const agent::ChatMessage& message : prompt->messages) {
    const bool is_system = message.role == agent::ChatMessage::Role::system;
    session.answer(fmt::format("<<< {} >>>\n\n{}", is_system ? "system" : "user", message.content));
    object["messages"].push_back({{"role", is_system ? "system" : "user"}, {"content", message.content}});
    bytes += message.content.size();
  }
  session.progress(fmt::format("{} bytes, about {} tokens; {} parts left out", bytes, agent::estimate_tokens(bytes),
                               prompt->left_out));
  session.progress("a run takes " + agent::to_text(prompt->cost));
  object.update({{"bytes", bytes}, {"tokens", agent::estimate_tokens(bytes)}, {"left_out", prompt->left_out}});
  object["expected"] = {{"requests", prompt->cost.requests},
                        {"tokens", prompt->cost.tokens()},
                        {"dollars", prompt->cost.dollars},
                        {"runs", prompt->cost.runs}};
  object["versions"] = agent::prompt_versions();
  if (!prompt->request.empty()) object["request"] = nlohmann::json::parse(prompt->request);
  session.finish(object);
  return kDone;
}

}  // namespace

void add_prompt(CLI::App& app, Session& session) {
  auto flags = std::make_shared<PromptFlags>();
  auto* command = app.add_subcommand("prompt", "Print what a language model would be asked at first for a model");
  command->add_option("model", flags->model, "Python file with class Model, get_inputs() and get_init_inputs()")
      ->type_name("FILE")
      ->required();
  flags->judge.add_to(*command);
  add_scale(*command, session);
  flags->llm.add_to(*command, /*with_replay*/ false);
  command->footer("Example:\n  tilepilot prompt examples/rms_norm.py");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_prompt(session, *flags); }; });
}

}  // namespace tilepilot::cli
