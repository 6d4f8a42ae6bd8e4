// Turns an argument of an exported graph into the IValue that an operator's schema asks for.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <functional>
#include <optional>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

// What replaces parts of an argument: values by id, element types that are named (`dtype=torch.float32`), and devices,
// which are all one.
struct ArgumentContext {
  std::function<c10::IValue(int id)> value;
  std::function<at::ScalarType(at::ScalarType)> element_type;
  c10::Device device = c10::DeviceType::CPU;
};

// nullopt: the argument does not fit the type.
std::optional<c10::IValue> to_ivalue(const GraphArgument& argument, const c10::TypePtr& type,
                                     const ArgumentContext& context);

}  // namespace tilepilot::eval
