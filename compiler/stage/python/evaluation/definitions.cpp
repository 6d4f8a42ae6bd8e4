// def, class and lambda's function object.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/foreign.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

using namespace syntax;

namespace {

// `__init_subclass__` of a base that is written in Python; null: there is none.
const Value* subclass_hook(const ClassObject& made) {
  static const Name kInitSubclass("__init_subclass__");
  for (size_t i = 1; i < made.resolution_order.size(); ++i) {
    ClassObject* base = made.resolution_order[i];
    if (const Value* found = base->user_defined ? base->members.find(kInitSubclass) : nullptr) return found;
  }
  return nullptr;
}

}  // namespace

// The cells that a nested scope captures from this one.
std::vector<CellRef> Evaluator::close_over(const ScopeLayout& inner) {
  std::vector<CellRef> cells;
  cells.reserve(inner.captured_from.size());
  for (Slot from : inner.captured_from) {
    bool own = from.storage == Storage::cell;
    cells.push_back(own ? activation_.cells[from.index] : (*activation_.captured)[from.index]);
  }
  return cells;
}

std::shared_ptr<FunctionObject> Evaluator::make_function(const void* node, const std::vector<Parameter>& parameters) {
  auto function = std::make_shared<FunctionObject>();
  function->module = activation_.module;
  function->parameters = &parameters;
  function->layout = activation_.layout.nested(node);
  function->closure = close_over(*function->layout);
  function->globals = activation_.globals;
  if (activation_.class_object)
    function->owner = activation_.class_object;
  else if (activation_.function)
    function->owner = activation_.function->owner;
  if (!function->closure.empty()) interpreter_.core_->watch(function);
  return function;
}

Status Evaluator::add_defaults(FunctionObject& function) {
  function.only_positional = true;
  for (const Parameter& parameter : *function.parameters) {
    std::optional<Value> value;
    if (parameter.default_value) value = TRY(eval(*parameter.default_value));
    function.defaults.push_back(std::move(value));
    bool plain = parameter.kind == Parameter::Kind::positional || parameter.kind == Parameter::Kind::positional_only;
    function.only_positional = function.only_positional && plain;
  }
  return {};
}

Status Evaluator::add_annotations(FunctionObject& function) {
  for (const Parameter& parameter : *function.parameters) {
    std::optional<Value> value;
    if (parameter.annotation) value = TRY(annotation_value(*parameter.annotation));
    function.annotations.push_back(std::move(value));
  }
  if (function.definition->returns) function.returns = TRY(annotation_value(*function.definition->returns));
  return {};
}

// After `from __future__ import annotations` an annotation may name what does not exist yet: then it is None.
Result<Value> Evaluator::annotation_value(const Expr& annotation) {
  static const Name kAnnotations("annotations");
  auto value = eval(annotation);
  if (value.ok() || value.error().kind != DiagnosticKind::unknown_name) return value;
  const Value* feature = activation_.globals->members.find(kAnnotations);
  auto* module = feature ? feature->get_if<ModuleObject>() : nullptr;
  if (module && module->name == "__future__.annotations") return Value();
  return value;
}

// The decorators' own values come first, from the top; they are applied from the bottom.
Result<Value> Evaluator::decorate(const std::vector<ExprPtr>& expressions, const std::vector<Value>& decorators,
                                  Value value) {
  for (size_t i = decorators.size(); i-- > 0;) {
    CallArgs args{{std::move(value)}, {}, expressions[i]->span, {}};
    value = TRY(call_value(decorators[i], std::move(args)));
  }
  return value;
}

// What the decorators are. One from a module that is missing makes what it decorates unusable: that is an error here.
Result<std::vector<Value>> Evaluator::decorator_values(const std::vector<ExprPtr>& expressions) {
  std::vector<Value> decorators = TRY(items(expressions));
  for (size_t i = 0; i < decorators.size(); ++i) {
    if (auto* foreign = decorators[i].get_if<ForeignObject>()) return foreign->use(interpreter_, expressions[i]->span);
  }
  return decorators;
}

Result<Flow> Evaluator::visit(const FunctionDef& node, Span) {
  auto decorators = decorator_values(node.decorators);
  if (!decorators.ok()) return bind_stand_in(node.name, std::move(decorators).take_error());
  std::shared_ptr<FunctionObject> function = make_function(&node, node.parameters);
  function->name = node.name;
  function->definition = &node;
  function->span = node.name_span;
  TRY(add_defaults(*function));
  TRY(add_annotations(*function));
  bind(node.name, TRY(decorate(node.decorators, *decorators, Value(std::move(function)))));
  return Flow::normal;
}

