// Layouts as tables of text: a cell an element, rows of the last axis. Large tables show their first rows and columns.
#pragma once

#include <string>

#include "compiler/layout/fragment.h"
#include "compiler/layout/shared_layout.h"

namespace tilepilot::layout {

struct TableLimits {
  int64_t rows = 32;
  int64_t columns = 16;
};

// Each cell is `thread:register` of the element's first owner, `-` if it has none.
std::string table(const Fragment& fragment, TableLimits limits = {});
// Each cell is the element's offset, in elements.
std::string table(const SharedLayout& layout, TableLimits limits = {});

// One line: the shape, the sizes and the layouts.
std::string to_text(const Fragment& fragment);
std::string to_text(const SharedLayout& layout);

}  // namespace tilepilot::layout
