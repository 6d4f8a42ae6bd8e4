#include "agent/check.h"

#include <fmt/format.h>

#include "agent/work_folder.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {

Result<eval::Verdict> check(SourceMap& sources, const CheckOptions& options) {
  eval::CheckRequest request{.source = {}, .name = options.candidate.string(), .time = options.time};
  if (!read_file(options.candidate, request.source))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", options.candidate.string()),
                      "give the path of a Python file with `class ModelNew`");
  WorkFolder work = TRY(WorkFolder::make(options.work));
  TRY(export_reference(sources, options.model, work.path() / "reference", options.exporter));
  auto judge = TRY(eval::open_judge(work.path() / "reference", options.judge));
  return judge->check(request);
}

}  // namespace tilepilot::agent
