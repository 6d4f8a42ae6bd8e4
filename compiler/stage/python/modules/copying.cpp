#include "compiler/stage/python/modules/copying.h"
#include "compiler/stage/python/objects/derived_values.h"

#include <fmt/format.h>

#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Value identity_of(const Object& object) { return Value(static_cast<int64_t>(reinterpret_cast<intptr_t>(&object))); }

// Copies containers and plain instances; with a memo, what they hold too.
class Copier {
 public:
  Copier(Interpreter& interpreter, std::shared_ptr<DictObject> memo, Span span)
      : interpreter_(interpreter), memo_(std::move(memo)), span_(span) {}

  Result<Value> copy(const Value& value) {
    auto* object = value.if_object();
    if (!object) return value;
    if (memo_) {
      if (const Value* known = TRY(memo_->find(interpreter_, identity_of(**object), span_))) return *known;
    }
    if (auto* list = value.get_if<ListObject>()) return copy_list(*list);
    if (auto* tuple = value.get_if<TupleObject>()) return memo_ ? copy_tuple(*tuple) : Result<Value>(value);
    if (auto* dict = value.get_if<DictObject>()) return copy_dict(*dict);
    if (value.get_if<SetObject>())
      return interpreter_.call_method(value, Name("copy"), CallArgs{{}, {}, span_, {}}, span_);
    if ((*object)->as_instance()) return copy_instance(value, *(*object)->as_instance());
    return copy_native(value, **object);
  }

 private:
  Result<Value> inner(const Value& value) { return memo_ ? copy(value) : Result<Value>(value); }

  Status remember(const Object& original, Value copy) {
    return memo_ ? remember_copy(interpreter_, *memo_, original, std::move(copy), span_) : Status();
  }

  Name method_name() const {
    static const Name kCopy("__copy__"), kDeepCopy("__deepcopy__");
    return memo_ ? kDeepCopy : kCopy;
  }

  Result<Value> let_it_copy_itself(const Value& value) {
    CallArgs args{{}, {}, span_, {}};
    if (memo_) args.positional.push_back(Value(memo_));
    Value made = TRY(interpreter_.call_method(value, method_name(), std::move(args), span_));
    TRY(remember(**value.if_object(), made));
    return made;
  }

  Result<Value> copy_list(ListObject& list) {
    auto made = std::make_shared<ListObject>();
    TRY(remember(list, Value(made)));
    for (size_t i = 0; i < list.items.size(); ++i) made->items.push_back(TRY(inner(list.items[i])));
    return Value(std::move(made));
  }

  Result<Value> copy_tuple(TupleObject& tuple) {
    std::vector<Value> items;
    for (const Value& item : tuple.items) items.push_back(TRY(copy(item)));
    auto made = std::make_shared<TupleObject>(std::move(items));
    made->fields = tuple.fields;
    return Value(std::move(made));
  }

  Result<Value> copy_dict(DictObject& dict) {
    auto made = std::make_shared<DictObject>();
    made->flavour = dict.flavour;
    made->default_factory = dict.default_factory;
    TRY(remember(dict, Value(made)));
    for (const HashTable::Entry& entry : std::vector<HashTable::Entry>(dict.table.entries())) {
      if (!entry.live) continue;
      Value key = TRY(inner(entry.key)), value = TRY(inner(entry.value));
      TRY(made->table.set(interpreter_, std::move(key), std::move(value), span_));
    }
    return Value(std::move(made));
  }

  Result<Value> copy_instance(const Value& value, InstanceObject& instance) {
    if (instance.class_object()->lookup(method_name())) return let_it_copy_itself(value);
    auto* holder = value.get_if<HeldInstance>();
    if (!holder && &instance.type() != &InstanceObject::kType) {
      return type_error(span_, fmt::format("a '{}' object cannot be copied", instance.type_name()));
    }
    auto made = std::make_shared<InstanceObject>(instance.class_object());
    if (holder) made = std::make_shared<HeldInstance>(instance.class_object(), Value());
    interpreter_.watch(made);
    TRY(remember(instance, Value(made)));
    for (Name name : std::vector<Name>(instance.attributes().names())) {
      made->attributes().set(name, TRY(inner(*instance.attributes().find(name))));
    }
    if (holder) TRY(copy_held(*holder, static_cast<HeldInstance&>(*made)));
    return Value(std::move(made));
  }

  Status copy_held(const HeldInstance& original, HeldInstance& made) {
    if (original.items_are_attributes) made.items_are_attributes = true;
    made.held = TRY(copy(original.held));
    return {};
  }

  // Functions, classes and modules stand for themselves.
  Result<Value> copy_native(const Value& value, Object& object) {
    Result<Value> method = object.get_attribute(interpreter_, method_name(), span_);
    return method.ok() ? let_it_copy_itself(value) : Result<Value>(value);
  }

  Interpreter& interpreter_;
  std::shared_ptr<DictObject> memo_;  // null: a shallow copy
  Span span_;
};

Result<Value> shallow_copy(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"copy", {"x"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Copier(interpreter, nullptr, args.span).copy(*read[0]);
}

Result<Value> deepcopy(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"deepcopy", {"x", "memo"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto memo = read[1] ? read[1]->get_shared<DictObject>() : nullptr;
  return deep_copy(interpreter, *read[0], memo ? memo : std::make_shared<DictObject>(), args.span);
}

}  // namespace

Result<Value> deep_copy(Interpreter& interpreter, const Value& value, const std::shared_ptr<DictObject>& memo,
                        Span span) {
  return Copier(interpreter, memo, span).copy(value);
}

Status remember_copy(Interpreter& interpreter, DictObject& memo, const Object& original, Value copy, Span span) {
  return memo.table.set(interpreter, identity_of(original), std::move(copy), span);
}

std::shared_ptr<DictObject> memo_of(const CallArgs& args) {
  auto given = args.positional.empty() ? nullptr : args.positional[0].get_shared<DictObject>();
  return given ? given : std::make_shared<DictObject>();
}

void fill_copy(Interpreter&, ModuleObject& module) {
  module.function("copy", shallow_copy);
  module.function("deepcopy", deepcopy);
}

}  // namespace tilepilot::stage
