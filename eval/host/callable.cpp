#include "eval/host/callable.h"

#include <fmt/format.h>

#include "eval/host/autograd.h"
#include "eval/host/edge.h"
#include "eval/host/host_state.h"
#include "eval/torch/widened_call.h"

namespace tilepilot::eval {

using c10::IValue;
using stage::CallArgs;
using stage::Value;
using torch::jit::Stack;

namespace {

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

bool is_out_of_memory(const std::exception& exception, std::string_view text) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&exception) || dynamic_cast<const std::bad_alloc*>(&exception) ||
         text.find("can't allocate memory") != std::string_view::npos ||
         text.find("_STATUS_ALLOC_FAILED") != std::string_view::npos;  // of CUDA's libraries
}

// The GPU stopped working, by this operator or by what ran on it before.
bool is_device_failure(std::string_view text) { return text.substr(0, 11) == "CUDA error:"; }

}  // namespace

Error torch_error(std::string_view what, Span span, const std::exception& exception) {
  if (auto* own = dynamic_cast<const EvaluatorError*>(&exception)) return make_error(own->error);
  auto* torch = dynamic_cast<const c10::Error*>(&exception);
  std::string text = torch ? torch->what_without_backtrace() : exception.what();
  auto kind = DiagnosticKind::tensor_operation_failed;
  if (is_out_of_memory(exception, text)) kind = DiagnosticKind::out_of_memory;
  if (is_device_failure(text)) kind = DiagnosticKind::device_failed;
  std::string prefix = what.empty() ? std::string() : fmt::format("`{}`: ", what);
  return make_error(kind, span, prefix + first_line(text));
}

Overload::Overload(Signature signature_, c10::OperatorHandle handle, std::optional<c10::OperatorHandle> in_place)
    : signature(std::move(signature_)), handle_(handle), in_place_(in_place) {
  for (size_t i = 0; i < signature.parameters().size(); ++i) {
    std::string_view name = signature.parameters()[i].name.text();
    if (name == "inplace") {
      inplace_index_ = i;
    } else if (name != "_stacklevel") {
      forwarded_.push_back(i);
    }
  }
}

// What LibTorch has for no 16-bit type on the CPU runs in float32, as it does on the judge's side. A person's script
// that runs on a GPU moves to the CPU what a GPU lacks (products of integers); here tensors have one place, so that the
// operator moves.
void Overload::run(Stack& stack, bool may_leave_gpu) const {
  const bool has_narrow = has_16_bit(stack), may_move = may_leave_gpu && is_on_gpu(stack);
  if (!has_narrow && !may_move) return run_as_it_is(stack);
  Stack arguments = stack;
  try {
    run_as_it_is(stack);
  } catch (const std::exception& error) {
    const bool widens = has_narrow && lacks_type(error);
    if (!widens && !(may_move && lacks_any_type(error))) throw;
    stack = std::move(arguments);
    const auto again = [&] { run_as_it_is(stack); };
    if (widens)
      call_widened(stack, again);
    else
      call_on_cpu(stack, again);
  }
}

void Overload::run_as_it_is(Stack& stack) const {
  if (body_) {
    IValue result = body_(Arguments(signature, stack));
    stack.clear();
    stack.push_back(std::move(result));
    return;
  }
  if (forwarded_.empty()) {
    handle_->callBoxed(stack);
    return;
  }
  bool in_place = in_place_ && inplace_index_ != Signature::npos && stack[inplace_index_].toBool();
  Stack inner;
  const auto& handle = in_place ? *in_place_ : *handle_;
  inner.reserve(handle.schema().arguments().size());
  for (size_t index : forwarded_) inner.push_back(std::move(stack[index]));
  for (size_t i = inner.size(); i < handle.schema().arguments().size(); ++i) {
    inner.push_back(*handle.schema().arguments()[i].default_value());
  }
  stack = std::move(inner);
  handle.callBoxed(stack);
}

void Callable::sort() {
  std::vector<Signature*> order;
  for (auto& overload : overloads_) order.push_back(&overload->signature);
  sort_overloads(order);
  std::vector<std::unique_ptr<Overload>> sorted;
  for (Signature* signature : order) {
    for (auto& overload : overloads_) {
      if (overload && &overload->signature == signature) sorted.push_back(std::move(overload));
    }
  }
  overloads_ = std::move(sorted);
}

namespace {

Value results_to_value(HostState& state, const Overload& overload, Stack& stack, const Value* self) {
  if (stack.empty()) return Value();
  if (stack.size() == 1) return to_value(state, stack[0], self);
  std::vector<Value> items;
  for (const IValue& item : stack) items.push_back(to_value(state, item));
  if (overload.result_names.empty()) return stage::make_tuple(std::move(items));
  return make_named_tuple(overload.result_names, std::move(items));
}

// `requires_grad=True`, which functions that make tensors take.
bool wants_gradient(const CallArgs& args) {
  static const stage::Name kRequiresGrad("requires_grad");
  for (auto& [name, value] : args.keywords) {
    if (name == kRequiresGrad) return value.if_bool() && *value.if_bool();
  }
  return false;
}

}  // namespace

