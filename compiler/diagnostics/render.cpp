#include "compiler/diagnostics/render.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/diagnostics/excerpt.h"

namespace tilepilot {
namespace {

struct Palette {
  std::string_view bold, error, warning, note, gutter, reset;
};
constexpr Palette kPlain{};
constexpr Palette kColored{"\x1b[1m", "\x1b[1;31m", "\x1b[1;35m", "\x1b[1;36m", "\x1b[34m", "\x1b[0m"};

std::string_view name_of(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

std::string location(const SourceMap& sources, Span span) {
  if (!span.valid()) return {};
  Position at = sources.position(span.file, span.begin);
  return fmt::format("{}:{}:{}: ", sources.name(span.file), at.line, at.column);
}

std::string quoted(const SourceMap& sources, Span span, const Palette& colors, std::string_view caret) {
  if (!span.valid()) return {};
  return excerpt(sources, span, {colors.gutter, caret, colors.reset});
}

void put_position(nlohmann::ordered_json& object, const SourceMap& sources, Span span) {
  if (!span.valid()) return;
  Position begin = sources.position(span.file, span.begin);
  Position end = sources.position(span.file, span.end);
  object["file"] = sources.name(span.file);
  object["line"] = begin.line;
  object["column"] = begin.column;
  object["end_line"] = end.line;
  object["end_column"] = end.column;
}

nlohmann::ordered_json to_json(const SourceMap& sources, const Diagnostic& diagnostic) {
  nlohmann::ordered_json object;
  object["kind"] = info(diagnostic.kind).name;
  object["severity"] = name_of(diagnostic.severity());
  object["message"] = diagnostic.message;
  put_position(object, sources, diagnostic.span);
  object["notes"] = nlohmann::ordered_json::array();
  for (const Note& note : diagnostic.notes) {
    nlohmann::ordered_json item;
    item["message"] = note.message;
    put_position(item, sources, note.span);
    object["notes"].push_back(std::move(item));
  }
  object["hint"] = diagnostic.hint;
  return object;
}

// Messages may quote bytes of a broken file; JSON must stay valid.
std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string render(const SourceMap& sources, const Diagnostic& diagnostic, const RenderOptions& options) {
  const Palette& colors = options.color ? kColored : kPlain;
  std::string_view severity_color = diagnostic.severity() == Severity::error ? colors.error : colors.warning;
  std::string result = fmt::format("{}{}{}{}{}: {}{}{} [{}]\n", colors.bold, location(sources, diagnostic.span),
                                   severity_color, name_of(diagnostic.severity()), colors.reset, colors.bold,
                                   diagnostic.message, colors.reset, info(diagnostic.kind).name);
  result += quoted(sources, diagnostic.span, colors, severity_color);
  for (const Note& note : diagnostic.notes) {
    std::string_view text = note.message;
    while (!text.empty() && text.back() == '\n') text.remove_suffix(1);  // output of other programs ends so
    result += fmt::format("{}{}note{}: {}\n", location(sources, note.span), colors.note, colors.reset, text);
    result += quoted(sources, note.span, colors, colors.note);
  }
  if (!diagnostic.hint.empty()) result += fmt::format("{}hint{}: {}\n", colors.note, colors.reset, diagnostic.hint);
  return result;
}

std::string render(const SourceMap& sources, const DiagnosticList& diagnostics, const RenderOptions& options) {
  std::string result;
  for (const Diagnostic& diagnostic : diagnostics.items()) result += render(sources, diagnostic, options);
  return result;
}

std::string render_json(const SourceMap& sources, const Diagnostic& diagnostic) {
  return dump(to_json(sources, diagnostic));
}

std::string render_json(const SourceMap& sources, const DiagnosticList& diagnostics) {
  auto array = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : diagnostics.items()) array.push_back(to_json(sources, diagnostic));
  return dump(array);
}

}  // namespace tilepilot
