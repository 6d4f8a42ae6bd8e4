#include "cli/manual/help.h"

#include <fmt/format.h>

#include "cli/flags/script_arguments.h"
#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot::cli {
namespace {

constexpr const char* kCommonGroup = "Options of every command";

void add_to_footer(CLI::App& command, const std::string& text) {
  const std::string own = command.get_footer();
  command.footer(own.empty() ? text : own + "\n" + text);
  for (CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) add_to_footer(*below, text);
}

}  // namespace

std::string version_text(const Environment& environment) {
  std::string text = fmt::format("tilepilot {}", kVersion);
  return environment.commit.empty() ? text : text + fmt::format(" (commit {})", environment.commit.substr(0, 12));
}

void add_common_help(CLI::App& app) {
  std::vector<const CLI::Option*> common;
  for (const CLI::Option* option : const_cast<const CLI::App&>(app).get_options())
    if (option != app.get_help_ptr() && option != app.get_version_ptr()) common.push_back(option);
  CLI::Formatter formatter;
  const std::string text = formatter.make_group(kCommonGroup, false, common);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) add_to_footer(*command, text);
}

std::string own_footer(const CLI::App& command) {
  std::string footer = command.get_footer();
  footer.resize(std::min(footer.size(), footer.find(kCommonGroup)));
  while (footer.ends_with('\n')) footer.pop_back();
  return footer;
}

std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string_view> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.substr(0, 1) == "-") {
      if (takes_the_next(app, argv[i])) ++i;
      continue;
    }
    if (std::find(names.begin(), names.end(), word) != names.end()) return {};
    const std::string_view near = nearest_name(word, names);
    return fmt::format("there is no command `{}`{}", word,
                       near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
  }
  return {};
}

CLI::Validator number_within(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value);
        if (is_number && value >= least && value <= most) return {};  // false for NaN
        return fmt::format("{} is no number between {} and {}", text, least, most);
      },
      fmt::format("FLOAT in [{} - {}]", least, most));
}

}  // namespace tilepilot::cli
