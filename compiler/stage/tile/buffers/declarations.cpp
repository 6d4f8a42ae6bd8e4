#include "compiler/stage/tile/buffers/declarations.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/one_symbol.h"
#include "compiler/ir/text/text.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"

namespace tilepilot::stage {

Value Declarations::add_tensor(TileContext& context, Name name, std::optional<TensorType> actual, Span span) {
  TensorSpec unknown;
  unknown.dtype = actual ? actual->dtype : ir::kFloat32;
  auto object = std::make_shared<BufferObject>(context, declare_buffer(unknown, name.str(), span));
  object->named = true;
  tensors.push_back({name, std::move(actual), object, false});
  return Value(std::move(object));
}

Result<Value> Declarations::constant(TileContext& context, const std::string& name, Span span) {
  asked_.insert(name);
  if (auto known = sizes.find(name); known != sizes.end()) return Value(known->second);
  if (!finding_sizes)
    return make_error(DiagnosticKind::invalid_jit, span, fmt::format("nothing says what the size `{}` is", name),
                      fmt::format("annotate a tensor with `{0}` alone as an extent or stride and pass that tensor, or "
                                  "pass `{0}=...`",
                                  name));
  ir::Var& var = unknown_[name];
  if (!var) var = ir::make_var(name, ir::kInt32);
  return make_expr(context, ir::var_ref(var, span));
}

Result<Value> Declarations::output(TileContext& context, const TensorSpec& spec, Span span) {
  auto object =
      std::make_shared<BufferObject>(context, declare_buffer(spec, fmt::format("output{}", outputs.size()), span));
  context.builder->add_parameter(object->buffer);
  outputs.push_back(object);
  return Value(std::move(object));
}

Status Declarations::annotate(TileContext& context, Name name, const Value& annotation, Span span) {
  auto* spec = annotation.get_if<TensorSpec>();
  if (!spec) return {};
  for (Tensor& tensor : tensors) {
    if (tensor.name != name) continue;
    TRY(declare(context, tensor, *spec, span));
    if (!finding_sizes || !all_annotated()) return {};
    sizes_found = true;
    return make_error(DiagnosticKind::invalid_jit, span, "the sizes are known; this pass ends here");
  }
  return make_error(DiagnosticKind::invalid_jit, span,
                    fmt::format("`{}` is annotated as a tensor but is no tensor argument of the function", name.text()),
                    "pass a tensor for it; outputs are made by `T.empty`");
}

Status Declarations::declare(TileContext& context, Tensor& tensor, const TensorSpec& spec, Span span) {
  if (tensor.actual && spec.shape.size() != tensor.actual->shape.size())
    return make_error(DiagnosticKind::bad_kernel_argument, span,
                      fmt::format("`{}` is annotated with {} dimensions, but the tensor has {}", tensor.name.text(),
                                  spec.shape.size(), tensor.actual->shape.size()));
  if (finding_sizes && tensor.actual) TRY(find_sizes(tensor, spec, span));
  ir::BufferData& buffer = *tensor.object->buffer;
  buffer.type = spec.dtype;
  buffer.shape = spec.shape;
  buffer.strides = spec.strides;
  if (!tensor.annotated) context.builder->add_parameter(tensor.object->buffer);
  tensor.annotated = true;
  return {};
}

bool Declarations::all_annotated() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return tensor.annotated; });
}

Status Declarations::find_sizes(const Tensor& tensor, const TensorSpec& spec, Span span) {
  const runtime::TensorView actual =
      runtime::as_parameter({nullptr, tensor.actual->dtype, tensor.actual->shape, tensor.actual->strides}, spec.dtype);
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) {
    std::string what = fmt::format("axis {} of `{}` has extent", axis, tensor.name.text());
    TRY(find_size(spec.shape[axis], actual.shape[axis], what, span));
  }
  for (size_t axis = 0; axis < spec.strides.size() && axis < actual.strides.size(); ++axis) {
    std::string what = fmt::format("axis {} of `{}` has stride", axis, tensor.name.text());
    TRY(find_size(spec.strides[axis], actual.strides[axis], what, span));
  }
  return {};
}

