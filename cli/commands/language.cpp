// tilepilot language [CONSTRUCT]: what the compiler's tables say of the tile language.
#include "agent/llm/language_card.h"

#include <memory>

#include "cli/command.h"
#include "cli/flags/chosen_target.h"

namespace tilepilot::cli {
namespace {

int run_language(Session& session, const std::string& construct) {
  const auto target = runtime::parse_target(session.common.target);
  if (!target) return session.fail(target.error());
  if (auto status = session.refuse_unused("language", {"--seed", "--dtype", "--threads"}); !status)
    return session.fail(status.error());
  const bool on_gpu = chosen_target(*target).place != runtime::Place::cpu;
  std::string text = construct.empty() ? agent::language_card(on_gpu) : agent::language_entry(construct);
  return session.finish_text(std::move(text));
}

}  // namespace

void add_language(CLI::App& app, Session& session) {
  auto construct = std::make_shared<std::string>();
  auto* command = app.add_subcommand("language", "What there is in the tile language, from the compiler's tables");
  command->add_option("construct", *construct, "A name, as T.gemm (default: the whole card for the target)");
  command->footer("Example:\n  tilepilot language T.gemm");
  command->callback(
      [&session, construct] { session.run = [&session, construct] { return run_language(session, *construct); }; });
}

}  // namespace tilepilot::cli
