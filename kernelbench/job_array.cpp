#include "kernelbench/job_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tilepilot::kernelbench {
namespace {

constexpr double kLeastMargin = 2;        // minutes of a job's time that are not for problems
constexpr double kMarginShare = 0.05;     // the same, of a long one
constexpr double kMostMarginShare = 0.5;  // of a short one

Error bad_option(std::string what, std::string hint = {}) {
  return make_error(DiagnosticKind::bad_usage, {}, std::move(what), std::move(hint));
}

std::optional<double> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "90", "90:00", "1:30:00", "1-12", "1-12:30", "1-12:30:00", in minutes.
std::optional<double> minutes_of(std::string_view text) {
  const size_t dash = text.find('-');
  std::vector<double> parts;
  for (size_t at = dash == std::string_view::npos ? 0 : dash + 1;;) {
    const size_t colon = text.find(':', at);
    const auto part = number(text.substr(at, colon == std::string_view::npos ? colon : colon - at));
    if (!part) return std::nullopt;
    parts.push_back(*part);
    if (colon == std::string_view::npos) break;
    at = colon + 1;
  }
  if (parts.size() > 3) return std::nullopt;
  if (dash != std::string_view::npos) {  // days-hours:minutes:seconds
    const auto days = number(text.substr(0, dash));
    if (!days) return std::nullopt;
    parts.resize(3, 0);
    return *days * 24 * 60 + parts[0] * 60 + parts[1] + parts[2] / 60;
  }
  if (parts.size() == 1) return parts[0];
  if (parts.size() == 2) return parts[0] + parts[1] / 60;
  return parts[0] * 60 + parts[1] + parts[2] / 60;
}

// What stands for one of these options: "--long=VALUE", "--long VALUE", "-sVALUE" or "-s VALUE". The last one counts.
std::optional<std::string> value_of(const std::vector<std::string>& words, const std::string& name,
                                    const std::string& letter) {
  std::optional<std::string> value;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool whole = word == name || word == letter;
    if (word.starts_with(name + "=")) {
      value = word.substr(name.size() + 1);
    } else if (whole) {
      value = i + 1 < words.size() ? words[i + 1] : "";
    } else if (word.starts_with(letter) && !word.starts_with("--")) {
      value = word.substr(letter.size());
    }
  }
  return value;
}

// A database that a killed task left half written wants to be rolled back first, and then written.
Result<std::optional<Batch>> newest_batch(const std::filesystem::path& file) {
  for (const bool read_only : {true, false}) {
    auto store = BatchStore::open(file, read_only);
    if (!store && !read_only) return std::move(store).take_error();
    if (!store) continue;
    auto batch = (*store)->load(0);
    if (batch || !read_only) return batch;
  }
  return std::optional<Batch>();
}

}  // namespace

std::string quoted_for_shell(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("-_./:,=@%+").find(static_cast<char>(letter)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::string as_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += text.empty() ? "" : ",";
    text +=
        end - begin == 1 ? fmt::format("{}", numbers[begin]) : fmt::format("{}-{}", numbers[begin], numbers[end - 1]);
  }
  return text;
}

Result<std::vector<std::string>> split_words(const std::string& text) {
  std::vector<std::string> words;
  bool within = false;
  char quote = 0;
  for (char letter : text) {
    if (quote != 0) {
      if (letter == quote) {
        quote = 0;
      } else {
        words.back() += letter;
      }
      continue;
    }
    if (letter == ' ' || letter == '\t') {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    if (letter == '"' || letter == '\'') {
      quote = letter;
    } else {
      words.back() += letter;
    }
  }
  if (quote != 0) return bad_option(fmt::format("`--sbatch`: a quote has no end in `{}`", text));
  return words;
}

Status check_sbatch_options(const std::string& text) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char letter) { return letter < ' ' && letter != '\t'; }))
    return bad_option("`--sbatch` holds a line break or another control character", "give all options in one line");
  const auto words = TRY(split_words(text));
  if (!words.empty() && !words.front().starts_with("-"))
    return bad_option(fmt::format("`--sbatch`: `{}` is no option", words.front()),
                      "for example `--sbatch \"--partition=gpu --gres=gpu:1 --time=2:00:00\"`");
  if (value_of(words, "--array", "-a"))
    return bad_option("`--sbatch` holds `--array`, which `bench submit` gives itself", "use `--tasks`");
  if (value_of(words, "--wrap", "--wrap"))
    return bad_option("`--sbatch` holds `--wrap`, but there is a script", "leave it out");
  TRY(time_limit_in(text));
  return {};
}

