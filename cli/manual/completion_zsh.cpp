// Zsh's own function `_arguments` reads what options there are, one specification each; a command is a function.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/manual/completion_script.h"

namespace tilepilot::cli {
namespace {

// In a specification these end a part.
std::string zsh_escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char each : text) {
    if (special.find(each) != std::string_view::npos) result += '\\';
    result += each;
  }
  return result;
}

std::string zsh_quoted(std::string_view text) {
  std::string result = "'";
  for (const char each : text) result += each == '\'' ? "'\\''" : std::string(1, each);
  return result + "'";
}

// ":message:action" of a value.
std::string value_part(const OptionRow& row) {
  const std::string message = ":" + zsh_escaped(row.type, "\\:");
  switch (row.expects) {
    case Expects::file:
      return message + ":_files";
    case Expects::folder:
      return message + ":_files -/";
    case Expects::choice:
      return fmt::format("{}:({})", message, zsh_escaped(fmt::format("{}", fmt::join(row.choices, " ")), ":"));
    case Expects::text:
      return message + ": ";
    case Expects::nothing:
      return "";
  }
  return "";
}

void add_zsh_option(const OptionRow& row, std::string& script) {
  for (const std::string& flag : row.flags) {
    const bool is_long = flag.starts_with("--"), takes = row.expects != Expects::nothing;
    const std::string others = row.repeats ? "*" : fmt::format("({})", fmt::join(row.flags, " "));
    script += "    " +
              zsh_quoted(fmt::format("{}{}{}[{}]{}", others, flag,
                                     !takes    ? ""
                                     : is_long ? "="
                                               : "+",
                                     zsh_escaped(row.help, "\\[]"), value_part(row))) +
              "\n";
  }
}

std::string function_of(const CommandRow& command) {
  return fmt::format("_tilepilot{}{}", command.words.empty() ? "" : "_", fmt::join(command.words, "_"));
}

void add_zsh_command(const CommandRow& command, std::string& script) {
  for (const CommandRow& below : command.commands) add_zsh_command(below, script);
  script += function_of(command) + "() {\n  local context state state_descr line\n  local -a commands\n";
  script += "  typeset -A opt_args\n  _arguments -C \\\n    $_tilepilot_common \\\n";
  std::string own;
  if (!command.words.empty())  // the program's own are the common ones
    for (const OptionRow& row : command.options) add_zsh_option(row, own);
  for (const OptionRow& row : command.arguments)
    own += "    " + zsh_quoted((row.repeats ? "*" : "") + value_part(row)) + "\n";
  if (command.words == std::vector<std::string>{"run"}) own += "    '*:argument:_files'\n";
  if (!command.commands.empty()) own += "    ':command:->command'\n    '*::argument:->argument'\n";
  for (size_t at = own.find('\n'); at != std::string::npos; at = own.find('\n', at + 3)) own.replace(at, 1, " \\\n");
  script += own + "    && return\n";
  if (command.commands.empty()) {
    script += "}\n\n";
    return;
  }
  script += "  commands=(\n";
  for (const CommandRow& below : command.commands)
    script += "    " + zsh_quoted(below.words.back() + ":" + zsh_escaped(below.help, ":")) + "\n";
  script +=
      "  )\n  case $state in\n    command) _describe command commands ;;\n    argument)\n      case $line[1] in\n";
  for (const CommandRow& below : command.commands)
    script += fmt::format("        {}) {} ;;\n", below.words.back(), function_of(below));
  script += "      esac ;;\n  esac\n}\n\n";
}

}  // namespace

std::string zsh_completion(const CommandRow& program) {
  std::string script =
      "#compdef tilepilot\n# Completes command lines of tilepilot in zsh: source it after compinit, or put it as "
      "_tilepilot into a folder of $fpath.\n\ntypeset -ga _tilepilot_common\n_tilepilot_common=(\n";
  for (const OptionRow& row : program.options) add_zsh_option(row, script);
  script += ")\n\n";
  add_zsh_command(program, script);
  // Loaded by its name from $fpath, the file is the function itself.
  return script +
         "if [[ $funcstack[1] == _tilepilot ]]; then\n  _tilepilot \"$@\"\nelse\n  compdef _tilepilot tilepilot\nfi\n";
}

}  // namespace tilepilot::cli
