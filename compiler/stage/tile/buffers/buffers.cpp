#include "compiler/stage/tile/buffers/buffers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ir/text/text.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/arguments.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/kernel/markers.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

std::vector<Value> index_list(const Value& index) {
  if (auto* tuple = index.get_if<TupleObject>()) return tuple->items;
  return {index};
}

Status check_index_count(const ir::BufferData& buffer, size_t count, Span span) {
  if (count == buffer.rank()) return {};
  Error error = make_error(DiagnosticKind::wrong_index_count, span,
                           fmt::format("`{}` has {} dimension{}, but {} ind{} given", buffer.name, buffer.rank(),
                                       buffer.rank() == 1 ? "" : "s", count, count == 1 ? "ex is" : "ices are"));
  error->notes.push_back(declaration_note(buffer));
  return error;
}

// Negative constants count from the end.
ir::Expr from_the_end(const TileContext& context, ir::Expr index, const ir::Expr& extent, Span span) {
  auto constant = ir::constant_int(index);
  if (!constant || *constant >= 0) return index;
  ir::Expr counted = fold_binary(ir::BinaryOp::add, fold_cast(extent, index->type, span), index, span);
  if (context.builder) context.builder->note_negative(counted, *constant);
  return counted;
}

Error outside(const ir::BufferData& buffer, size_t axis, int64_t index, Span span) {
  Error error = make_error(DiagnosticKind::out_of_bounds, span,
                           fmt::format("index {} of axis {} lies outside `{}`, whose extent there is {}", index, axis,
                                       buffer.name, *ir::constant_int(buffer.shape[axis])));
  error->notes.push_back(declaration_note(buffer));
  return error;
}

// A constant [start, start + extent) must lie in the buffer, unless the buffer is global.
Status check_bounds(const ir::BufferData& buffer, size_t axis, const ir::Expr& start, int64_t extent, Span span) {
  auto first = ir::constant_int(start);
  auto limit = ir::constant_int(buffer.shape[axis]);
  if (buffer.scope == ir::Scope::global || !limit) return {};
  if (first && *first < 0) return outside(buffer, axis, *first - *limit, span);
  int64_t end = first.value_or(0) + extent;
  if (end > *limit) return outside(buffer, axis, end - 1, span);
  return {};
}

struct Interval {
  ir::Expr start, extent;
};

class RegionReader {
 public:
  RegionReader(TileContext& context, const std::shared_ptr<ir::BufferData>& buffer, Span span)
      : context_(context), buffer_(buffer), span_(span) {}

  Result<ir::Region> read(const std::vector<Value>& indices) {
    ir::Region region{buffer_, {}, {}, span_};
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      Interval interval = TRY(axis_interval(indices[axis], axis));
      auto constant = ir::constant_int(interval.extent);
      if (constant) TRY(check_bounds(*buffer_, axis, interval.start, *constant, span_));
      is_constant_ = is_constant_ && constant;
      region.start.push_back(interval.start);
      region.extent.push_back(constant.value_or(kRunTimeExtent));
      extents_.push_back(std::move(interval.extent));
    }
    return region;
  }

  Result<ir::Region> read_constant(const std::vector<Value>& indices) {
    ir::Region region = TRY(read(indices));
    for (const ir::Expr& extent : extents_)
      if (!ir::constant_int(extent)) return no_constant_extent(*buffer_, extent, span_);
    return region;
  }

  Result<Value> object(const std::vector<Value>& indices) {
    ir::Region region = TRY(read(indices));
    return Value(std::make_shared<RegionObject>(std::move(region),
                                                is_constant_ ? std::vector<ir::Expr>() : std::move(extents_)));
  }

 private:
  Result<Interval> axis_interval(const Value& index, size_t axis) {
    auto* slice = index.get_if<SliceObject>();
    if (!slice) {
      ir::Expr point = TRY(to_index(index, "an index", span_));
      return Interval{from_the_end(context_, point, buffer_->shape[axis], span_), ir::int_imm(1, ir::kInt32, span_)};
    }
    if (!slice->step.is_none() && constant_integer(slice->step) != 1)
      return make_error(DiagnosticKind::unsupported_tile_feature, span_, "slices of buffers cannot have a step",
                        "copy the elements in a `T.Parallel` loop");
    ir::Expr start = TRY(bound(slice->start, ir::int_imm(0, ir::kInt32, span_), axis));
    ir::Expr stop = TRY(bound(slice->stop, buffer_->shape[axis], axis));
    auto extent = constant_difference(stop, start, definitions());
    if (!extent) {
      const ir::DType type = ir::promote(start->type, stop->type);
      ir::Expr from = fold_cast(start, type, span_);
      return Interval{start, fold_binary(ir::BinaryOp::sub, fold_cast(stop, type, span_), std::move(from), span_)};
    }
    if (*extent <= 0)
      return make_error(
          DiagnosticKind::value_error, span_, fmt::format("the slice of axis {} of `{}` is empty", axis, buffer_->name),
          is_negative(start) || is_negative(stop) ? "a negative bound counts from the end of the axis" : "");
    return Interval{start, ir::int_imm(*extent, ir::kInt32, span_)};
  }

  Result<ir::Expr> bound(const Value& value, ir::Expr absent, size_t axis) {
    if (value.is_none()) return absent;
    return from_the_end(context_, TRY(to_index(value, "a slice bound", span_)), buffer_->shape[axis], span_);
  }

  bool is_negative(const ir::Expr& bound) const {
    return context_.builder && context_.builder->negative_index(bound).has_value();
  }

  Definition definitions() const {
    if (!context_.builder) return nullptr;
    return [builder = context_.builder](const ir::Var& var) { return builder->definition(var); };
  }

  TileContext& context_;
  const std::shared_ptr<ir::BufferData>& buffer_;
  Span span_;
  std::vector<ir::Expr> extents_;
  bool is_constant_ = true;
};

