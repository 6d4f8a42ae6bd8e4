// tilepilot mcp: tools for coding agents, by the Model Context Protocol over standard input and output.
#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "agent/export_server.h"
#include "cli/command.h"
#include "cli/flags/llm_flags.h"
#include "cli/mcp/server.h"

namespace tilepilot::cli {
namespace {

struct McpFlags {
  const CLI::App* app = nullptr;
  const CLI::App* command = nullptr;
  LlmFlags llm;
};

// Options of this command that each `generate` with a language model gets as they were given.
std::vector<std::string> language_model_options(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_group() != "Language model") continue;
    const bool is_flag = option->get_expected_max() == 0;
    words.push_back(is_flag ? option->get_name() : option->get_name() + "=" + option->results().front());
  }
  return words;
}

mcp::Setup setup_of(const Session& session, const McpFlags& flags) {
  mcp::Setup setup;
  setup.app = flags.app;
  setup.program = session.environment.program;
  setup.work_folder = session.work_folder();
  setup.version = kVersion;
  setup.given = {"--python=" + session.python()};
  if (!session.store_file().empty()) setup.given.push_back("--store=" + session.store_file().string());
  for (const char* name : {"--target", "--dtype", "--seed", "--threads"}) {
    const CLI::Option* option = flags.app->get_option(name);
    if (option->count() > 0) setup.defaults[name] = option->results().front();
  }
  setup.language_model = language_model_options(*flags.command);
  setup.api_key = session.environment.api_key;
  return setup;
}

int run_mcp(Session& session, McpFlags& flags) {
  if (auto target = session.target(); !target) return session.fail(target.error());
  const std::string author = language_model_options(*flags.command).empty() ? "builtin" : "mixed";
  if (auto status = flags.llm.check(session, author); !status) return session.fail(status.error());
  // Nothing but messages may reach the client: whatever else is printed goes to standard error.
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (out < 0 || in < 0)
    return session.fail({DiagnosticKind::bad_usage, {}, "standard input or output is closed", {}, "connect a client"});
  dup2(STDERR_FILENO, STDOUT_FILENO);
  agent::ExportServer exports(session.python(), session.exporter_options().script);
  mcp::Setup setup = setup_of(session, flags);
  setup.exports = &exports;
  mcp::Server(setup, in, out).serve();
  return kDone;
}

}  // namespace

void add_mcp(CLI::App& app, Session& session) {
  auto flags = std::make_shared<McpFlags>();
  auto* command =
      app.add_subcommand("mcp", "Serve coding agents: tools by the Model Context Protocol (docs/agents.md)");
  flags->app = &app;
  flags->command = command;
  flags->llm.add_to(*command, /*with_replay*/ false);
  command->footer(
      "A client starts it, writes messages to its standard input and reads answers from its standard output.\n"
      "Example of a client's configuration:\n"
      "  {\"mcpServers\": {\"tilepilot\": {\"command\": \"/path/to/tilepilot\", \"args\": [\"mcp\"]}}}");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_mcp(session, *flags); }; });
}

}  // namespace tilepilot::cli
