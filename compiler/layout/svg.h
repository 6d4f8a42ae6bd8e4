// Layouts as SVG drawings: a square an element, rows of the last axis. A colour is a thread, or a bank of shared
// memory.
#pragma once

#include "compiler/layout/print.h"

namespace tilepilot::layout {

// In each square the thread and the register of the element's first owner.
std::string svg(const Fragment& fragment, TableLimits limits = {64, 64});
// In each square the element's offset; elements with one colour begin in one bank.
std::string svg(const SharedLayout& layout, TableLimits limits = {64, 64});

}  // namespace tilepilot::layout