Result<Value> Callable::call(HostState& state, const Value* self, const CallArgs& args) const {
  const Value* first = self ? self : args.positional.empty() ? nullptr : &args.positional[0];
  try {
    Stack stack;
    stack.reserve(8);
    for (auto& overload : overloads_) {
      stack.clear();
      if (!overload->signature.match(state, self, args, stack)) continue;
      overload->run(stack, state.is_script());
      if (auto* memory = state.call_memory(); memory && leaves_memory_unwritten(name_) && stack[0].isTensor())
        stack[0] = memory->unseen(stack[0].toTensor());
      if (wants_gradient(args)) stack[0].toTensor().set_requires_grad(true);
      return results_to_value(state, *overload, stack, first);
    }
  } catch (const std::exception& exception) { return torch_error(name_, args.span, exception); }
  return no_match(self, args);
}

Result<Value> Callable::call(HostState& state, const Value& self, const Value& other, Span span) const {
  CallArgs args;
  args.positional.push_back(other);
  args.span = span;
  return call(state, &self, args);
}

Error Callable::no_match(const Value* self, const CallArgs& args) const {
  std::string given;
  auto append = [&](std::string_view text) { given += (given.empty() ? "" : ", ") + std::string(text); };
  if (self) append(self->type_name());
  for (const Value& value : args.positional) append(value.type_name());
  for (auto& [name, value] : args.keywords) append(fmt::format("{}={}", name.text(), value.type_name()));
  Error error = make_error(DiagnosticKind::no_matching_overload, args.span,
                           fmt::format("no overload of `{}` accepts ({})", name_, given));
  for (auto& overload : overloads_) {
    if (!overload->signature.has_out()) error->note({}, fmt::format("`{}`", overload->signature.text()));
  }
  return error;
}

Value to_value(HostState& state, const IValue& value, const Value* self) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return Value();
    const at::Tensor* same = self ? tensor_of(*self) : nullptr;
    if (same && same->is_same(tensor)) return *self;
    return state.wrap(tensor);
  }
  if (value.isNone()) return Value();
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return Value(value.toStringRef());
  if (value.isScalar()) {
    at::Scalar scalar = value.toScalar();
    if (scalar.isBoolean()) return scalar.toBool();
    return scalar.isFloatingPoint() ? Value(scalar.toDouble()) : Value(scalar.toLong());
  }
  std::vector<Value> items;
  if (value.isTuple()) {
    for (const IValue& item : value.toTupleRef().elements()) items.push_back(to_value(state, item));
  } else if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) items.push_back(state.wrap(item));
  } else if (value.isList()) {
    for (const IValue& item : value.toListRef()) items.push_back(to_value(state, item));
    return stage::make_list(std::move(items));
  } else if (value.isDevice()) {
    return std::make_shared<DeviceObject>(state.shown_device());
  }
  return stage::make_tuple(std::move(items));
}

namespace {

// What max(dim=...) returns: a tuple whose items also have names.
struct NamedTuple final : stage::TypedObject<NamedTuple> {
  static constexpr stage::Type kType{"tuple"};
  NamedTuple(std::vector<std::string> names_, std::vector<Value> items)
      : names(std::move(names_)), tuple(std::make_shared<stage::TupleObject>(std::move(items))) {}

  Result<Value> get_attribute(stage::Interpreter& interpreter, stage::Name name, Span span) override {
    for (size_t i = 0; i < names.size(); ++i) {
      if (name.text() == names[i]) return tuple->items[i];
    }
    return tuple->get_attribute(interpreter, name, span);
  }
  Result<Value> get_item(stage::Interpreter& interpreter, const Value& index, Span span) override {
    return tuple->get_item(interpreter, index, span);
  }
  Result<int64_t> length(stage::Interpreter&, Span) override { return static_cast<int64_t>(names.size()); }
  Result<std::unique_ptr<stage::Iterator>> iterate(stage::Interpreter& interpreter, Span span) override {
    return tuple->iterate(interpreter, span);
  }
  Result<std::string> repr(stage::Interpreter& interpreter) override { return tuple->repr(interpreter); }

  std::vector<std::string> names;
  std::shared_ptr<stage::TupleObject> tuple;
};

}  // namespace

Value make_named_tuple(std::vector<std::string> names, std::vector<Value> items) {
  return std::make_shared<NamedTuple>(std::move(names), std::move(items));
}

}  // namespace tilepilot::eval
