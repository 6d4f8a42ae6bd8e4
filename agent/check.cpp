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

// Programs that work in 16 bit are mostly written for models and data of float32, which they convert themselves.
Result<eval::Verdict> check_on_own_data(SourceMap& sources, const CheckOptions& options,
                                        const eval::CheckRequest& request, const WorkFolder& work) {
  ExporterOptions exporter = options.exporter;
  eval::JudgeOptions judge_options = options.judge;
  judge_options.precision = std::exchange(judge_options.dtype, "model");
  exporter.dtype = judge_options.dtype;
  TRY(export_reference(sources, options.model, work.path() / "own_reference", exporter));
  return TRY(eval::open_judge(work.path() / "own_reference", judge_options))->check(request);
}

}  // namespace

Result<eval::Verdict> check(SourceMap& sources, const CheckOptions& options) {
  eval::CheckRequest request{.source = {}, .name = options.candidate.string(), .time = options.time};
  if (!read_file(options.candidate, request.source))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", options.candidate.string()),
                      "give the path of a Python file with `class ModelNew`");
  WorkFolder work = TRY(WorkFolder::make(options.work));
  TRY(export_reference(sources, options.model, work.path() / "reference", options.exporter));
  auto judge = TRY(eval::open_judge(work.path() / "reference", options.judge));
  eval::Verdict verdict = judge->check(request);
  const bool sixteen_bit = options.judge.dtype == "fp16" || options.judge.dtype == "bf16";
  if (!sixteen_bit || !may_be_due_to_data(verdict.outcome)) return verdict;
  judge.reset();
  auto own = check_on_own_data(sources, options, request, work);
  if (!own || own->outcome != eval::Outcome::verified) return verdict;
  own->notes.insert(own->notes.begin(),
                    fmt::format("judged on the model's own data, with the tolerance of {}: on {} data it is `{}`, {}",
                                options.judge.dtype, options.judge.dtype, to_string(verdict.outcome), verdict.detail));
  return own;
}

}  // namespace tilepilot::agent
