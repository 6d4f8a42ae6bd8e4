// tilepilot bench submit|status: a batch as an array of Slurm's jobs, and how far it is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "cli/flags/bench_flags.h"
#include "compiler/runtime/process.h"
#include "compiler/source/file.h"
#include "kernelbench/job_array.h"

namespace tilepilot::cli {
namespace {

using namespace kernelbench;
using nlohmann::json;
namespace fs = std::filesystem;

struct SubmitFlags {
  BenchFlags bench;
  std::string folder, sbatch;
  int tasks = 8;
  int requeues = 20;
  bool dry_run = false;
};

constexpr double kSchedulerSeconds = 60;  // for an answer of Slurm's commands

// Options of `bench submit` that are none of `bench run`, or that are told to tasks in another way.
bool is_for_submit_alone(const std::string& name) {
  for (const char* own : {"--folder", "--sbatch", "--tasks", "--requeues", "--dry-run", "--problems", "--output",
                          "--minutes", "--dollars", "--help"})
    if (name == own) return true;
  return false;
}

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

// What every task's `bench run` is given: the options as they were, paths from wherever it runs, and its part of the
// money.
std::vector<std::string> arguments_of_tasks(const Session& session, const SubmitFlags& flags) {
  std::vector<std::string> arguments = {"--problems", absolute(flags.bench.problems)};
  auto add = [&](const std::string& name, const std::string& value) {
    arguments.insert(arguments.end(), {name, value});
  };
  for (const CLI::Option* option : flags.bench.command->get_options())
    if (option->count() > 0 && !is_for_submit_alone(option->get_name())) {
      const bool is_flag = option->get_items_expected_max() == 0;
      if (is_flag) arguments.push_back(option->get_name());
      if (!is_flag) add(option->get_name(), option->results().front());
    }
  if (!flags.bench.output.empty()) add("--output", absolute(flags.bench.output));
  if (flags.bench.llm.dollars_given()) add("--dollars", fmt::format("{}", flags.bench.llm.dollars / flags.tasks));
  const CommonOptions& common = session.common;
  if (common.target != "auto") add("--target", common.target);
  if (common.dtype != "model") add("--dtype", common.dtype);
  if (common.seed) add("--seed", std::to_string(*common.seed));
  if (common.threads > 0) add("--threads", std::to_string(common.threads));
  if (!common.python.empty())
    add("--python", common.python.find('/') == std::string::npos ? common.python : absolute(common.python));
  return arguments;
}

// What a folder says of the batch in it.
struct Plan {
  std::string digest;
  int problems = 0, tasks = 0;
  std::vector<std::string> arguments, jobs;  // jobs: Slurm's numbers, the last one is the newest
};

fs::path plan_file(const fs::path& folder) { return folder / "batch.json"; }

Status write_plan(const fs::path& folder, const Plan& plan) {
  const json object = {{"digest", plan.digest},
                       {"problems", plan.problems},
                       {"tasks", plan.tasks},
                       {"arguments", plan.arguments},
                       {"jobs", plan.jobs}};
  std::string why;
  if (write_file(plan_file(folder), object.dump(1) + "\n", &why)) return {};
  return make_error(DiagnosticKind::output_unwritable, {},
                    fmt::format("cannot write `{}`: {}", plan_file(folder).string(), why));
}

// Nullopt: there is none yet. Errors: what stands there is none.
Result<std::optional<Plan>> read_plan(const fs::path& folder) {
  std::string text;
  if (!read_file(plan_file(folder), text)) return std::optional<Plan>();
  try {
    const json object = json::parse(text);
    Plan plan{object.at("digest"), object.at("problems"), object.at("tasks"), object.at("arguments"),
              object.at("jobs")};
    if (plan.tasks >= 1 && plan.problems >= plan.tasks) return std::optional(std::move(plan));
  } catch (const json::exception&) {  // told below
  }
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("`{}` is not what `bench submit` writes", plan_file(folder).string()),
                    "give another `--folder`");
}

// The folder's batch is the one that is asked for.
Status check_same(const fs::path& folder, const Plan& there, const Plan& wanted) {
  std::string differs;
  if (there.digest != wanted.digest) differs = "other problems, or these have changed";
  if (there.arguments != wanted.arguments) differs = fmt::format("other options: {}", fmt::join(there.arguments, " "));
  if (there.tasks != wanted.tasks) differs = fmt::format("`--tasks {}`", there.tasks);
  if (differs.empty()) return {};
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("the batch in `{}` was submitted with {}", folder.string(), differs),
                    "repeat its command, or give another `--folder`");
}

