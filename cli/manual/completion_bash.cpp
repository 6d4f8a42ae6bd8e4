// Bash knows words alone, so its script is tables of words in two functions, and one function that reads them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/manual/completion_script.h"

namespace tilepilot::cli {
namespace {

constexpr const char* kBashReader = R"(
# What there is for the option or argument of kind $1, of which $2 is written.
_tilepilot_reply() {
  case $1 in
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    text) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
  esac
}

_tilepilot() {
  local IFS=$' \t\n' words=() word previous= path= waiting= current name i place=0
  local commands options valued arguments kind
  COMPREPLY=()
  # Bash takes `=` and `:` for words of their own.
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if ((${#words[@]} > 1)) && [[ $word =~ ^[=:]+$ || $previous =~ ^[=:]+$ ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    previous=$word
  done
  _tilepilot_command ''
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ -n $waiting ]]; then
      waiting=
    elif [[ $word == --*=* ]]; then
      :
    elif [[ $word == -* ]]; then
      [[ " $valued " == *" $word "* ]] && waiting=$word
    elif [[ " $commands " == *" $word "* ]]; then
      path+=" $word"
      _tilepilot_command "$path"
    else
      place=$((place + 1))
    fi
  done
  current=${words[-1]}
  if [[ $path == ' run' ]] && ((place > 0)); then  # the script's own arguments
    _tilepilot_reply file "$current"
  elif [[ -n $waiting ]]; then
    _tilepilot_kind "$path" "$waiting"
    _tilepilot_reply "$kind" "$current"
  elif [[ $current == --*=* ]]; then
    name=${current%%=*}
    current=${current#*=}
    [[ " $valued " == *" $name "* ]] || return 0
    _tilepilot_kind "$path" "$name"
    _tilepilot_reply "$kind" "$current"
  elif [[ $current == -* ]]; then
    _tilepilot_reply "$options" "$current"
  elif [[ -n $commands ]]; then
    _tilepilot_reply "$commands" "$current"
  else
    arguments=($arguments)
    _tilepilot_kind "$path" "${arguments[place < ${#arguments[@]} ? place : ${#arguments[@]} - 1]-}"
    _tilepilot_reply "$kind" "$current"
  fi
  # What stands before the last colon is no part of the word that bash replaces.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
  fi
}

complete -F _tilepilot tilepilot
)";

std::string bash_path(const CommandRow& command) {
  std::string path;
  for (const std::string& word : command.words) path += " " + word;
  return path;
}

std::string kind_of(const OptionRow& row) {
  switch (row.expects) {
    case Expects::file:
      return "file";
    case Expects::folder:
      return "folder";
    case Expects::choice:
      return fmt::format("{}", fmt::join(row.choices, " "));
    case Expects::text:
    case Expects::nothing:
      return "text";
  }
  return "text";
}

void add_words(const CommandRow& command, const std::vector<OptionRow>& common, std::string& script) {
  std::vector<std::string> commands, options, valued, arguments;
  for (const CommandRow& below : command.commands) commands.push_back(below.words.back());
  auto add = [&](const OptionRow& row) {
    options.insert(options.end(), row.flags.begin(), row.flags.end());
    if (row.expects != Expects::nothing) valued.insert(valued.end(), row.flags.begin(), row.flags.end());
  };
  for (const OptionRow& row : command.options) add(row);
  for (const OptionRow& row : common) add(row);
  for (const OptionRow& row : command.arguments) arguments.push_back(row.flags.front());
  script +=
      fmt::format("    '{}')\n      commands='{}'\n      options='{}'\n      valued='{}'\n      arguments='{}' ;;\n",
                  bash_path(command), fmt::join(commands, " "), fmt::join(options, " "), fmt::join(valued, " "),
                  fmt::join(arguments, " "));
  if (command.words.empty()) return;
  for (const CommandRow& below : command.commands) add_words(below, common, script);
}

void add_kinds(const CommandRow& command, std::string& script) {
  for (const CommandRow& below : command.commands) add_kinds(below, script);
  // The program's own options are those of every command.
  const std::string path = command.words.empty() ? "*" : fmt::format("'{}'", bash_path(command));
  for (const auto* rows : {&command.options, &command.arguments})
    for (const OptionRow& row : *rows) {
      const std::string kind = kind_of(row);
      if (kind == "text") continue;
      for (const std::string& flag : row.flags) script += fmt::format("    {}' {}') kind='{}' ;;\n", path, flag, kind);
    }
}

}  // namespace

std::string bash_completion(const CommandRow& program) {
  std::string script =
      "# Completes command lines of tilepilot in bash: source it, or put it where bash-completion looks.\n\n"
      "# The words of the command whose path is $1.\n_tilepilot_command() {\n  case $1 in\n";
  add_words(program, {}, script);
  for (const CommandRow& command : program.commands) add_words(command, common_options(program), script);
  script +=
      "  esac\n}\n\n# What is expected of the option or argument $2 of the command whose path is $1.\n"
      "_tilepilot_kind() {\n  case \"$1 $2\" in\n";
  add_kinds(program, script);
  return script + "    *) kind=text ;;\n  esac\n}\n" + kBashReader;
}

}  // namespace tilepilot::cli
