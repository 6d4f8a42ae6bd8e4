#include "eval/process/candidate_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/diagnostics/render.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

constexpr size_t kMaxText = 8192;
constexpr size_t kMaxDetail = 2000;
constexpr size_t kMaxItems = 1 << 20;
constexpr size_t kMaxDiagnostics = 64;
constexpr size_t kMaxNotes = 32;
constexpr double kMaxSeconds = 1e7;
constexpr double kMaxNumber = 9.3e18;  // every integer of 64 bits is smaller

// What a candidate can know of its own failure. The judge finds out all else itself.
constexpr Outcome kTellable[] = {Outcome::compile_error, Outcome::runtime_error,    Outcome::crashed,
                                 Outcome::timed_out,     Outcome::weights_mismatch, Outcome::out_of_memory,
                                 Outcome::rejected,      Outcome::worker_failed};
constexpr std::string_view kTellableGuards[] = {"aten_policy", "forbidden", "foreign_source"};

bool is_seconds(const json& node) {
  return node.is_number() && node.get<double>() >= 0 && node.get<double>() <= kMaxSeconds;
}
bool are_seconds(const json& node) { return node.is_array() && std::all_of(node.begin(), node.end(), is_seconds); }
bool is_count(const json& node) { return node.is_number_unsigned() && node.get<uint64_t>() <= kMaxItems; }
bool is_flag(const json& node) { return node.is_boolean(); }
bool is_text(const json& node) { return node.is_string(); }
bool are_texts(const json& node) { return node.is_array() && std::all_of(node.begin(), node.end(), is_text); }
bool are_named_texts(const json& node) { return node.is_object() && std::all_of(node.begin(), node.end(), is_text); }
bool are_integers(const json& node) {
  return node.is_array() &&
         std::all_of(node.begin(), node.end(), [](const json& item) { return item.is_number_integer(); });
}

bool is_tensor(const json& node) {
  return node.is_object() && node.contains("dtype") && is_text(node["dtype"]) && node.contains("shape") &&
         are_integers(node["shape"]) && node.contains("strides") && are_integers(node["strides"]) &&
         node.contains("offset") && node["offset"].is_number_unsigned();
}
bool are_tensors(const json& node) { return node.is_array() && std::all_of(node.begin(), node.end(), is_tensor); }

struct Field {
  const char* name;
  bool (*fits)(const json&);
};

constexpr Field kFields[] = {
    {"seconds", is_seconds},  {"kernel_seconds", is_seconds}, {"complaint", is_text},
    {"kernels", are_texts},   {"earlier_changed", is_flag},   {"low_precision", are_named_texts},
    {"aliases", are_texts},   {"input_digests", are_texts},   {"notes", are_texts},
    {"lacking", is_text},     {"dropped", are_texts},         {"outputs", is_count},
    {"tensors", are_tensors}, {"state", are_texts},           {"changed_weights", are_texts},
    {"worked", is_flag},      {"trials", are_seconds},
};

// Escapes text, and finds what no honest answer holds anywhere. Nesting is bounded (Wire), so recursion is.
std::optional<std::string> fault_of_value(json& node, size_t& left) {
  if (left-- == 0) return "it has too many parts";
  if (node.is_number_float() && !(std::abs(node.get<double>()) <= kMaxNumber)) return "a number is not finite";
  if (node.is_string()) node = printable(node.get_ref<const std::string&>(), kMaxText);
  if (!node.is_structured()) return std::nullopt;
  for (auto& [name, item] : node.items()) {
    if (node.is_object() && printable(name, kMaxText) != name) return "a name is none";
    if (auto fault = fault_of_value(item, left)) return fault;
  }
  return std::nullopt;
}

// Which tensor stands where, in the structure of outputs.
bool names_tensors(const json& structure, size_t tensors) {
  if (structure.is_object() && structure.contains("tensor")) {
    auto& index = structure["tensor"];
    return index.is_number_unsigned() && index.get<uint64_t>() < tensors;
  }
  if (!structure.is_structured()) return true;
  return std::all_of(structure.begin(), structure.end(),
                     [&](const json& item) { return names_tensors(item, tensors); });
}

Span clamped(const json& node, size_t size) {
  if (!node.is_array() || node.size() != 3 || !are_integers(node) || node[0] != 0) return {};
  const auto at = [&](size_t i) {
    return static_cast<uint32_t>(std::clamp<int64_t>(node[i], 0, static_cast<int64_t>(size)));
  };
  return {0, at(1), std::max(at(1), at(2))};
}

std::string text_of(const json& node, const char* field, size_t limit) {
  const auto found = node.find(field);
  return found != node.end() && found->is_string() ? printable(found->get_ref<const std::string&>(), limit) : "";
}