Result<std::vector<TaskProgress>> progress_of(const fs::path& folder, const Plan& plan) {
  std::vector<TaskProgress> tasks;
  for (int task = 1; task <= plan.tasks; ++task)
    tasks.push_back(TRY(progress_of_task(folder, {task, plan.tasks}, plan.digest, plan.problems)));
  return tasks;
}

std::string merge_command(const fs::path& folder) {
  const std::string quoted = quoted_for_shell(folder.string());
  return fmt::format("tilepilot bench merge {0}/task-*.db --store {0}/all.db", quoted);
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Status check_sbatch() {
  auto ran = runtime::run_process({"sbatch", "--version"}, {.time_limit_s = kSchedulerSeconds});
  if (ran && ran->exit_code == 0) return {};
  const std::string why = ran ? trimmed(ran->err) : "it is not on PATH";
  return make_error(DiagnosticKind::not_installed, {},
                    fmt::format("`sbatch` does not run here, so nothing is submitted: {}", why),
                    "use a machine of a cluster that does; `--dry-run` shows what would be submitted");
}

// The job's number.
Result<std::string> submit(const std::vector<std::string>& command) {
  auto ran = TRY(runtime::run_process(command, {.time_limit_s = kSchedulerSeconds}));
  if (ran.exit_code == 0) {
    const std::string answer = trimmed(ran.out);  // "12", or "12;cluster"
    return answer.substr(0, answer.find(';'));
  }
  const std::string said = trimmed(ran.err);
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("`sbatch` refused the job: {}", said.empty() ? runtime::ending_of(ran) : said),
                    "what it says is about `--sbatch`, or about the cluster; nothing was submitted");
}

Status make_folders(const JobArray& array) {
  std::error_code error;
  for (const char* name : {"logs", "answers"}) fs::create_directories(array.folder / name, error);
  std::string why;
  if (!error && write_file(script_of(array.folder), job_script(array), &why)) return {};
  return make_error(DiagnosticKind::output_unwritable, {},
                    fmt::format("cannot write to `{}`: {}", array.folder.string(), error ? error.message() : why),
                    "give another `--folder`");
}

// `sbatch` reads the folder's name in a directive, where some characters mean something else.
Status check_folder(const fs::path& folder) {
  const std::string name = folder.string();
  if (name.find_first_of("%\"'\\\n\r") == std::string::npos) return {};
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("`{}` holds a character that Slurm reads as something else", name),
                    "give a `--folder` without quotes, backslashes and `%`");
}

struct Prepared {
  JobArray array;
  Plan plan;
  std::optional<Plan> there;  // submitted before
};

Result<Prepared> prepare(Session& session, SubmitFlags& flags) {
  TRY(check_sbatch_options(flags.sbatch));
  TRY(check_flags(session, flags.bench));
  const ProblemSet set = TRY(find_problems(flags.bench.problems, TRY(selection_of(flags.bench))));
  const auto problems = static_cast<int>(set.problems.size());
  if (flags.tasks > problems) {
    session.progress(fmt::format("{} tasks, one for each problem", problems));
    flags.tasks = problems;
  }
  Prepared prepared;
  Plan& plan = prepared.plan;
  plan = {set.digest(), problems, flags.tasks, arguments_of_tasks(session, flags), {}};
  JobArray& array = prepared.array;
  array.folder = absolute(flags.folder.empty() ? "tilepilot-batch-" + plan.digest.substr(0, 8) : flags.folder);
  TRY(check_folder(array.folder));
  array.program = session.environment.program;
  array.arguments = plan.arguments;
  array.tasks = flags.tasks;
  array.sbatch = flags.sbatch;
  array.requeues = flags.requeues;
  const double limit = TRY(time_limit_in(flags.sbatch)), asked = flags.bench.batch.minutes;
  array.minutes = limit > 0 ? minutes_within(limit) : 0;
  if (asked > 0) array.minutes = limit > 0 ? std::min(array.minutes, asked) : asked;
  prepared.there = TRY(read_plan(array.folder));
  if (prepared.there) {
    TRY(check_same(array.folder, *prepared.there, plan));
    plan.jobs = prepared.there->jobs;
  }
  return prepared;
}

