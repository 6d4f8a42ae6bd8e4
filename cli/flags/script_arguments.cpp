#include "cli/flags/script_arguments.h"

#include <string_view>

namespace tilepilot::cli {

bool takes_the_next(const CLI::App& app, const std::string& argument) {
  const CLI::Option* option = app.get_option_no_throw(argument);
  for (const CLI::App* run : app.get_subcommands([](const CLI::App* each) { return each->get_name() == "run"; }))
    if (option == nullptr) option = run->get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_min() > 0;
}

int count_own_arguments(const CLI::App& app, int argc, char** argv) {
  bool runs = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.substr(0, 1) == "-") {
      if (takes_the_next(app, argv[i])) ++i;
    } else if (runs) {
      return i + 1;
    } else if (argument != "run") {
      return argc;
    } else {
      runs = true;
    }
  }
  return argc;
}

std::vector<std::string> script_arguments(int own, int argc, char** argv) {
  if (own < argc && std::string_view(argv[own]) == "--") ++own;
  return {argv + own, argv + argc};
}

}  // namespace tilepilot::cli
