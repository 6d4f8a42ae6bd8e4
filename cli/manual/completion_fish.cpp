// Fish takes one line for each thing that may stand on a command line; a condition says at which command.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "cli/manual/completion_script.h"

namespace tilepilot::cli {
namespace {

constexpr const char* kFishReader = R"(
# Whether the command line so far is that of the command $argv, such as "corpus search".
function __tilepilot_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    set -l waiting no
    for word in $words
        if test $waiting = yes
            set waiting no
        else if string match -q -- '-*' $word
            contains -- $word $__tilepilot_valued; and set waiting yes
        else if contains -- (string join ' ' $path $word) $__tilepilot_commands
            set path $path $word
        end
    end
    test "$path" = "$argv"
end

)";

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char each : text) {
    if (each == '\'' || each == '\\') result += '\\';
    result += each;
  }
  return result + "'";
}

std::string values_part(const OptionRow& row) {
  switch (row.expects) {
    case Expects::file:
      return " -r -F";
    case Expects::folder:
      return " -x -a '(__fish_complete_directories)'";
    case Expects::choice:
      return " -x -a " + fish_quoted(fmt::format("{}", fmt::join(row.choices, " ")));
    case Expects::text:
      return " -x";
    case Expects::nothing:
      return "";
  }
  return "";
}

std::string option_line(const OptionRow& row, const std::string& condition) {
  std::string line = "complete -c tilepilot" + condition;
  for (const std::string& flag : row.flags)
    line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  return line + values_part(row) + " -d " + fish_quoted(row.help) + "\n";
}

void collect(const CommandRow& command, std::vector<std::string>& paths, std::set<std::string>& valued) {
  if (!command.words.empty()) paths.push_back(fish_quoted(fmt::format("{}", fmt::join(command.words, " "))));
  for (const OptionRow& row : command.options)
    if (row.expects != Expects::nothing) valued.insert(row.flags.begin(), row.flags.end());
  for (const CommandRow& below : command.commands) collect(below, paths, valued);
}

void add_fish_command(const CommandRow& command, std::string& script) {
  const std::string at =
      fmt::format(" -n {}", fish_quoted(fmt::format("__tilepilot_at {}", fmt::join(command.words, " "))));
  for (const CommandRow& below : command.commands)
    script += fmt::format("complete -c tilepilot{} -a {} -d {}\n", at, below.words.back(), fish_quoted(below.help));
  for (const OptionRow& row : command.options) script += option_line(row, command.words.empty() ? "" : at);
  for (const OptionRow& row : command.arguments) {
    if (row.expects == Expects::file) script += "complete -c tilepilot" + at + " -F\n";
    if (row.expects == Expects::folder || row.expects == Expects::choice)
      script += "complete -c tilepilot" + at + values_part(row) + "\n";
  }
  for (const CommandRow& below : command.commands) add_fish_command(below, script);
}

}  // namespace

std::string fish_completion(const CommandRow& program) {
  std::vector<std::string> paths;
  std::set<std::string> valued;
  collect(program, paths, valued);
  std::string script =
      "# Completes command lines of tilepilot in fish: source it, or put it into "
      "~/.config/fish/completions/tilepilot.fish.\n\n";
  script += fmt::format("set -g __tilepilot_commands {}\nset -g __tilepilot_valued {}\n", fmt::join(paths, " "),
                        fmt::join(valued, " "));
  script += kFishReader;
  script += "complete -c tilepilot -f\n";
  add_fish_command(program, script);
  return script;
}

}  // namespace tilepilot::cli