Status tell_dry_run(Session& session, const JobArray& array, const std::vector<std::string>& command) {
  session.answer(fmt::format("# {}\n{}# submitted by: {}", script_of(array.folder).string(), job_script(array),
                             fmt::join(command, " ")));
  session.finish({{"ok", true},
                  {"submitted", false},
                  {"folder", array.folder.string()},
                  {"script", job_script(array)},
                  {"command", command}});
  return {};
}

Status submit_what_is_left(Session& session, SubmitFlags& flags) {
  Prepared prepared = TRY(prepare(session, flags));
  const JobArray& array = prepared.array;
  const auto tasks = TRY(progress_of(array.folder, prepared.plan));
  std::vector<int> left;
  int done = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    done += tasks[i].done;
    if (!tasks[i].complete()) left.push_back(static_cast<int>(i) + 1);
  }
  const std::vector<std::string> command = {"sbatch", "--parsable", "--array=" + as_ranges(left),
                                            script_of(array.folder).string()};
  if (flags.dry_run && !left.empty()) return tell_dry_run(session, array, command);
  if (left.empty()) {
    session.answer(
        fmt::format("all {} problems are done; `{}` joins the databases", done, merge_command(array.folder)));
    session.finish({{"ok", true}, {"submitted", false}, {"folder", array.folder.string()}, {"tasks_left", left}});
    return {};
  }
  TRY(check_sbatch());
  TRY(make_folders(array));
  TRY(write_plan(array.folder, prepared.plan));
  const std::string job = TRY(submit(command));
  prepared.plan.jobs.push_back(job);
  TRY(write_plan(array.folder, prepared.plan));
  session.answer(
      fmt::format("job {}: {} tasks for {} problems{}, in {}\n`tilepilot bench status {}` tells how far they are", job,
                  left.size(), prepared.plan.problems, done > 0 ? fmt::format(", of which {} are done", done) : "",
                  array.folder.string(), quoted_for_shell(array.folder.string())));
  session.finish(
      {{"ok", true}, {"submitted", true}, {"job", job}, {"folder", array.folder.string()}, {"tasks_left", left}});
  return {};
}

int run_submit(Session& session, SubmitFlags& flags) {
  const Status status = submit_what_is_left(session, flags);
  return status ? static_cast<int>(kDone) : session.fail(status.error());
}

// What Slurm says of tasks that wait or run, by their numbers; empty where it says nothing.
std::map<int, std::string> states_in_queue(const Plan& plan) {
  std::map<int, std::string> states;
  if (plan.jobs.empty()) return states;
  for (const std::string& job : plan.jobs) {  // one by one: a job that is forgotten makes an error of all
    auto ran = runtime::run_process({"squeue", "--noheader", "--array", "--format=%K|%T|%R", "--jobs=" + job},
                                    {.time_limit_s = kSchedulerSeconds});
    if (!ran || ran->exit_code != 0) continue;
    std::istringstream lines(ran->out);
    for (std::string line; std::getline(lines, line);) {
      const size_t first = line.find('|'), second = line.find('|', first + 1);
      if (first == std::string::npos || second == std::string::npos) continue;
      std::string state = line.substr(first + 1, second - first - 1);
      std::transform(state.begin(), state.end(), state.begin(),
                     [](unsigned char letter) { return std::tolower(letter); });
      const std::string where = line.substr(second + 1);
      states[std::atoi(line.c_str())] = state + (where.empty() || where == "(None)" ? "" : " " + where);
    }
  }
  return states;
}

