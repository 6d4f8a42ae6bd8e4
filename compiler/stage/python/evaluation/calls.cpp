// Call expressions: arguments in order, and shortcuts that save the bound method of `object.method(...)`.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

using namespace syntax;

namespace {

// Python functions do not ask where their arguments stand; native code may, for its messages.
bool wants_spans(const Value& callee) { return !callee.get_if<FunctionObject>() && !callee.get_if<BoundMethod>(); }

}  // namespace

Result<CallArgs> Evaluator::arguments(const CallExpr& call, Span span, const Value* self, bool with_spans) {
  CallArgs args;
  args.span = span;
  args.positional.reserve(call.args.size() + (self ? 1 : 0));
  if (self) args.positional.push_back(*self);
  if (with_spans && !self) args.positional_spans.reserve(call.args.size());
  for (const ExprPtr& each : call.args) {
    if (auto* starred = std::get_if<StarredExpr>(&each->node)) {
      Value spread = TRY(eval(*starred->value));
      for (Value& item : TRY(interpreter_.to_vector(spread, each->span))) {
        args.positional.push_back(std::move(item));
        if (with_spans && !self) args.positional_spans.push_back(each->span);
      }
    } else {
      args.positional.push_back(TRY(eval(*each)));
      if (with_spans && !self) args.positional_spans.push_back(each->span);
    }
  }
  for (const Keyword& keyword : call.keywords) {
    Value value = TRY(eval(*keyword.value));
    if (keyword.name.id()) {
      args.keywords.emplace_back(keyword.name, std::move(value));
    } else {
      TRY(add_spread_keywords(value, args, keyword.span));
    }
  }
  return args;
}

Status Evaluator::add_spread_keywords(const Value& mapping, CallArgs& args, Span span) {
  auto* dict = held_value(mapping).get_if<DictObject>();
  if (!dict) {
    return type_error(span, fmt::format("argument after ** must be a mapping, not {}", mapping.type_name()));
  }
  for (const HashTable::Entry& entry : dict->table.entries()) {
    if (!entry.live) continue;
    const std::string* key = entry.key.if_string();
    if (!key) return type_error(span, "keywords must be strings");
    if (args.keyword(*key)) {
      return make_error(DiagnosticKind::wrong_arguments, span,
                        fmt::format("got multiple values for keyword argument '{}'", *key));
    }
    args.keywords.emplace_back(Name(*key), entry.value);
  }
  return {};
}

Result<Value> Evaluator::call_value(const Value& callee, CallArgs args) {
  if (auto* function = callee.get_if<FunctionObject>()) {
    Span span = args.span;
    std::vector<Value> values = TRY(interpreter_.bind_arguments(*function, std::move(args)));
    return interpreter_.run_function(*function, std::move(values), span);
  }
  return interpreter_.call(callee, std::move(args));
}

Result<Value> Evaluator::visit(const CallExpr& call, Span span) {
  if (auto* attribute = std::get_if<AttributeExpr>(&call.callee->node)) return call_method(call, *attribute, span);
  if (auto* name = std::get_if<NameExpr>(&call.callee->node); name && call.args.empty()) {
    if (std::optional<Value> special = TRY(super_call(call, *name, span))) return *std::move(special);
  }
  Value callee = TRY(eval(*call.callee));
  CallArgs args = TRY(arguments(call, span, nullptr, wants_spans(callee)));
  return call_value(callee, std::move(args));
}

Result<Value> Evaluator::call_method(const CallExpr& call, const AttributeExpr& method, Span span) {
  Value object = TRY(eval(*method.object));
  auto* reference = object.if_object();
  if (!reference) {
    CallArgs args = TRY(arguments(call, span, nullptr, false));
    return interpreter_.call_method(object, method.name, std::move(args), method.name_span);
  }
  if (InstanceObject* instance = (*reference)->as_instance(); instance && !instance->attributes().find(method.name)) {
    Value* member = instance->class_object()->lookup(method.name);
    if (member && member->get_if<FunctionObject>()) {
      Value function = *member;
      CallArgs args = TRY(arguments(call, span, &object, false));
      return call_value(function, std::move(args));
    }
  }
  if (auto* module = object.get_if<ModuleObject>()) {
    Value callee = TRY(module->get_attribute(interpreter_, method.name, method.name_span));
    CallArgs args = TRY(arguments(call, span, nullptr, wants_spans(callee)));
    return call_value(callee, std::move(args));
  }
  CallArgs args = TRY(arguments(call, span, nullptr, true));
  return (*reference)->call_method(interpreter_, method.name, std::move(args), method.name_span);
}

// `super()` without arguments means the class that holds the running method, and its first parameter.
Result<std::optional<Value>> Evaluator::super_call(const CallExpr&, const NameExpr& callee, Span span) {
  static const Name kSuper("super");
  if (callee.name != kSuper) return std::optional<Value>();
  Value* super = interpreter_.builtins_.find(kSuper);
  Slot slot = activation_.layout.find(kSuper);
  if (slot.storage != Storage::global || !super || find_name(kSuper, slot) != super) return std::optional<Value>();
  FunctionObject* function = activation_.function;
  std::shared_ptr<ClassObject> owner = function ? function->owner.lock() : nullptr;
  if (!owner) {
    Error error = interpreter_.raise("RuntimeError", "super(): no arguments", span);
    error->with_hint("call it inside a method, or as `super(Class, self)`");
    return error;
  }
  std::optional<Value> self;
  if (!function->parameters->empty() && activation_.layout.kind == ScopeLayout::Kind::function) {
    Slot first = activation_.layout.find(function->parameters->front().name);
    if (Value* found = find_name(function->parameters->front().name, first)) self = *found;
  }
  if (!self) return interpreter_.raise("RuntimeError", "super(): no arguments", span);
  return std::optional<Value>(std::make_shared<SuperObject>(std::move(owner), *std::move(self)));
}

}  // namespace tilepilot::stage
