#include "eval/host/tensors/indexing.h"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>
#include <fmt/format.h>

#include "eval/host/edge.h"
#include "eval/host/host_state.h"

namespace tilepilot::eval {

using at::indexing::TensorIndex;
using stage::Value;

namespace {

Error bad_index(std::string_view type, Span span) {
  return make_error(DiagnosticKind::type_error, span, fmt::format("a tensor cannot be indexed with `{}`", type),
                    "use integers, slices, `None`, `...`, tensors or lists of integers");
}

Result<std::optional<c10::SymInt>> slice_bound(const Value& value, Span span) {
  if (value.is_none()) return std::optional<c10::SymInt>();
  if (auto index = value.as_index()) return std::optional<c10::SymInt>(*index);
  const at::Tensor* tensor = tensor_of(value);
  if (tensor && tensor->dim() == 0 && at::isIntegralType(tensor->scalar_type(), false)) {
    return std::optional<c10::SymInt>(tensor->item<int64_t>());
  }
  return make_error(DiagnosticKind::type_error, span, "slice indices must be integers or `None`");
}

Result<TensorIndex> slice_index(const stage::SliceObject& slice, Span span) {
  auto start = TRY(slice_bound(slice.start, span));
  auto stop = TRY(slice_bound(slice.stop, span));
  auto step = TRY(slice_bound(slice.step, span));
  if (step && step->expect_int() <= 0) {
    return make_error(DiagnosticKind::value_error, span, "a tensor's slice step must be greater than zero",
                      "use `torch.flip` to reverse");
  }
  return TensorIndex(at::indexing::Slice(start, stop, step));
}

Result<TensorIndex> one_index(const Value& value, Span span) {
  if (value.is_none()) return TensorIndex(at::indexing::None);
  if (auto* integer = value.if_int()) return TensorIndex(c10::SymInt(*integer));
  if (auto* boolean = value.if_bool()) return TensorIndex(*boolean);
  if (auto* slice = value.get_if<stage::SliceObject>()) return slice_index(*slice, span);
  if (value.get_if<stage::EllipsisObject>()) return TensorIndex(at::indexing::Ellipsis);
  if (const at::Tensor* tensor = tensor_of(value)) return TensorIndex(*tensor);
  if (stage::sequence_items(value)) {
    at::Tensor list = TRY(tensor_from_data(value, std::nullopt, span));
    if (list.numel() == 0) list = list.to(at::kLong);
    return TensorIndex(list);
  }
  return bad_index(value.type_name(), span);
}

Result<std::vector<TensorIndex>> all_indices(const Value& index, Span span) {
  std::vector<TensorIndex> indices;
  if (auto* tuple = index.get_if<stage::TupleObject>()) {
    for (const Value& item : tuple->items) indices.push_back(TRY(one_index(item, span)));
  } else {
    indices.push_back(TRY(one_index(index, span)));
  }
  return indices;
}

// The shape of nested lists, and the widest kind of number in them.
struct DataShape {
  std::vector<int64_t> sizes;
  bool has_float = false, has_int = false, has_bool = false;
  at::ScalarType promoted = at::ScalarType::Undefined;  // of tensors inside
};

Status scan_data(const Value& data, size_t depth, DataShape& shape, Span span) {
  if (auto* items = stage::sequence_items(data)) {
    auto size = static_cast<int64_t>(items->size());
    if (shape.sizes.size() == depth) shape.sizes.push_back(size);
    if (shape.sizes[depth] != size) {
      return make_error(
          DiagnosticKind::value_error, span,
          fmt::format("expected a sequence of length {} at dimension {}, got {}", shape.sizes[depth], depth, size));
    }
    for (const Value& item : *items) TRY(scan_data(item, depth + 1, shape, span));
    return {};
  }
  if (shape.sizes.size() != depth) {
    return make_error(DiagnosticKind::value_error, span, "the nested lists have different depths");
  }
  const at::Tensor* tensor = tensor_of(data);
  if (tensor && tensor->numel() == 1) {
    auto type = tensor->scalar_type();
    shape.promoted = shape.promoted == at::ScalarType::Undefined ? type : at::promoteTypes(shape.promoted, type);
    return {};
  }
  shape.has_float |= data.if_float() != nullptr;
  shape.has_int |= data.if_int() != nullptr;
  shape.has_bool |= data.if_bool() != nullptr;
  if (data.as_number()) return {};
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("a tensor cannot be made from `{}`", data.type_name()));
}

at::ScalarType suggested_type(const DataShape& shape) {
  if (shape.promoted != at::ScalarType::Undefined) return shape.promoted;
  if (shape.has_float || !(shape.has_int || shape.has_bool)) return c10::get_default_dtype_as_scalartype();
  return shape.has_int ? at::kLong : at::kBool;
}

void flatten_data(const Value& data, std::vector<at::Scalar>& out) {
  if (auto* items = stage::sequence_items(data)) {
    for (const Value& item : *items) flatten_data(item, out);
  } else if (const at::Tensor* tensor = tensor_of(data)) {
    out.push_back(tensor->item());
  } else if (auto* real = data.if_float()) {
    out.push_back(*real);
  } else {
    out.push_back(*data.as_index());
  }
}

}  // namespace

Result<at::Tensor> tensor_from_data(const Value& data, std::optional<at::ScalarType> type, Span span) {
  DataShape shape;
  TRY(scan_data(data, 0, shape, span));
  return guarded("torch.tensor", span, [&] {
    std::vector<at::Scalar> items;
    flatten_data(data, items);
    bool integral =
        !shape.has_float && (shape.promoted == at::ScalarType::Undefined || at::isIntegralType(shape.promoted, true));
    at::Tensor values = at::empty(shape.sizes, integral ? at::kLong : at::kDouble);
    for (size_t i = 0; i < items.size(); ++i) {
      if (integral) {
        values.data_ptr<int64_t>()[i] = items[i].toLong();
      } else {
        values.data_ptr<double>()[i] = items[i].toDouble();
      }
    }
    return values.to(type.value_or(suggested_type(shape)));
  });
}

Result<at::Tensor> get_index(HostState&, const at::Tensor& tensor, const Value& index, Span span) {
  if (auto* integer = index.if_int(); integer && tensor.dim() > 0) {
    return guarded("indexing", span, [&] { return tensor.select(0, *integer); });
  }
  auto indices = TRY(all_indices(index, span));
  return guarded("indexing", span, [&] { return at::indexing::get_item(tensor, indices); });
}

Status set_index(HostState&, const at::Tensor& tensor, const Value& index, const Value& value, Span span) {
  auto indices = TRY(all_indices(index, span));
  at::Tensor source;
  if (const at::Tensor* other = tensor_of(value)) {
    source = *other;
  } else if (value.as_number() || stage::sequence_items(value)) {
    source = TRY(tensor_from_data(value, tensor.scalar_type(), span));
  } else {
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("`{}` cannot be stored in a tensor", value.type_name()));
  }
  return guarded("indexing", span, [&] { at::indexing::set_item(tensor, indices, source.to(tensor.device())); });
}

}  // namespace tilepilot::eval
