// Lines of the user's model as spans: the exporter and the op graph know lines, diagnostics want spans.
#pragma once

#include <string_view>

#include "compiler/source/source.h"

namespace tilepilot::agent {

// Line `line` (from 1) of `text`, without its indentation; the start of the file if there is no such line.
Span model_line(std::string_view text, int32_t file, int line);

}  // namespace tilepilot::agent
