#include "cli/flags/bench_flags.h"

#include <fmt/format.h>

#include "cli/flags/chosen_target.h"
#include "cli/manual/help.h"

namespace tilepilot::cli {

using namespace kernelbench;

namespace {

// Where the key and the prices are, which each `generate` is told too.
bool is_place(const std::string& name) { return name == "--llm-key-file" || name == "--prices"; }

// Options that decide results go to each `generate` as they were given, and into the batch's own.
bool decides_results(const CLI::Option& option) {
  const std::string group = option.get_group(), name = option.get_name();
  if (name == "--dollars" || name == "--problem-dollars") return false;  // told to each `generate` as they are left
  if (is_place(name)) return false;
  return group == "Judge" || group == "Language model" || name == "--attempts" || name == "--variants" ||
         name == "--scale" || name == "--exclude-near";
}

}  // namespace

Result<Settings> settings_of(const Session& session, const BenchFlags& flags) {
  Settings settings;
  auto add = [&](const std::string& name, const std::string& value) {
    settings.arguments.insert(settings.arguments.end(), {name, value});
    settings.options[name.substr(2)] = value;
  };
  const CommonOptions& common = session.common;
  add("--author", flags.author);
  add("--target", runtime::to_string(chosen_target(TRY(runtime::parse_target(common.target)))));
  add("--dtype", common.dtype);
  if (common.seed) add("--seed", std::to_string(*common.seed));
  if (common.threads > 0) add("--threads", std::to_string(common.threads));
  for (const CLI::Option* option : flags.command->get_options())
    if (option->count() > 0 && decides_results(*option)) {
      add(option->get_name(), option->results().front());
      if (option->get_expected_max() == 0) settings.arguments.pop_back();  // a flag has no value
    }
  if (!flags.levels.empty()) settings.options["levels"] = flags.levels;
  if (!flags.ids.empty()) settings.options["ids"] = flags.ids;
  settings.options["problem-minutes"] = flags.batch.each.minutes;
  settings.options["problem-dollars"] = flags.batch.each.dollars;
  // Where things are decides nothing.
  for (const CLI::Option* option : flags.command->get_options())
    if (option->count() > 0 && is_place(option->get_name()))
      settings.arguments.insert(settings.arguments.end(), {option->get_name(), option->results().front()});
  settings.arguments.insert(settings.arguments.end(),
                            {"--store", session.store_file().string(), "--python", session.python()});
  return settings;
}

Result<Selection> selection_of(const BenchFlags& flags) {
  Selection selection;
  if (!flags.levels.empty()) selection.levels = TRY(parse_ranges(flags.levels));
  if (!flags.ids.empty()) selection.ids = TRY(parse_ranges(flags.ids));
  return selection;
}

Status check_flags(Session& session, BenchFlags& flags) {
  if (flags.command->get_option("--author")->count() == 0 && flags.llm.endpoint_given()) flags.author = "mixed";
  TRY(flags.llm.check(session, flags.author));
  if (flags.author == "builtin" && flags.problem_dollars->count() > 0)
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`--problem-dollars` has no meaning for the author `{}`", flags.author),
                      "add `--author llm`");
  if (session.common.target.starts_with("emulate"))
    return make_error(DiagnosticKind::bad_usage, {},
                      "a batch looks for what is fastest, and the emulator tells no times",
                      "run it for `cpu` or a GPU");
  if (flags.output.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  if (!std::filesystem::is_directory(flags.output, error))
    return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("`{}` is no folder", flags.output),
                      "give `--output` a folder");
  return {};
}

void add_batch_options(CLI::App& command, Session& session, BenchFlags& flags) {
  flags.command = &command;
  command
      .add_option("--problems", flags.problems,
                  "A checkout of KernelBench, a folder of Python files in its form, or a JSON list")
      ->type_name("FILE")
      ->required();
  command.add_option("--levels", flags.levels, "Levels of the set, as `1,2` (default: all)");
  command.add_option("--ids", flags.ids, "Problems of each level, as `1-20,33` (default: all)");
  command
      .add_option(
          "--author", flags.author,
          "Who writes candidates: builtin plans from the op graph, llm asks a language model, mixed (the default "
          "with --llm-url) does the first, then the second")
      ->check(CLI::IsMember({"builtin", "llm", "mixed"}))
      ->capture_default_str();
  flags.jobs = command
                   .add_option("--jobs", flags.batch.jobs,
                               "Problems at a time (default: 1 on a processor, a quarter of the cores beside a GPU)")
                   ->check(CLI::Range(1, 256));
  command.add_option("--attempts", flags.attempts, "Most candidates to judge for a problem, without variants")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--variants", flags.variants,
                  "Most variants of each verified program that leaves numbers open (`generate --help`)")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command.add_option("--problem-minutes", flags.batch.each.minutes, "Longest time for a problem's candidates")
      ->check(number_within(0.001, 1e6))
      ->capture_default_str();
  flags.problem_dollars = command
                              .add_option("--problem-dollars", flags.batch.each.dollars,
                                          "Most money for a problem; `--dollars` is for the whole batch")
                              ->check(number_within(0, 1e9))
                              ->group("Language model")
                              ->capture_default_str();
  command.add_option("--minutes", flags.batch.minutes, "Longest time for this command (default: no limit)")
      ->check(number_within(0.001, 1e6));
  command.add_flag("--shuffle", flags.batch.shuffle,
                   "Problems in random order: what `--minutes` leaves undone is then a random sample");
  command
      .add_option("--output", flags.output,
                  "Folder for verified programs and their certificates (default: they stay in the database)")
      ->type_name("DIR");
  flags.judge.add_to(command);
  add_scale(command, session);
  add_exclude_near(command, flags.exclude_near);
  flags.llm.add_to(command, /*with_replay*/ false);
}

}  // namespace tilepilot::cli
