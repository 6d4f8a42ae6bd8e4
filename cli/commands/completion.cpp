// tilepilot completion SHELL: the script by which a shell completes command lines.
#include <memory>

#include "cli/command.h"
#include "cli/manual/completion_script.h"

namespace tilepilot::cli {
namespace {

int run_completion(Session& session, const CLI::App& app, const std::string& shell) {
  if (auto status = session.refuse_unused("completion", {"--seed", "--dtype", "--threads"}); !status)
    return session.fail(status.error());
  const CommandRow program = command_table(app);
  std::string script = shell == "bash"  ? bash_completion(program)
                       : shell == "zsh" ? zsh_completion(program)
                                        : fish_completion(program);
  return session.finish_text(std::move(script));
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  auto shell = std::make_shared<std::string>();
  auto* command = app.add_subcommand("completion", "Print the script by which a shell completes command lines");
  command->add_option("shell", *shell, "The shell")->check(CLI::IsMember({"bash", "zsh", "fish"}))->required();
  command->footer(
      "In bash and zsh (after compinit) for this session: source <(tilepilot completion bash). To keep it:\n"
      "  tilepilot completion bash > ~/.local/share/bash-completion/completions/tilepilot\n"
      "  tilepilot completion zsh > FOLDER/_tilepilot      # FOLDER is one of $fpath\n"
      "  tilepilot completion fish > ~/.config/fish/completions/tilepilot.fish");
  command->callback([&app, &session, shell] {
    session.run = [&app, &session, shell] { return run_completion(session, app, *shell); };
  });
}

}  // namespace tilepilot::cli