Result<std::vector<std::shared_ptr<ClassObject>>> Evaluator::base_classes(const ClassDef& node) {
  std::vector<std::shared_ptr<ClassObject>> bases;
  for (const ExprPtr& each : node.bases) {
    Value base = TRY(eval(*each));
    if (auto* foreign = base.get_if<ForeignObject>()) return foreign->use(interpreter_, each->span);
    auto class_object = base.get_shared<ClassObject>();
    if (!class_object) {
      static const Name kGeneric("__mro_entries__");
      if (base.if_object() && interpreter_.get_attribute(base, kGeneric, each->span).ok()) continue;
      return type_error(each->span, fmt::format("a class cannot derive from a '{}' object", base.type_name()));
    }
    if (class_object->sealed) {
      return make_error(DiagnosticKind::unsupported_syntax, each->span,
                        fmt::format("a class cannot derive from `{}` here", class_object->name.text()),
                        "hold one in an attribute instead");
    }
    bases.push_back(std::move(class_object));
  }
  return bases;
}

// What `__init_subclass__` of a base gets. `metaclass=ABCMeta`, which is `type` here, and `total=` of a TypedDict
// change nothing.
Result<Evaluator::Keywords> Evaluator::class_keywords(const ClassDef& node, const ClassObject& made) {
  Keywords keywords;
  for (const Keyword& keyword : node.keywords) {
    Value value = TRY(eval(*keyword.value));
    bool harmless = keyword.name.id() && keyword.name.text() == "metaclass" && value.if_object() &&
                    *value.if_object() == *interpreter_.find_builtin("type")->if_object();
    if (harmless || (keyword.name.id() && keyword.name.text() == "total")) continue;
    if (keyword.name.id() && keyword.name.text() != "metaclass" && subclass_hook(made)) {
      keywords.emplace_back(keyword.name, std::move(value));
      continue;
    }
    return make_error(DiagnosticKind::unsupported_syntax, keyword.span,
                      "metaclasses and other keywords of a class are not supported");
  }
  return keywords;
}

// Its members learn their names (`__set_name__`), its bases that it is there.
Status Evaluator::tell_of_class(const std::shared_ptr<ClassObject>& made, Keywords keywords, Span span) {
  static const Name kSetName("__set_name__");
  for (Name name : std::vector<Name>(made->members.names())) {
    const Value member = *made->members.find(name);
    if (std::optional<Value> hook = descriptor_method(member, kSetName))
      TRY(interpreter_.call(*hook, CallArgs{{Value(made), Value(name.text())}, {}, span, {}}));
  }
  if (const Value* hook = subclass_hook(*made)) {
    auto* method = hook->get_if<ClassMethod>();
    const Value function = method ? method->function : *hook;
    TRY(interpreter_.call(function, CallArgs{{Value(made)}, std::move(keywords), span, {}}));
  }
  return {};
}

Result<Flow> Evaluator::visit(const ClassDef& node, Span) {
  auto decorators = decorator_values(node.decorators);
  if (!decorators.ok()) return bind_stand_in(node.name, std::move(decorators).take_error());
  auto bases = base_classes(node);
  if (!bases.ok()) return bind_stand_in(node.name, std::move(bases).take_error());
  std::shared_ptr<ClassObject> made = TRY(make_class(interpreter_, node.name, *std::move(bases), node.name_span));
  made->user_defined = true;
  Keywords keywords = TRY(class_keywords(node, *made));
  made->members.set(Name("__module__"), Value(activation_.globals->name));
  const auto& layout = activation_.layout.nested(&node);
  Activation inner(*layout, activation_.module, activation_.globals);
  std::vector<CellRef> captured = close_over(*layout);
  inner.captured = &captured;
  inner.function = activation_.function;
  inner.class_object = made;
  TRY(Evaluator(interpreter_, inner).run(node.body));
  TRY(tell_of_class(made, std::move(keywords), node.name_span));
  Value result = made;
  if (const auto* derive = made->find_derive()) result = TRY((*derive)(interpreter_, made, node.name_span));
  bind(node.name, TRY(decorate(node.decorators, *decorators, std::move(result))));
  return Flow::normal;
}

Result<Flow> Evaluator::bind_stand_in(Name definition, Error error) {
  auto stand_in = stand_in_for(definition, *error);
  if (!stand_in) return error;
  bind(definition, Value(std::move(stand_in)));
  return Flow::normal;
}

}  // namespace tilepilot::stage
