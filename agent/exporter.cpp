#include "agent/exporter.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/model_line.h"
#include "compiler/runtime/process.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

// The last JSON object on the script's standard output; the model itself may have printed before it.
json last_object(const std::string& output) {
  size_t start = output.rfind("\n{");
  return json::parse(start == std::string::npos ? output : output.substr(start + 1), nullptr, /*exceptions*/ false);
}

// The last lines of a text.
std::string tail(std::string_view text, int lines) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  size_t begin = text.size();
  while (lines-- > 0 && begin != std::string_view::npos) begin = begin == 0 ? begin - 1 : text.rfind('\n', begin - 1);
  return std::string(text.substr(begin == std::string_view::npos ? 0 : begin + 1));
}

// What the script says went wrong, as a diagnostic in the user's file.
Error export_failure(const SourceMap& sources, int32_t file, const json& report) {
  std::string kind = report.value("error", "");
  if (kind == "cannot_write") {
    return make_error(DiagnosticKind::output_unwritable, {}, report.value("message", ""),
                      "is the disk full, or the folder not yours?");
  }
  bool ours = kind == "no_torch" || kind == "missing_package";
  Error error = make_error(ours ? DiagnosticKind::not_installed : DiagnosticKind::model_invalid,
                           model_line(sources.text(file), file, std::max(1, report.value("line", 0))),
                           report.value("message", ""), report.value("hint", ""));
  return error;
}

}  // namespace

Result<eval::Reference> export_reference(SourceMap& sources, const std::filesystem::path& model,
                                         const std::filesystem::path& folder, const ExporterOptions& options) {
  std::string text;
  if (!read_file(model, text))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", model.string()),
                      "give the path of a Python file with `class Model`, `get_inputs` and `get_init_inputs`");
  int32_t file = sources.add(model.string(), std::move(text));
  auto ran = TRY(runtime::run_process({options.python, options.script.string(), model.string(), folder.string(),
                                       "--seed", std::to_string(options.seed), "--dtype", options.dtype},
                                      {.time_limit_s = options.time_limit_s, .working_directory = {}}));
  if (ran.timed_out)
    return make_error(DiagnosticKind::model_invalid, model_line(sources.text(file), file, 1),
                      fmt::format("exporting the model took longer than {:.0f} s", options.time_limit_s),
                      "does `get_inputs` or `Model.__init__` loop forever?");
  json report = last_object(ran.out);
  if (report.is_object() && report.contains("ok") && !report["ok"].get<bool>())
    return export_failure(sources, file, report);
  if (ran.exit_code != 0 || !report.is_object()) {
    Error error =
        make_error(DiagnosticKind::model_invalid, model_line(sources.text(file), file, 1),
                   ran.signal != 0 ? fmt::format("Python died of signal {} while exporting the model", ran.signal)
                                   : fmt::format("the exporter ended with code {}", ran.exit_code));
    error->note({}, "its last words: " + tail(ran.err, 5));
    return error;
  }
  return eval::load_reference(folder);
}

}  // namespace tilepilot::agent
