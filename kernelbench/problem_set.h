// The problems of a batch run: files in KernelBench's form. A set is a checkout of KernelBench (or any folder with
// `level1`, `level2`, ... in it), one of its levels, a folder of such files, or a JSON list.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::kernelbench {

// "level 1 #23"; "#23" of a set without levels.
std::string label_of(int level, int id);

struct Problem {
  int level = 0;  // 0: the set has no levels
  int id = 0;     // unique in its level
  std::string name;
  std::filesystem::path file;  // empty: the problem is a JSON list's entry, and has no file
  std::string source;          // the model's text
  std::string label() const { return label_of(level, id); }
};

// Ranges include both ends; empty lists ask for all.
struct Selection {
  std::vector<std::pair<int, int>> levels, ids;
};

// "1-20,33". Errors: `bad_usage`, for what is no such list.
Result<std::vector<std::pair<int, int>>> parse_ranges(std::string_view text);

struct ProblemSet {
  std::filesystem::path root;     // as given, absolute
  std::vector<Problem> problems;  // by level and id
  std::string digest() const;     // SHA-256 of levels, ids and texts
};

// The problems of `root` that are asked for.
//
// Files of a folder take their id from the number that their name begins with ("23_Softmax.py"). If no file there has
// one, they are numbered by name, from 1. An entry of a JSON list has `code` (or `path`, beside the list), and may have
// `level`, `problem_id` and `name`.
//
// Errors, of kind `bad_usage`: no such file or folder, no problem in it, two problems of one id, levels or ids that are
// not there, a list of another form.
Result<ProblemSet> find_problems(const std::filesystem::path& root, const Selection& selection);

}  // namespace tilepilot::kernelbench
