#include "compiler/diagnostics/diagnostic.h"

#include <algorithm>
#include <cctype>

namespace tilepilot {
namespace {

constexpr Severity error = Severity::error;
constexpr Severity warning = Severity::warning;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Edit distance with transpositions of neighbours; letters that differ only in case are equal.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// How many edits still count as a slip of the fingers in a word of this length.
size_t tolerated_edits(size_t length) { return std::min<size_t>((length + 1) / 3, 3); }

}  // namespace

const std::vector<DiagnosticKindInfo>& diagnostic_kinds() {
  static const std::vector<DiagnosticKindInfo> kinds{
#define TP_DIAGNOSTIC(name, severity, meaning) {DiagnosticKind::name, #name, severity, meaning},
#include "compiler/diagnostics/kinds.def"
#undef TP_DIAGNOSTIC
  };
  return kinds;
}

const DiagnosticKindInfo& info(DiagnosticKind kind) { return diagnostic_kinds()[static_cast<size_t>(kind)]; }

std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  size_t best_distance = tolerated_edits(word.size()) + 1;
  for (std::string_view candidate : candidates) {
    size_t difference =
        candidate.size() > word.size() ? candidate.size() - word.size() : word.size() - candidate.size();
    if (difference >= best_distance || candidate == word) continue;
    size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

}  // namespace tilepilot