Diagnostic told_diagnostic(const json& node, size_t source_bytes) {
  Diagnostic diagnostic{DiagnosticKind::worker_unavailable, {}, text_of(node, "message", kMaxText)};
  for (auto& known : diagnostic_kinds()) {
    if (known.name == text_of(node, "kind", kMaxText)) diagnostic.kind = known.kind;
  }
  diagnostic.span = clamped(node.value("span", json()), source_bytes);
  const json notes = node.value("notes", json::array());
  for (size_t i = 0; i < std::min(notes.size(), kMaxNotes); ++i) {
    if (!notes.is_array() || !notes[i].is_object()) continue;
    diagnostic.note(clamped(notes[i].value("span", json()), source_bytes), text_of(notes[i], "message", kMaxText));
  }
  return std::move(diagnostic.with_hint(text_of(node, "hint", kMaxText)));
}

void add_told(Diagnostic diagnostic, const SourceMap& sources, Verdict& verdict) {
  verdict.diagnostics.push_back(std::move(diagnostic));
  verdict.rendered.push_back(printable(render(sources, verdict.diagnostics.back()), 4 * kMaxText));
}

}  // namespace

std::optional<std::string> fault_of_answer(json& body, size_t files) {
  size_t left = kMaxItems;
  if (auto fault = fault_of_value(body, left)) return fault;
  for (const Field& field : kFields) {
    const auto found = body.find(field.name);
    if (found != body.end() && !field.fits(*found)) return fmt::format("`{}` is none", field.name);
  }
  const size_t tensors = body.contains("tensors") ? body["tensors"].size() : 0;
  if (body.contains("tensors") && files == 0) return "tensors without a file";
  if (body.contains("outputs") && body["outputs"].get<uint64_t>() > tensors) return "outputs are missing";
  if (body.contains("structure") && !names_tensors(body["structure"], tensors)) return "outputs are missing";
  if (body.contains("aliases") && body.contains("structure") && body["aliases"].size() > tensors)
    return "`aliases` is none";
  return std::nullopt;
}

Verdict told_failure(const json& failure, const SourceMap& sources) {
  if (!failure.is_object()) return protocol_failure("its failure is none");
  const auto outcome = parse_outcome(text_of(failure, "outcome", kMaxDetail));
  if (!outcome || std::find(std::begin(kTellable), std::end(kTellable), *outcome) == std::end(kTellable))
    return protocol_failure("it gives itself an outcome that only the judge finds");
  Verdict verdict;
  verdict.outcome = *outcome;
  verdict.detail = text_of(failure, "detail", kMaxDetail);
  const std::string guard = text_of(failure, "guard", kMaxDetail);
  if (*outcome == Outcome::rejected)
    verdict.guard =
        std::find(std::begin(kTellableGuards), std::end(kTellableGuards), guard) != std::end(kTellableGuards)
            ? guard
            : "forbidden";
  const std::string_view text = sources.text(0);
  const json diagnostics = failure.value("diagnostics", json::array());
  for (size_t i = 0; diagnostics.is_array() && i < std::min(diagnostics.size(), kMaxDiagnostics); ++i) {
    if (diagnostics[i].is_object()) add_told(told_diagnostic(diagnostics[i], text.size()), sources, verdict);
  }
  const auto line = failure.find("line");
  const auto last = sources.position(0, static_cast<uint32_t>(text.size())).line;
  if (line != failure.end() && line->is_number_integer()) verdict.line = std::clamp<int>(line->get<int>(), 0, last);
  return verdict;
}

void add_told_warnings(const json& warnings, const SourceMap& sources, Verdict& verdict) {
  constexpr DiagnosticKind kOfValues[] = {DiagnosticKind::begins_near_end, DiagnosticKind::unequal_extents,
                                          DiagnosticKind::access_outside_tile};
  for (size_t i = 0; warnings.is_array() && i < std::min(warnings.size(), kMaxDiagnostics); ++i) {
    if (!warnings[i].is_object()) continue;
    Diagnostic warning = told_diagnostic(warnings[i], sources.text(0).size());
    if (std::find(std::begin(kOfValues), std::end(kOfValues), warning.kind) != std::end(kOfValues))
      add_told(std::move(warning), sources, verdict);
  }
}

Verdict protocol_failure(std::string_view fault) {
  Verdict verdict;
  verdict.outcome = Outcome::rejected;
  verdict.guard = kProtocolGuard;
  verdict.detail = fmt::format("the candidate's process answered what no candidate answers: {}", fault);
  return verdict;
}

}  // namespace tilepilot::eval
