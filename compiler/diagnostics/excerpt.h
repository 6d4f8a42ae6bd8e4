// The part of a rendered diagnostic that quotes the source: numbered lines with carets under a span.
#pragma once

#include <string>
#include <string_view>

#include "compiler/source/source.h"

namespace tilepilot {

struct ExcerptColors {
  std::string_view gutter;
  std::string_view caret;
  std::string_view reset;
};

// Lines that end with newlines. A span of several lines shows its first and its last line; long lines are cropped
// around the caret; tabs are expanded; wide characters count two columns.
std::string excerpt(const SourceMap& sources, Span span, const ExcerptColors& colors);

}  // namespace tilepilot
