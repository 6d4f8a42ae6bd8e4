// Commands, options and arguments as plain data, read from the parser that runs them: what the scripts of shells that
// complete command lines and the manual page are written from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tilepilot::cli {

enum class Expects { nothing, text, choice, file, folder };  // of an option; nothing: it is a flag

struct OptionRow {
  std::vector<std::string> flags;  // "-o", "--output"; of an argument that is found by its place its name alone
  Expects expects = Expects::nothing;
  std::string type;                  // "INT in [1 - 1000]"; empty of a flag
  std::vector<std::string> choices;  // of Expects::choice
  std::string usual;                 // the value without it, if that can be said
  std::string help;
  std::string group;  // "Judge"
  bool required = false;
  bool repeats = false;
};

struct CommandRow {
  std::vector<std::string> words;  // {"corpus", "search"}; empty of the program itself
  std::string help;
  std::string footer;
  std::vector<OptionRow> options;  // the common ones stand at the program alone
  std::vector<OptionRow> arguments;
  std::vector<CommandRow> commands;
};

CommandRow command_table(const CLI::App& app);

// Those of the program that every command has, too.
std::vector<OptionRow> common_options(const CommandRow& program);

// What may be given for an option, by the parser's own words; empty: anything.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace tilepilot::cli
