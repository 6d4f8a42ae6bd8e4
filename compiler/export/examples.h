// Two programs that call every function of a library: one without LibTorch, one with its tensors.
#pragma once

#include <string>

#include "compiler/export/interface.h"

namespace tilepilot::exporting {

// One call of a function, with a value for each extent and number.
struct ExampleCall {
  struct Tensor {
    std::vector<int64_t> shape, strides;  // in elements
    int64_t elements = 0;                 // from the first to the last
  };
  const Function* function = nullptr;
  std::vector<Tensor> tensors;   // by argument; empty of others
  std::vector<int64_t> numbers;  // by argument; of extents and numbers
};
ExampleCall example_call(const Function& function);

std::string plain_example(const Library& library);
std::string torch_example(const Library& library);

}  // namespace tilepilot::exporting
