// Which of Python's namespaces an ATen operator belongs to, and which are closed to programs. Schemas do not say, and a
// program that only this room accepts would fail under PyTorch.
#pragma once

#include <string_view>

namespace tilepilot::eval {

// torch.nn.functional has this operator under ATen's name and with its parameters.
bool is_functional(std::string_view name);
// Neither a function of torch nor a method of tensors: torch.nn.functional alone has it (gelu).
bool is_only_functional(std::string_view name);
// A method of tensors, but no function of torch (view).
bool is_only_method(std::string_view name);
// A name of torch or an operator of ATen that reaches files, the network, the clock, another compiler, or memory beyond
// a tensor's own. No door leads to it: functions, methods and torch.ops look here.
bool is_forbidden(std::string_view name);

}  // namespace tilepilot::eval
