#include "agent/exporter.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/generate/model_line.h"
#include "compiler/runtime/process.h"
#include "compiler/source/file.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

constexpr size_t kMaxText = 8192;  // of what the model's own code may have written

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
  if (kind == "too_large")
    return make_error(DiagnosticKind::out_of_memory, {}, report.value("message", ""), report.value("hint", ""));
  if (kind == "bad_scale")
    return make_error(DiagnosticKind::bad_usage, {}, report.value("message", ""), report.value("hint", ""));
  bool ours = kind == "no_torch" || kind == "missing_package";
  Error error =
      make_error(ours ? DiagnosticKind::not_installed : DiagnosticKind::model_invalid,
                 model_line(sources.text(file), file, std::max(1, report.value("line", 0))),
                 printable(report.value("message", ""), kMaxText), printable(report.value("hint", ""), kMaxText));
  return error;
}

// A number that Python got from a tensor is another one for other inputs, but the graph replays operators alone.
Status refuse_numbers_of_tensors(const SourceMap& sources, int32_t file, const eval::Graph& graph) {
  for (const eval::GraphNode& node : graph.nodes)
    if (node.op == "aten::item" || node.op == "aten::_local_scalar_dense")
      return make_error(
          DiagnosticKind::model_invalid, model_line(sources.text(file), file, std::max(1, node.line)),
          "`forward` makes a Python number of a tensor (`.item()`, `float(...)`), which its graph cannot follow",
          "keep it a tensor: operators take tensors of one element as they take numbers");
  return {};
}

bool runs_scripts(const std::string& python) {
  const auto ran =
      runtime::run_process({python, "-c", "print('ready')"}, {.time_limit_s = 60, .working_directory = {}});
  return ran.ok() && ran->exit_code == 0 && ran->out == "ready\n";
}

}  // namespace

Result<eval::Reference> export_reference(SourceMap& sources, const std::filesystem::path& model,
                                         const std::filesystem::path& folder, const ExporterOptions& options) {
  std::string text, why;
  std::error_code ignored;
  // The exporter reads it once more, which a pipe does not allow.
  if (std::filesystem::is_fifo(model, ignored)) why = "it is a pipe";
  if (!why.empty() || !read_file(model, text, &why))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`: {}", model.string(), why),
                      "give the path of a Python file with `class Model`, `get_inputs` and `get_init_inputs`");
  int32_t file = sources.add(model.string(), std::move(text));
  std::vector<std::string> command = {options.python};
  // What it imports itself is little, and nothing that a user has installed.
  if (!options.server.empty())
    command.insert(command.end(),
                   {"-I", "-S", (options.script.parent_path() / "export_client.py").string(), options.server});
  command.insert(command.end(), {options.script.string(), model.string(), folder.string(), "--seed",
                                 std::to_string(options.seed), "--dtype", options.dtype});
  if (!options.scale.empty()) command.insert(command.end(), {"--scale", options.scale});
  if (options.graph_only) command.push_back("--graph-only");
  auto ran = TRY(runtime::run_process(command, {.time_limit_s = options.time_limit_s, .working_directory = {}}));
  if (ran.timed_out)
    return make_error(DiagnosticKind::model_invalid, model_line(sources.text(file), file, 1),
                      fmt::format("exporting the model took longer than {:.0f} s", options.time_limit_s),
                      "does the file, `get_inputs` or `Model.__init__` loop forever?");
  json report = last_object(ran.out);
  if (report.is_object() && report.contains("ok") && !report["ok"].get<bool>())
    return export_failure(sources, file, report);
  if (ran.exit_code != 0 || !report.is_object()) {
    // The exporter tells every fault of the model. Without an answer, Python itself is at fault, or it was killed, or
    // the model has ended it.
    Error error =
        ran.signal != 0 ? make_error(DiagnosticKind::model_invalid, {},
                                     fmt::format("exporting the model failed: {}", runtime::ending_of(ran)))
        : runs_scripts(options.python)
            ? make_error(DiagnosticKind::model_invalid, model_line(sources.text(file), file, 1),
                         fmt::format("the model ended the process that exports it, with code {}", ran.exit_code),
                         "does its code call `os._exit`, or a library that does?")
            : make_error(
                  DiagnosticKind::not_installed, {},
                  fmt::format("`{}` ended with code {} and did not run the exporter", options.python, ran.exit_code),
                  "give `--python` an interpreter with PyTorch");
    error->note({}, "its last words: " + printable(tail(ran.err, 5), kMaxText));
    return error;
  }
  auto reference = TRY(eval::load_reference(folder));
  TRY(refuse_numbers_of_tensors(sources, file, reference.forward));
  return reference;
}

}  // namespace tilepilot::agent