Result<std::vector<ir::Expr>> point_indices(const BufferObject& self, const std::vector<Value>& values, Span span) {
  std::vector<ir::Expr> indices;
  for (size_t axis = 0; axis < values.size(); ++axis) {
    ir::Expr index = TRY(to_index(values[axis], "an index", span));
    index = from_the_end(self.context, std::move(index), self.buffer->shape[axis], span);
    TRY(check_bounds(*self.buffer, axis, index, 1, span));
    indices.push_back(std::move(index));
  }
  return indices;
}

// The axis that is longer than 1; nullopt if there are several.
std::optional<size_t> only_long_axis(const ir::Region& region) {
  size_t found = 0, count = 0;
  for (size_t axis = 0; axis < region.extent.size(); ++axis) {
    if (region.extent[axis] == 1) continue;
    found = axis;
    ++count;
  }
  return count <= 1 ? std::optional(found) : std::nullopt;
}

// `A[0:4] = B[8:12]`: one vector of each.
Status store_slice(ProgramBuilder& builder, const ir::Region& source, const ir::Region& destination, Span span) {
  auto from = only_long_axis(source), to = only_long_axis(destination);
  if (!from || !to || source.extent[*from] != destination.extent[*to]) {
    Error error = make_error(DiagnosticKind::shape_mismatch, span,
                             fmt::format("a slice of {} cannot be assigned from one of {}",
                                         describe_extents(destination.extent), describe_extents(source.extent)),
                             "slices that are assigned are vectors of one length; use `T.copy` for tiles");
    error->notes.push_back(declaration_note(*destination.buffer));
    error->notes.push_back(declaration_note(*source.buffer));
    return error;
  }
  ir::Var lane = builder.make_var("lane");
  auto at = [&](const ir::Region& region, size_t axis) {
    std::vector<ir::Expr> indices = region.start;
    ir::Expr counter = fold_cast(ir::var_ref(lane, span), indices[axis]->type, span);
    indices[axis] = fold_binary(ir::BinaryOp::add, indices[axis], std::move(counter), span);
    return indices;
  };
  auto body = [&]() -> Status {
    ir::Expr value = fold_cast(ir::load(source.buffer, at(source, *from), span), destination.buffer->type, span);
    return builder.emit(ir::Store{destination.buffer, at(destination, *to), std::move(value)}, span);
  };
  ir::Stmt loop = TRY(builder.nested(BlockKind::parallel_loop, {lane}, body, span));
  ir::Expr extent = ir::int_imm(destination.extent[*to], ir::kInt32, span);
  return builder.emit(ir::For{ir::LoopKind::vectorized, {lane}, {extent}, 0, std::move(loop)}, span);
}

