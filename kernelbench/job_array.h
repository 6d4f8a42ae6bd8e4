// A batch as an array of Slurm's jobs: each task works on its share of the problems, in a database of its own, and the
// databases are merged (kernelbench/merge.h). Nothing is shared but a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernelbench/batch.h"

namespace tilepilot::kernelbench {

struct JobArray {
  std::filesystem::path folder;        // absolute: script, databases, what tasks print
  std::filesystem::path program;       // tilepilot
  std::vector<std::string> arguments;  // of every task's `bench run`, without share, store and minutes
  int tasks = 1;
  std::string sbatch;  // what the cluster wants, as options of `sbatch`
  double minutes = 0;  // of each `bench run`; 0: no limit
  int requeues = 20;   // how often a task whose time is up goes back into the queue by itself
};

// What `sbatch` runs. It is a script of bash, and says the same however often it is submitted.
std::string job_script(const JobArray& array);
std::filesystem::path script_of(const std::filesystem::path& folder);
// Tasks count from 1.
std::filesystem::path store_of_task(const std::filesystem::path& folder, int task);

// "1,3,5-8", of numbers in order.
std::string as_ranges(const std::vector<int>& numbers);
// For a shell, as one word.
std::string quoted_for_shell(const std::string& word);

// The words of an option's text, as a shell would split it. Errors: `bad_usage`, a quote without an end.
Result<std::vector<std::string>> split_words(const std::string& text);
// That these options of `sbatch` leave to us what is ours. Errors: `bad_usage`.
Status check_sbatch_options(const std::string& text);
// The time limit in them, in minutes; 0: none is given. Errors: `bad_usage`, a time that `sbatch` would not read.
Result<double> time_limit_in(const std::string& text);
// What of a job's time limit is for `bench run`: the rest is for what comes before and after it.
double minutes_within(double time_limit);

// How far a task has come, by its database.
struct TaskProgress {
  int total = 0, done = 0, verified = 0;
  bool begun = false;  // it has a database with a batch
  bool complete() const { return begun && done == total; }
};
// `digest`: of the whole problem set, which has `problems` problems. Errors: those of the store; `bad_usage`, the
// database is of another problem set.
Result<TaskProgress> progress_of_task(const std::filesystem::path& folder, Share share, const std::string& digest,
                                      int problems);

}  // namespace tilepilot::kernelbench
