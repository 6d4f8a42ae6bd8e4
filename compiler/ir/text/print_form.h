// How printed values look: what CUDA's headers call their type, and how a value of it is written.
#pragma once

#include <string_view>

#include "compiler/ir/dtype.h"

namespace tilepilot::ir {

struct PrintForm {
  std::string_view type;    // "float"
  std::string_view format;  // of printf
};
PrintForm print_form(DType type);

}  // namespace tilepilot::ir
