// The functions of C's <math.h> and CUDA's fast ones, by the names that `T.call_extern` gives them: they become our own
// expressions, so programs that call them run on every target.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

struct ExternMathsCall {
  std::string_view function;
  std::vector<Value> arguments;
  ir::DType result;  // what the program says that it gives
  Span span;
};

// The value of the call; nullopt if the function is none of these.
Result<std::optional<Value>> call_extern_maths(TileContext& context, ExternMathsCall call);

}  // namespace tilepilot::stage