Result<double> time_limit_in(const std::string& text) {
  const auto value = value_of(TRY(split_words(text)), "--time", "-t");
  if (!value) return 0.0;
  std::string lower = *value;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (lower == "infinite" || lower == "unlimited") return 0.0;
  if (const auto minutes = minutes_of(*value)) return *minutes;  // 0 asks for no limit
  return bad_option(fmt::format("`--sbatch`: `{}` is no time", *value),
                    "Slurm reads `minutes`, `hours:minutes:seconds` and `days-hours:minutes`");
}

double minutes_within(double time_limit) {
  const double margin = std::max(kLeastMargin, kMarginShare * time_limit);
  return time_limit - std::min(margin, kMostMarginShare * time_limit);
}

std::filesystem::path script_of(const std::filesystem::path& folder) { return folder / "job.sh"; }

std::filesystem::path store_of_task(const std::filesystem::path& folder, int task) {
  return folder / fmt::format("task-{}.db", task);
}

std::string job_script(const JobArray& array) {
  const std::string folder = quoted_for_shell(array.folder.string());
  std::string command = quoted_for_shell(array.program.string()) + " bench run";
  for (const std::string& argument : array.arguments) command += " " + quoted_for_shell(argument);
  if (array.minutes > 0) command += fmt::format(" --minutes {:.4g}", array.minutes);
  std::string text =
      "#!/bin/bash\n"
      "#SBATCH --job-name=tilepilot\n";
  // In directives Slurm reads no shell's quotes but its own.
  text += fmt::format("#SBATCH --output=\"{}/logs/%A_%a.txt\"\n", array.folder.string());
  text +=
      "#SBATCH --open-mode=append\n"
      "#SBATCH --requeue\n";
  if (!array.sbatch.empty()) text += fmt::format("#SBATCH {}\n", array.sbatch);
  text += fmt::format(
      "# Written by `tilepilot bench submit`. Each task has a share of the problems and a database of its own, and "
      "goes\n"
      "# on where it was when it is started again.\n"
      "task=$SLURM_ARRAY_TASK_ID\n"
      "answer={0}/answers/$task.json\n"
      "{1} --shard \"$task/{2}\" --store {0}/task-\"$task\".db --json > \"$answer\"\n"
      "code=$?\n",
      folder, command, array.tasks);
  if (array.requeues > 0)
    text += fmt::format(
        "# The time is up and problems are left: the task goes back into the queue.\n"
        "if [ $code -eq 1 ] && grep -q '\"end\": \"time spent\"' \"$answer\" && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt "
        "{} ]; "
        "then\n"
        "  scontrol requeue \"${{SLURM_ARRAY_JOB_ID}}_$task\" && sleep 300  # Slurm ends it\n"
        "fi\n",
        array.requeues);
  return text + "exit $code\n";
}

Result<TaskProgress> progress_of_task(const std::filesystem::path& folder, Share share, const std::string& digest,
                                      int problems) {
  TaskProgress progress;
  for (int place = 0; place < problems; ++place) progress.total += share.has(static_cast<size_t>(place)) ? 1 : 0;
  const auto file = store_of_task(folder, share.index);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return progress;
  const auto batch = TRY(newest_batch(file));
  if (!batch) return progress;
  if (batch->header.digest != digest)
    return bad_option(fmt::format("`{}` is of another problem set, or its problems have changed", file.string()),
                      "give another `--folder`");
  progress.begun = true;
  for (size_t place = 0; place < batch->problems.size(); ++place) {
    const BatchProblem& each = batch->problems[place];
    if (!share.has(place) || each.state != State::done || each.outcome.ending == Ending::not_judged) continue;
    ++progress.done;
    progress.verified += each.outcome.ending == Ending::verified ? 1 : 0;
  }
  return progress;
}

}  // namespace tilepilot::kernelbench
