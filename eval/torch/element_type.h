// Names of element types, as the reference format and the protocol spell them, and LibTorch's.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

namespace tilepilot::eval {

std::optional<at::ScalarType> parse_element_type(std::string_view name);  // "float32"
std::string element_type_name(at::ScalarType type);
// What the option --dtype names: "bf16". None for "model".
std::optional<at::ScalarType> type_of_option(std::string_view option);

}  // namespace tilepilot::eval
