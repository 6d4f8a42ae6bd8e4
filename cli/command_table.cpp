#include "cli/command_table.h"

#include "cli/manual/help.h"

namespace tilepilot::cli {
namespace {

Expects expectation(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return Expects::nothing;
  if (!choices_of(option).empty()) return Expects::choice;
  const std::string type = option.get_type_name();
  if (type.starts_with("FILE")) return Expects::file;
  return type.starts_with("DIR") || type.ends_with(":DIR") ? Expects::folder : Expects::text;
}

// "INT:INT in [1 - 16]" names the type twice.
std::string type_text(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  if (colon == std::string::npos) return type;
  const std::string rest = type.substr(colon + 1);
  return rest.find(" in [") != std::string::npos ? rest : type.substr(0, colon);
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.flags.push_back("--" + name);
  if (row.flags.empty()) row.flags.push_back(option.get_name());
  row.expects = expectation(option);
  if (row.expects != Expects::nothing) {
    row.type = type_text(option);
    row.usual = option.get_default_str();
  }
  row.choices = choices_of(option);
  row.help = option.get_description();
  row.group = option.get_group();
  row.required = option.get_required();
  row.repeats = option.get_expected_max() > 1;
  return row;
}

CommandRow row_of(const CLI::App& command, std::vector<std::string> words) {
  CommandRow row;
  row.help = command.get_description();
  row.footer = own_footer(command);
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    auto& rows = option->get_positional() ? row.arguments : row.options;
    rows.push_back(row_of(*option));
  }
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> longer = words;
    longer.push_back(below->get_name());
    row.commands.push_back(row_of(*below, std::move(longer)));
  }
  row.words = std::move(words);
  return row;
}

}  // namespace

CommandRow command_table(const CLI::App& app) { return row_of(app, {}); }

std::vector<OptionRow> common_options(const CommandRow& program) {
  std::vector<OptionRow> common;
  for (const OptionRow& row : program.options)
    if (row.flags.back() != "--help" && row.flags.back() != "--version") common.push_back(row);
  return common;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  const size_t begin = text.find(":{"), end = text.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(text.substr(begin + 2, end - begin - 2), ',');
}

}  // namespace tilepilot::cli