Status Declarations::find_size(const ir::Expr& declared, int64_t actual, const std::string& what, Span span) {
  const auto form = ir::one_symbol(declared);
  for (const auto& [name, var] : unknown_) {
    if (!form || form->symbol != var) continue;
    const auto value = form->solve(actual);
    if (!value)
      return make_error(DiagnosticKind::bad_kernel_argument, span,
                        fmt::format("{} {}, which is no `{}`", what, actual, ir::to_text(declared)));
    auto [known, fresh] = sizes.emplace(name, *value);
    if (!fresh && known->second != *value)
      return make_error(DiagnosticKind::bad_kernel_argument, span,
                        fmt::format("`{}` is {} here, but {} {}", name, known->second, what, actual));
  }
  return {};
}

Status Declarations::check_annotated(Span span) const {
  for (const Tensor& tensor : tensors) {
    if (tensor.annotated) continue;
    return make_error(DiagnosticKind::invalid_jit, span,
                      fmt::format("the tensor `{}` is not annotated before this point", tensor.name.text()),
                      fmt::format("write `{}: T.Tensor[[M, N], dtype]` in the body", tensor.name.text()));
  }
  return {};
}

void Declarations::sort_parameters(ir::Program& program, const FunctionObject& function) const {
  auto rank = [&](const std::variant<ir::Buffer, ir::Var>& parameter) {
    const std::string& name = std::visit([](const auto& p) -> const std::string& { return p->name; }, parameter);
    size_t count = function.parameters->size();
    auto* buffer = std::get_if<ir::Buffer>(&parameter);
    for (size_t i = 0; buffer && i < outputs.size(); ++i)
      if (outputs[i]->buffer == *buffer) return count + i;
    for (size_t i = 0; i < count; ++i)
      if ((*function.parameters)[i].name.text() == name) return i;
    return count;
  };
  std::stable_sort(program.parameters.begin(), program.parameters.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

Result<std::vector<size_t>> Declarations::returned_outputs(const ir::Program& program, const Value& returned,
                                                           Span function) const {
  std::vector<Value> items;
  if (auto* sequence = sequence_items(returned))
    items = *sequence;
  else if (!returned.is_none())
    items = {returned};
  std::vector<size_t> positions;
  for (const Value& item : items) positions.push_back(TRY(output_position(program, item, function)));
  if (positions.size() == outputs.size()) return positions;
  return make_error(DiagnosticKind::invalid_jit, function,
                    fmt::format("`{}` makes {} output{} with `T.empty` but returns {}", program.name, outputs.size(),
                                outputs.size() == 1 ? "" : "s", positions.size()),
                    "return every output, as in `return C`");
}

Result<size_t> Declarations::output_position(const ir::Program& program, const Value& item, Span function) const {
  auto* object = item.get_if<BufferObject>();
  for (const auto& output : outputs) {
    if (output.get() != object) continue;
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      auto* buffer = std::get_if<ir::Buffer>(&program.parameters[i]);
      if (buffer && *buffer == object->buffer) return i;
    }
  }
  return make_error(DiagnosticKind::invalid_jit, function,
                    fmt::format("`{}` returns something that is no output", program.name),
                    "return what `T.empty` made; tensors that are written in place need not be returned");
}

bool annotates_in_body(const FunctionObject& function, size_t i) {
  if (!function.definition) return false;
  return std::any_of(function.definition->body.begin(), function.definition->body.end(), [&](const syntax::Stmt& stmt) {
    auto* annotation = std::get_if<syntax::AnnAssignStmt>(&stmt.node);
    auto* name = annotation && !annotation->value ? std::get_if<syntax::NameExpr>(&annotation->target->node) : nullptr;
    return name && name->name == (*function.parameters)[i].name;
  });
}

}  // namespace tilepilot::stage
