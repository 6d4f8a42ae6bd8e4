#include "agent/llm/language_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "agent/llm/quotation.h"
#include "compiler/stage/tile/operators/tables.h"
#include "compiler/targets/c/functions.h"

namespace tilepilot::agent {
namespace {

using stage::LanguageSection;
using stage::TileFunction;

// Which concepts are told in full. What is rare costs tokens in every request; it can be asked for.
struct FullSection {
  std::string_view title;
  bool on_cpu, on_gpu;
};
constexpr FullSection kFull[] = {
    {"Launches, allocations, sizes", true, true},
    {"Copies", true, true},
    {"Products of tiles", true, true},
    {"Reductions", true, true},
    {"Loops", true, true},
    {"Values", true, true},
    {"Scans", true, true},
    {"Atomics", false, true},
    {"Persistent blocks", false, true},
};

bool in_full(std::string_view title, bool on_gpu) {
  for (const FullSection& section : kFull)
    if (section.title == title) return on_gpu ? section.on_gpu : section.on_cpu;
  return false;
}

std::string row_text(const TileFunction& row, bool with_ignored) {
  const stage::TileSignature signature(row.parameters);
  std::string text = fmt::format("- `T.{}({})`: {}", row.name, signature.text(), row.summary);
  if (row.effect == stage::Effect::hint) text += "; a hint that no target follows";
  std::string ignored;
  for (const auto& parameter : signature.parameters())
    if (parameter.dropped) ignored += fmt::format("{}`{}`", ignored.empty() ? "" : ", ", parameter.name);
  if (with_ignored && !ignored.empty()) text += "; accepted but ignored: " + ignored;
  return text + "\n";
}

std::string names_of(const LanguageSection& section) {
  std::string text;
  for (const TileFunction& row : section.table()) text += (text.empty() ? "" : " ") + std::string(row.name);
  return fmt::format("- {}: {}\n", section.title, text);
}

std::string all_names() {
  std::string text;
  for (const LanguageSection& section : stage::language_sections()) text += names_of(section);
  return text;
}

// The edit distance, as far as it is small.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// Names that begin alike, contain it, or are spelled nearly so.
std::string similar_to(std::string_view name) {
  std::vector<std::string> found;
  for (const LanguageSection& section : stage::language_sections())
    for (const TileFunction& row : section.table()) {
      const bool contains =
          name.size() >= 3 && (row.name.find(name) != std::string_view::npos ||
                               (row.name.size() >= 3 && name.find(row.name) != std::string_view::npos));
      if (contains || distance(row.name, name) <= 2) found.push_back(row_text(row, false));
    }
  constexpr size_t kMost = 6;
  if (found.size() > kMost) found.resize(kMost);
  return fmt::format("{}", fmt::join(found, ""));
}

// What a processor has no use for, in a line.
std::string for_gpus_alone() {
  std::vector<std::string> titles;
  for (const LanguageSection& section : stage::language_sections())
    if (section.for_gpus) titles.push_back(fmt::format("{} ({})", section.title, section.table().size()));
  return fmt::format(
      "\nFor GPUs are, with so many names each: {}. A processor takes them, so that programs for GPUs run, but they "
      "make "
      "nothing faster there: leave them out.\n",
      fmt::join(titles, "; "));
}

// What of the mathematics is slow there.
std::string fast_on_processors() {
  return fmt::format(
      "\nOn this target all of Mathematics becomes vector instructions in loops over a contiguous index, but for {}: "
      "calls of the C library, element by element (`T.pow` with the exponents 1 and 2 is none).\n",
      fmt::join(targets::c::library_names(), ", "));
}

}  // namespace

std::string language_card(bool on_gpu) {
  std::string text = "# The language, as this version of the compiler has it for this target\n\n";
  std::string others;
  for (const LanguageSection& section : stage::language_sections()) {
    if (!on_gpu && section.for_gpus) continue;
    if (!in_full(section.title, on_gpu)) {
      others += names_of(section);
      continue;
    }
    text += fmt::format("{}:\n\n", section.title);
    const auto& table = section.table();
    for (size_t i = 0; i < table.size(); ++i) {
      // Names in two spellings are told once.
      const bool twin =
          i > 0 && table[i].summary == table[i - 1].summary && distance(table[i].name, table[i - 1].name) == 1;
      if (!twin) text += row_text(table[i], false);
      if (twin) text.insert(text.size() - 1, fmt::format("; also `T.{}`", table[i].name));
    }
    text += "\n";
  }
  return text +
         "Parameters that end in `=` are optional. Other names of `T.`, by concept (`ask: language T.NAME` tells "
         "more):\n\n" +
         others + (on_gpu ? "" : fast_on_processors() + for_gpus_alone());
}

std::string language_entry(std::string_view name) {
  if (name.starts_with("T.")) name.remove_prefix(2);
  name = name.substr(0, name.find_first_of("( "));
  if (name.empty()) return all_names();
  for (const LanguageSection& section : stage::language_sections())
    for (const TileFunction& row : section.table())
      if (row.name == name) return row_text(row, true);
  for (const stage::TileName& row : stage::other_names())
    if (row.name == name) return fmt::format("- `T.{}`: {}\n", row.name, row.summary);
  std::string text = fmt::format("There is no {}.", in_backticks("T." + std::string(name)));
  auto advice = stage::unsupported_advice(name);
  if (!advice) advice = stage::foreign_advice(name);
  if (advice && !advice->empty()) return text + fmt::format(" Instead: {}.\n", *advice);
  const std::string similar = similar_to(name);
  return text + (similar.empty() ? "\n" : " Names like it:\n" + similar);
}

}  // namespace tilepilot::agent