// `A[0:2] = T.atomic_addx2(...)`: one value for each element.
Status store_lanes(ProgramBuilder& builder, const ir::Region& target, const std::vector<Value>& values, Span span) {
  const auto axis = only_long_axis(target);
  if (!axis || target.extent[*axis] != static_cast<int64_t>(values.size()))
    return make_error(
        DiagnosticKind::shape_mismatch, span,
        fmt::format("a slice of {} cannot be assigned {} values", describe_extents(target.extent), values.size()));
  for (size_t lane = 0; lane < values.size(); ++lane) {
    std::vector<ir::Expr> indices = target.start;
    ir::Expr step = ir::int_imm(static_cast<int64_t>(lane), indices[*axis]->type, span);
    indices[*axis] = fold_binary(ir::BinaryOp::add, indices[*axis], std::move(step), span);
    const ir::DType type = target.buffer->type;
    ir::Expr element = fold_cast(TRY(to_expr(values[lane], span, type)), type, span);
    TRY(builder.emit(ir::Store{target.buffer, std::move(indices), std::move(element)}, span));
  }
  return {};
}

bool has_slice(const std::vector<Value>& indices) {
  for (const Value& index : indices)
    if (index.get_if<SliceObject>()) return true;
  return false;
}

Error whole_buffer_misused(const BufferObject& buffer, Span span) {
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("operators do not apply to the whole buffer `{}`", buffer.name()),
                    "compute element by element in a `for ... in T.Parallel(...)` loop");
}

}  // namespace

Result<Value> BufferObject::get_attribute(Interpreter& interpreter, Name name_, Span span) {
  if (name_.text() == "dtype") return Value(std::make_shared<DTypeObject>(context, buffer->type));
  if (name_.text() == "name") return Value(name());
  // Stands for its memory, as in `T.Tensor(shape, dtype, A.data)`.
  if (name_.text() == "data") return Value(std::make_shared<BufferObject>(context, buffer));
  if (name_.text() == "ndim") return Value(static_cast<int64_t>(buffer->rank()));
  if (name_.text() == "shape") {
    std::vector<Value> extents;
    for (const ir::Expr& extent : buffer->shape) {
      auto constant = ir::constant_int(extent);
      extents.push_back(constant ? Value(*constant) : make_expr(context, extent));
    }
    return make_tuple(std::move(extents));
  }
  if (name_.text() == "scope")
    return Value(std::make_shared<BuiltinFunction>("scope", [scope = buffer->scope](Interpreter&, CallArgs&) {
      return Result<Value>(Value(ir::to_string(scope)));
    }));
  return Object::get_attribute(interpreter, name_, span);
}

Result<Value> BufferObject::get_item(Interpreter&, const Value& index, Span span) {
  std::vector<Value> indices = index_list(index);
  TRY(check_index_count(*buffer, indices.size(), span));
  if (has_slice(indices)) return RegionReader(context, buffer, span).object(indices);
  std::vector<ir::Expr> at = TRY(point_indices(*this, indices, span));
  return make_expr(context, ir::load(buffer, std::move(at), span));
}

Status BufferObject::set_item(Interpreter&, const Value& index, Value value, Span span) {
  std::vector<Value> indices = index_list(index);
  TRY(check_index_count(*buffer, indices.size(), span));
  ProgramBuilder& builder = *TRY(require_kernel(context, "a store to a buffer", span));
  if (has_slice(indices)) {
    ir::Region target = TRY(RegionReader(context, buffer, span).read_constant(indices));
    if (auto* source = value.get_if<RegionObject>(); source && source->extents.empty())
      return store_slice(builder, source->region, target, span);
    if (auto* tuple = value.get_if<TupleObject>()) return store_lanes(builder, target, tuple->items, span);
    if (!value.as_number() && !is_tile_value(value))
      return make_error(DiagnosticKind::unsupported_tile_feature, span,
                        "a slice cannot be assigned from a whole buffer", "use `T.copy(source, destination)`");
    ir::Expr element = fold_cast(TRY(to_expr(value, span, buffer->type)), buffer->type, span);
    return builder.emit(ir::Fill{std::move(target), element}, span);
  }
  std::vector<ir::Expr> at = TRY(point_indices(*this, indices, span));
  ir::Expr element = fold_cast(TRY(to_expr(value, span, buffer->type)), buffer->type, span);
  if (const auto reducer = builder.reducers().find(buffer.get()); reducer != builder.reducers().end()) {
    if (auto value = contribution(reducer->second, element, buffer, at))
      return builder.emit(
          ir::Atomic{reducer->second, element_at(buffer, at, span), *value, ir::MemoryOrder::relaxed, nullptr}, span);
  }
  return builder.emit(ir::Store{buffer, std::move(at), std::move(element)}, span);
}

