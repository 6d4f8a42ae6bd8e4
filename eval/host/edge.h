// The edge to LibTorch: runs code that may throw and turns what it throws into a diagnostic.
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <type_traits>
#include <utility>

#include "compiler/diagnostics/result.h"

namespace tilepilot::eval {

// `what`: the operation, for the message ("aten::add"); may be empty.
Error torch_error(std::string_view what, Span span, const std::exception& exception);

template <class Function>
auto guarded(std::string_view what, Span span, Function&& function) -> Result<std::invoke_result_t<Function>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Function>>) {
      std::forward<Function>(function)();
      return {};
    } else {
      return std::forward<Function>(function)();
    }
  } catch (const std::exception& exception) { return torch_error(what, span, exception); }
}

}  // namespace tilepilot::eval
