// Memory for one value of each thread.
#pragma once

#include <string>

#include "compiler/ir/expr.h"

namespace tilepilot::ir {

// A local buffer of one element.
inline BufferData scalar_buffer(std::string name, DType type, Span span) {
  return {std::move(name), type, Scope::local, {int_imm(1, kInt32, span)}, {}, span};
}

}  // namespace tilepilot::ir