Status tell_status(Session& session, const std::string& given) {
  const fs::path folder = absolute(given);
  const auto plan = TRY(read_plan(folder));
  if (!plan)
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`bench submit` has written nothing to `{}`", given),
                      "give the folder that it told");
  const auto tasks = TRY(progress_of(folder, *plan));
  auto states = states_in_queue(*plan);
  json object = {{"ok", true}, {"folder", folder.string()}, {"jobs", plan->jobs}, {"tasks", json::array()}};
  TaskProgress all{0, 0, 0, true};
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    const TaskProgress& task = tasks[i];
    all.total += task.total;
    all.done += task.done;
    all.verified += task.verified;
    const std::string state = states.count(number) != 0 ? states[number]
                              : task.complete()         ? "done"
                                                        : "not in the queue";
    session.answer(fmt::format("task {:>4}: {:>3} of {:>3} done, {:>3} verified  {}", number, task.done, task.total,
                               task.verified, state));
    object["tasks"].push_back({{"task", number},
                               {"done", task.done},
                               {"total", task.total},
                               {"verified", task.verified},
                               {"state", state},
                               {"store", store_of_task(folder, number).string()}});
  }
  object.update({{"done", all.done}, {"total", all.total}, {"verified", all.verified}});
  session.answer(fmt::format("{} of {} problems done, {} verified; jobs {}", all.done, all.total, all.verified,
                             plan->jobs.empty() ? "none" : fmt::format("{}", fmt::join(plan->jobs, ", "))));
  if (!all.complete() && states.empty()) session.answer("the same `bench submit` submits what is left");
  session.answer(fmt::format("`{}` joins the databases", merge_command(folder)));
  session.finish(object);
  return {};
}

int run_status(Session& session, const std::string& folder) {
  const Status status = tell_status(session, folder);
  return status ? static_cast<int>(kDone) : session.fail(status.error());
}

}  // namespace

void add_bench_submit(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<SubmitFlags>();
  auto* command = bench.add_subcommand(
      "submit", "Run a batch as an array of Slurm's jobs; the same command goes on with what is missing");
  add_batch_options(*command, session, flags->bench);
  const std::string group = "Slurm";
  command
      ->add_option("--folder", flags->folder,
                   "Where script, databases and what tasks print go; all machines must see it (default: a folder here, "
                   "named by the problems)")
      ->type_name("DIR")
      ->group(group);
  command->add_option("--tasks", flags->tasks, "Jobs that the problems are shared out to")
      ->check(CLI::Range(1, 100000))
      ->group(group)
      ->capture_default_str();
  command
      ->add_option(
          "--sbatch", flags->sbatch,
          "Options for `sbatch`, as \"--partition=gpu --gres=gpu:1 --time=2:00:00\". A task ends before `--time` "
          "is up and goes on later")
      ->group(group);
  command
      ->add_option("--requeues", flags->requeues,
                   "How often a task whose time is up goes back into the queue by itself")
      ->check(CLI::Range(0, 10000))
      ->group(group)
      ->capture_default_str();
  command->add_flag("--dry-run", flags->dry_run, "Print the script, and submit nothing")->group(group);
  command->footer(
      "Example:\n  tilepilot bench submit --problems KernelBench --folder batch --tasks 16 --sbatch \"--partition=gpu "
      "--gres=gpu:1 --time=2:00:00\"");
  command->callback([&session, flags] { session.run = [&session, flags] { return run_submit(session, *flags); }; });
  auto folder = std::make_shared<std::string>();
  auto* status = bench.add_subcommand("status", "How far a batch is that `bench submit` has submitted");
  status->add_option("folder", *folder, "The folder that `bench submit` told")->type_name("DIR")->required();
  status->callback([&session, folder] { session.run = [&session, folder] { return run_status(session, *folder); }; });
}

}  // namespace tilepilot::cli
