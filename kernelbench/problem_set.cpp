#include "kernelbench/problem_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/runtime/sha256.h"
#include "compiler/source/file.h"

namespace tilepilot::kernelbench {
namespace {

namespace fs = std::filesystem;
using Ranges = std::vector<std::pair<int, int>>;

Error bad_set(std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::bad_usage, {}, std::move(message), std::move(hint));
}

bool is_among(const Ranges& ranges, int number) {
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [number](const auto& range) {
           return range.first <= number && number <= range.second;
         });
}

// The number that a text begins with, and where it ends; nullopt: none.
std::optional<int> leading_number(std::string_view text, std::string_view* rest = nullptr) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || number < 0 || parsed.ptr == text.data()) return std::nullopt;
  if (rest != nullptr) *rest = text.substr(static_cast<size_t>(parsed.ptr - text.data()));
  return number;
}

// "level3": 3.
std::optional<int> level_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  constexpr std::string_view kPrefix = "level";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::string_view rest;
  const auto level = leading_number(std::string_view(name).substr(kPrefix.size()), &rest);
  return level && rest.empty() ? level : std::nullopt;
}

std::vector<fs::path> listing(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error))
    paths.push_back(item->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

Status add_files(const fs::path& folder, int level, std::vector<Problem>& problems) {
  std::vector<Problem> found;
  bool numbered = false;
  for (const fs::path& path : listing(folder)) {
    const std::string name = path.stem().string();
    // What editors and systems leave beside files has names that begin with a point.
    if (path.extension() != ".py" || name.starts_with("__") || name.starts_with(".")) continue;
    const auto number = leading_number(name);
    numbered |= number.has_value();
    found.push_back({level, number.value_or(-1), name, path, {}});
  }
  if (!numbered) {
    for (size_t i = 0; i < found.size(); ++i) found[i].id = static_cast<int>(i) + 1;
  }
  for (Problem& problem : found) {
    if (problem.id < 0)
      return bad_set(fmt::format("`{}` has no number, as other files of its folder have", problem.file.string()),
                     "give it a name like `7_name.py`, or move it away");
    std::string why;
    if (!read_file(problem.file, problem.source, &why))
      return bad_set(fmt::format("cannot read `{}`: {}", problem.file.string(), why));
    problems.push_back(std::move(problem));
  }
  return {};
}

Status add_entry(const nlohmann::json& entry, size_t index, const fs::path& list, std::vector<Problem>& problems) {
  auto broken = [&](std::string_view what) {
    return bad_set(fmt::format("entry {} of `{}` {}", index + 1, list.string(), what),
                   "an entry is an object with `code`, and perhaps `level`, `problem_id` and `name`");
  };
  if (!entry.is_object()) return broken("is no object");
  Problem problem;
  try {
    problem.level = entry.value("level", 0);
    problem.id = entry.value("problem_id", static_cast<int>(index) + 1);
    problem.name = entry.value("name", fmt::format("problem_{}", problem.id));
    problem.source = entry.value("code", "");
    if (entry.contains("path")) problem.file = list.parent_path() / entry.at("path").get<std::string>();
  } catch (const nlohmann::json::exception&) { return broken("has a value of another type"); }
  std::string why;
  if (!problem.file.empty() && !read_file(problem.file, problem.source, &why))
    return bad_set(fmt::format("cannot read `{}`: {}", problem.file.string(), why));
  if (problem.source.empty()) return broken("has no `code`");
  problems.push_back(std::move(problem));
  return {};
}

Result<std::vector<Problem>> read_list(const fs::path& list) {
  std::string text, why;
  if (!read_file(list, text, &why)) return bad_set(fmt::format("cannot read `{}`: {}", list.string(), why));
  const auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions*/ false);
  if (!parsed.is_array())
    return bad_set(fmt::format("`{}` is no JSON list of problems", list.string()),
                   "give a folder of Python files, or a list of objects with `code`");
  std::vector<Problem> problems;
  for (size_t i = 0; i < parsed.size(); ++i) TRY(add_entry(parsed[i], i, list, problems));
  return problems;
}

