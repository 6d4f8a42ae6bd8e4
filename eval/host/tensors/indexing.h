// Indexing of tensors as Python writes it: integers, slices, None, Ellipsis, boolean and integer tensors, lists.
#pragma once

#include <ATen/core/Tensor.h>

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::eval {

class HostState;

Result<at::Tensor> get_index(HostState& state, const at::Tensor& tensor, const stage::Value& index, Span span);
Status set_index(HostState& state, const at::Tensor& tensor, const stage::Value& index, const stage::Value& value,
                 Span span);

// A tensor from nested lists of numbers, as torch.tensor makes it; `type` none: as the numbers suggest.
Result<at::Tensor> tensor_from_data(const stage::Value& data, std::optional<at::ScalarType> type, Span span);

}  // namespace tilepilot::eval
