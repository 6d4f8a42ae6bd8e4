// Diagnostics are data: a kind from one registry (`kinds.def`), a span, a message, notes and a hint. People see carets,
// programs see JSON; both are rendered elsewhere (`render.h`).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/source/source.h"

namespace tilepilot {

enum class Severity { warning, error };

// One enumerator for each row of kinds.def: TP_DIAGNOSTIC(name, severity, "what it means").
enum class DiagnosticKind {
#define TP_DIAGNOSTIC(name, severity, meaning) name,
#include "compiler/diagnostics/kinds.def"
#undef TP_DIAGNOSTIC
};

struct DiagnosticKindInfo {
  DiagnosticKind kind;
  std::string_view name;
  Severity severity;
  std::string_view meaning;
};

// The registry, in the order of kinds.def.
const std::vector<DiagnosticKindInfo>& diagnostic_kinds();
const DiagnosticKindInfo& info(DiagnosticKind kind);

struct Note {
  Span span;  // may be invalid: then only the text is shown
  std::string message;
};

struct Diagnostic {
  DiagnosticKind kind{};
  Span span;
  std::string message;  // lower case, no full stop, code in backticks, the fact first
  std::vector<Note> notes{};
  std::string hint{};              // what to do about it; may be empty
  std::shared_ptr<void> thrown{};  // the evaluator's exception object, for `except` clauses; never shown

  Severity severity() const { return info(kind).severity; }
  Diagnostic& note(Span where, std::string text) {
    notes.push_back({where, std::move(text)});
    return *this;
  }
  Diagnostic& with_hint(std::string text) {
    hint = std::move(text);
    return *this;
  }
};

// Collects what one run has to say, in order.
class DiagnosticList {
 public:
  void add(Diagnostic diagnostic) {
    if (diagnostic.severity() == Severity::error) ++errors_;
    items_.push_back(std::move(diagnostic));
  }
  bool has_errors() const { return errors_ > 0; }
  const std::vector<Diagnostic>& items() const { return items_; }

 private:
  std::vector<Diagnostic> items_;
  size_t errors_ = 0;
};

// The candidate nearest to `word` by edit distance, if near enough to suggest; else empty.
std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace tilepilot