Result<std::optional<Value>> BufferObject::unary(Interpreter&, UnaryOp, Span span) {
  return whole_buffer_misused(*this, span);
}
Result<std::optional<Value>> BufferObject::binary(Interpreter&, BinaryOp, const Value&, bool, Span span) {
  return whole_buffer_misused(*this, span);
}
Result<std::optional<Value>> BufferObject::binary_in_place(Interpreter&, BinaryOp, const Value&, Span span) {
  return whole_buffer_misused(*this, span);
}

ir::Expr VarObject::load(Span span) const { return ir::load(buffer, indices, span); }

Status VarObject::store(const Value& value, Span span) const {
  ProgramBuilder& builder = *TRY(require_kernel(context, "an assignment to a tile variable", span));
  ir::Expr element = fold_cast(TRY(to_expr(value, span, buffer->type)), buffer->type, span);
  return builder.emit(ir::Store{buffer, indices, std::move(element)}, span);
}

Result<Value> VarObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (auto found = TRY(expression_attribute(context, make_expr(context, load(span)), name, span))) return *found;
  return Object::get_attribute(interpreter, name, span);
}
Result<Value> VarObject::get_item(Interpreter&, const Value& index, Span span) {
  if (constant_integer(index) == 0) return make_expr(context, load(span));
  return make_error(DiagnosticKind::index_error, span, "a tile variable has the one element 0");
}
Status VarObject::set_item(Interpreter&, const Value& index, Value value, Span span) {
  if (constant_integer(index) == 0) return store(value, span);
  return make_error(DiagnosticKind::index_error, span, "a tile variable has the one element 0");
}
Result<bool> VarObject::truth(Interpreter& interpreter, Span span) {
  return TileExpr(context, load(span)).truth(interpreter, span);
}
Result<std::optional<Value>> VarObject::unary(Interpreter& interpreter, UnaryOp op, Span span) {
  return make_expr(context, load(span)).get_if<TileExpr>()->unary(interpreter, op, span);
}
Result<std::optional<Value>> VarObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                               bool reflected, Span span) {
  return make_expr(context, load(span)).get_if<TileExpr>()->binary(interpreter, op, other, reflected, span);
}
Result<std::optional<Value>> VarObject::compare(Interpreter& interpreter, CompareOp op, const Value& other, Span span) {
  return make_expr(context, load(span)).get_if<TileExpr>()->compare(interpreter, op, other, span);
}

Result<std::vector<ir::Expr>> to_shape(const Value& value, std::string_view what, Span span) {
  std::vector<Value> items{value};
  if (auto* sequence = sequence_items(value)) items = *sequence;
  std::vector<ir::Expr> shape;
  for (const Value& item : items) {
    ir::Expr extent = TRY(to_index(item, what, span));
    if (auto constant = ir::constant_int(extent); constant && *constant < 0)
      return make_error(DiagnosticKind::value_error, span, fmt::format("{} is {}, which is negative", what, *constant));
    shape.push_back(std::move(extent));
  }
  return shape;
}

Result<std::vector<int64_t>> to_constant_shape(const Value& value, std::string_view what, Span span) {
  std::vector<Value> items{value};
  if (auto* sequence = sequence_items(value)) items = *sequence;
  std::vector<int64_t> shape;
  for (const Value& item : items) {
    auto extent = constant_integer(item);
    if (!extent && is_tile_value(item))
      return make_error(DiagnosticKind::non_constant_shape, span,
                        fmt::format("{} is known only at run time; tile shapes are compile-time constants", what),
                        "take the extent from the factory's arguments");
    int64_t size = TRY(meta_integer(item, what, span));
    if (size <= 0)
      return make_error(DiagnosticKind::value_error, span, fmt::format("{} must be positive, not {}", what, size));
    shape.push_back(size);
  }
  return shape;
}

