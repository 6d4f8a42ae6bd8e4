#include "agent/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/work_folder.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {

namespace {

// What a program may come to only because its data are of another type than it expects.
bool may_be_due_to_data(eval::Outcome outcome) {
  using eval::Outcome;
  constexpr Outcome kOutcomes[] = {Outcome::runtime_error, Outcome::wrong_values, Outcome::wrong_dtype,
                                   Outcome::wrong_strides, Outcome::not_finite,   Outcome::weights_mismatch,
                                   Outcome::mutated_input, Outcome::rejected};  // `.half()` of 16-bit data is no copy
  return std::find(std::begin(kOutcomes), std::end(kOutcomes), outcome) != std::end(kOutcomes);
}

// Exports the model, starts a judge and asks it.
Status judge(SourceMap& sources, const CheckOptions& options, const std::filesystem::path& folder, Certified& checked) {
  options.progress(fmt::format("exporting {}", options.model.string()));
  const auto reference = TRY(export_reference(sources, options.model, folder, checked.exporter));
  checked.model_source = reference.model_source;
  checked.torch_version = reference.torch_version;
  options.progress("starting the judge");
  auto judge = TRY(eval::open_judge(folder, checked.judge));
  TRY(check_protocol(checked.judge, judge->target()));
  options.progress(fmt::format("judging {} on {}", options.candidate.string(), judge->target()));
  checked.verdict = judge->check({.source = checked.source,
                                  .name = options.candidate.string(),
                                  .time = options.time,
                                  .profile = options.profile ? eval::Profiling::full : eval::Profiling::none});
  checked.reference = hash_reference(folder);
  return {};
}

// Programs that work in 16 bit are mostly written for models and data of float32, which they convert themselves.
Result<Certified> check_on_own_data(SourceMap& sources, const CheckOptions& options, const WorkFolder& work,
                                    Certified checked) {
  checked.judge.precision = std::exchange(checked.judge.dtype, "model");
  checked.exporter.dtype = checked.judge.dtype;
  TRY(judge(sources, options, work.path() / "own_reference", checked));
  return checked;
}

}  // namespace

Status check_protocol(const eval::JudgeOptions& options, std::string_view target) {
  if (!options.kernelbench_timing || target == "auto" || target.starts_with("cuda")) return {};
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("`--protocol kernelbench` times calls on a GPU, and the target is `{}`", target),
                    "KernelBench has no timing for processors: leave `--protocol` out, or give `--target` a GPU");
}

Result<Certified> check(SourceMap& sources, const CheckOptions& options) {
  Certified checked;
  checked.program = options.candidate;
  checked.model = options.model;
  checked.exporter = options.exporter;
  checked.judge = options.judge;
  TRY(check_protocol(options.judge, options.judge.target));
  std::string why;
  if (!read_file(options.candidate, checked.source, &why))
    return make_error(DiagnosticKind::file_not_found, {},
                      fmt::format("cannot read `{}`: {}", options.candidate.string(), why),
                      "give the path of a Python file with `class ModelNew`");
  WorkFolder work = TRY(WorkFolder::make(options.work));
  TRY(judge(sources, options, work.path() / "reference", checked));
  const eval::Verdict& verdict = checked.verdict;
  const bool sixteen_bit = options.judge.dtype == "fp16" || options.judge.dtype == "bf16";
  if (!sixteen_bit || !may_be_due_to_data(verdict.outcome)) return checked;
  options.progress(fmt::format("judging once more on the model's own data: {}", to_string(verdict.outcome)));
  auto own = check_on_own_data(sources, options, work, checked);
  if (!own || own->verdict.outcome != eval::Outcome::verified) return checked;
  own->verdict.notes.insert(
      own->verdict.notes.begin(),
      fmt::format("judged on the model's own data, with the tolerance of {}: on {} data it is `{}`, {}",
                  options.judge.dtype, options.judge.dtype, to_string(verdict.outcome), verdict.detail));
  return own;
}

}  // namespace tilepilot::agent