Result<std::vector<Problem>> read_folder(const fs::path& root) {
  std::vector<Problem> problems;
  // A checkout of KernelBench has the levels one folder further down.
  for (const fs::path& parent : {root, root / "KernelBench"}) {
    for (const fs::path& path : listing(parent))
      if (const auto level = level_of(path); level && fs::is_directory(path)) TRY(add_files(path, *level, problems));
    if (!problems.empty()) return problems;
  }
  TRY(add_files(root, level_of(root).value_or(0), problems));
  return problems;
}

Status check_unique(const std::vector<Problem>& problems) {
  for (size_t i = 1; i < problems.size(); ++i)
    if (problems[i].level == problems[i - 1].level && problems[i].id == problems[i - 1].id)
      return bad_set(
          fmt::format("{} is there twice: `{}` and `{}`", problems[i].label(), problems[i - 1].name, problems[i].name),
          "ids are unique in a level: rename one");
  return {};
}

// Each number that is asked for exists: a typing error must not make a smaller set.
Status check_asked(const Ranges& asked, const std::set<int>& there, std::string_view what) {
  for (const auto& [first, last] : asked) {
    if (there.count(first) != 0 && there.count(last) != 0) continue;
    const int missing = there.count(first) == 0 ? first : last;
    return bad_set(fmt::format("there is no {} {}", what, missing),
                   fmt::format("there are {} to {}", *there.begin(), *there.rbegin()));
  }
  return {};
}

Result<std::vector<Problem>> select(std::vector<Problem> problems, const Selection& selection) {
  std::set<int> levels, ids;
  for (const Problem& problem : problems) {
    levels.insert(problem.level);
    if (is_among(selection.levels, problem.level)) ids.insert(problem.id);
  }
  TRY(check_asked(selection.levels, levels, "level"));
  TRY(check_asked(selection.ids, ids, "problem"));
  std::erase_if(problems, [&](const Problem& problem) {
    return !is_among(selection.levels, problem.level) || !is_among(selection.ids, problem.id);
  });
  return problems;
}

}  // namespace

std::string label_of(int level, int id) {
  return level == 0 ? fmt::format("#{}", id) : fmt::format("level {} #{}", level, id);
}

std::string ProblemSet::digest() const {
  runtime::Sha256 sha;
  for (const Problem& problem : problems)
    sha.add_field(std::to_string(problem.level)).add_field(std::to_string(problem.id)).add_field(problem.source);
  return sha.hex();
}

Result<std::vector<std::pair<int, int>>> parse_ranges(std::string_view text) {
  Ranges ranges;
  for (std::string_view rest = text;;) {
    const auto first = leading_number(rest, &rest);
    auto last = first;
    if (first && rest.starts_with('-')) last = leading_number(rest.substr(1), &rest);
    const bool ends = rest.empty();
    if (!first || !last || *last < *first || (!ends && !rest.starts_with(',')))
      return bad_set(fmt::format("`{}` is no list of numbers", text), "numbers and ranges look like `1-20,33`");
    ranges.emplace_back(*first, *last);
    if (ends) return ranges;
    rest.remove_prefix(1);
  }
}

Result<ProblemSet> find_problems(const fs::path& root, const Selection& selection) {
  std::error_code error;
  ProblemSet set;
  set.root = fs::absolute(root, error).lexically_normal();
  if (!fs::exists(set.root, error))
    return bad_set(fmt::format("there is nothing at `{}`", root.string()),
                   "give a checkout of KernelBench, a folder of Python files or a JSON list");
  const bool is_folder = fs::is_directory(set.root, error);
  set.problems = is_folder ? TRY(read_folder(set.root)) : TRY(read_list(set.root));
  if (set.problems.empty())
    return bad_set(fmt::format("there are no problems in `{}`", root.string()),
                   "a problem is a Python file with `class Model`, `get_inputs()` and `get_init_inputs()`");
  std::sort(set.problems.begin(), set.problems.end(),
            [](const Problem& a, const Problem& b) { return std::pair(a.level, a.id) < std::pair(b.level, b.id); });
  TRY(check_unique(set.problems));
  set.problems = TRY(select(std::move(set.problems), selection));
  if (set.problems.empty()) return bad_set("no problem has such a level and id");
  return set;
}

}  // namespace tilepilot::kernelbench