Status check_rows(const ir::BufferData& buffer) {
  auto is_odd = [](const ir::Expr& size) { return ir::constant_int(size).value_or(0) % 2 != 0; };
  if (!buffer.type.is_nibble() || buffer.shape.empty()) return {};
  if (is_odd(buffer.shape.back()))
    return make_error(DiagnosticKind::shape_mismatch, buffer.span,
                      fmt::format("rows of `{}`, {}, do not begin at whole bytes", buffer.name, describe(buffer)),
                      "two elements share a byte: give the last axis an even extent");
  for (size_t axis = 0; axis < buffer.strides.size(); ++axis) {
    bool is_last = axis + 1 == buffer.strides.size();
    if (is_last ? ir::constant_int(buffer.strides[axis]) == 1 : !is_odd(buffer.strides[axis])) continue;
    return make_error(DiagnosticKind::shape_mismatch, buffer.span,
                      fmt::format("two elements of `{}`, {}, share a byte, which its strides do not allow", buffer.name,
                                  describe(buffer)),
                      "the last stride must be 1, the others even");
  }
  return {};
}

std::shared_ptr<ir::BufferData> declare_buffer(const TensorSpec& spec, std::string name, Span span) {
  return std::make_shared<ir::BufferData>(
      ir::BufferData{std::move(name), spec.dtype, ir::Scope::global, spec.shape, spec.strides, span, nullptr});
}

Result<Value> TensorSpecMaker::call(Interpreter&, CallArgs args) {
  static const TileSignature kContiguous("shape, dtype=, scope="), kStrided("shape, strides, dtype=");
  TileArguments given = TRY(TileArguments::match(context, name, strided ? kStrided : kContiguous, args));
  auto spec = std::make_shared<TensorSpec>();
  size_t dtype = strided ? 2 : 1;
  spec->dtype = given.has(dtype) ? TRY(resolve_dtype(context, given[dtype], given.span(dtype))) : ir::kFloat32;
  if (auto* memory = strided ? nullptr : given[2].get_if<BufferObject>())
    return view_of(context, *memory, {name, given[0], spec->dtype, args.span});
  spec->shape = TRY(to_shape(given[0], fmt::format("an extent of `{}`", name), given.span(0)));
  if (strided) spec->strides = TRY(to_shape(given[1], fmt::format("a stride of `{}`", name), given.span(1)));
  if (strided && spec->strides.size() != spec->shape.size())
    return make_error(
        DiagnosticKind::shape_mismatch, args.span,
        fmt::format("`{}` has {} extents but {} strides", name, spec->shape.size(), spec->strides.size()));
  return Value(std::move(spec));
}

Result<Value> TensorSpecMaker::get_item(Interpreter& interpreter, const Value& index, Span span) {
  CallArgs args;
  args.span = span;
  args.positional = index_list(index);
  // `T.Tensor[M, "float16"]` and `T.Tensor[[M, K], "float16"]` alike.
  return call(interpreter, std::move(args));
}

// Of what is no annotation, buffers belong to it.
Result<Value> TensorSpecMaker::get_attribute(Interpreter& interpreter, Name attribute, Span span) {
  if (attribute.text() == "__instancecheck__") return instance_check(is_buffer);
  return Object::get_attribute(interpreter, attribute, span);
}

Error no_constant_extent(const ir::BufferData& buffer, const ir::Expr& extent, Span span) {
  return make_error(DiagnosticKind::non_constant_shape, span,
                    fmt::format("the extent `{}` of this slice of `{}` is not a compile-time constant",
                                ir::to_text(extent), buffer.name),
                    "write it as `start : start + size` with a constant size");
}

std::string describe_extents(const std::vector<int64_t>& extents) { return fmt::format("{}", fmt::join(extents, "x")); }

std::string describe(const ir::BufferData& buffer) {
  std::vector<std::string> extents;
  for (const ir::Expr& extent : buffer.shape) extents.push_back(ir::to_text(extent));
  return fmt::format("{}[{}]", ir::to_string(buffer.type), fmt::join(extents, ", "));
}

Note declaration_note(const ir::BufferData& buffer) {
  return Note{buffer.span, fmt::format("`{}` is {} in {} memory, declared here", buffer.name, describe(buffer),
                                       ir::to_string(buffer.scope))};
}

}  // namespace tilepilot::stage
