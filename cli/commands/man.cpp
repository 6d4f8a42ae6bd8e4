// tilepilot man: the manual page.
#include <ctime>

#include "cli/command.h"
#include "cli/manual/manual_page.h"

namespace tilepilot::cli {
namespace {

// The page says what this program has now.
std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = "";
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

int run_man(Session& session, const CLI::App& app) {
  if (auto status = session.refuse_unused("man", {"--seed", "--dtype", "--threads"}); !status)
    return session.fail(status.error());
  std::string page = manual_page(command_table(app), kVersion, today());
  return session.finish_text(std::move(page));
}

}  // namespace

void add_man(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("man", "Print the manual page");
  command->footer(
      "To read it, and to keep it:\n"
      "  tilepilot man | man -l -\n"
      "  tilepilot man > ~/.local/share/man/man1/tilepilot.1");
  command->callback([&app, &session] { session.run = [&app, &session] { return run_man(session, app); }; });
}

}  // namespace tilepilot::cli
