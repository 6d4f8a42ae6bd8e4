// Which texts of kernels are one: where a kernel reads an input, and its like the result of another one, they differ in
// what their parameters are called, and in what is called after these.
#pragma once

#include <string_view>

namespace tilepilot::agent::builtin {

// Whether two bodies differ only in names that they define themselves: parameters (`x: T.Tensor`) and values
// (`mul = `), each exchanged for one other throughout.
bool equal_but_for_names(std::string_view one, std::string_view other);

}  // namespace tilepilot::agent::builtin
