// The modules `contextlib` (nullcontext, suppress), `copy`, `warnings` and `abc`.
#include <fmt/format.h>

#include "compiler/stage/python/containers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/native.h"

namespace tilepilot::stage {

namespace {

struct NullContext final : TypedObject<NullContext> {
  static constexpr Type kType{"nullcontext"};
  Result<Value> enter(Interpreter&, Span) override { return value; }
  Value value;
};

Result<Value> null_context(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"nullcontext", {"enter_result"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto made = std::make_shared<NullContext>();
  if (read[0]) made->value = *read[0];
  return Value(std::move(made));
}

// Copies containers and plain instances; with `deep`, what they hold too. `done` maps an object to its copy.
class Copier {
 public:
  Copier(Interpreter& interpreter, bool deep, Span span) : interpreter_(interpreter), deep_(deep), span_(span) {}

  Result<Value> copy(const Value& value) {
    auto* object = value.if_object();
    if (!object) return value;
    if (auto known = done_.find(object->get()); known != done_.end()) return known->second;
    if (auto* list = value.get_if<ListObject>()) return copy_list(*list);
    if (auto* tuple = value.get_if<TupleObject>()) return deep_ ? copy_tuple(*tuple) : Result<Value>(value);
    if (auto* dict = value.get_if<DictObject>()) return copy_dict(*dict);
    if (value.get_if<SetObject>())
      return interpreter_.call_method(value, Name("copy"), CallArgs{{}, {}, span_, {}}, span_);
    if ((*object)->as_instance()) return copy_instance(value, *(*object)->as_instance());
    return value;
  }

 private:
  Result<Value> inner(const Value& value) { return deep_ ? copy(value) : Result<Value>(value); }

  Result<Value> copy_list(ListObject& list) {
    auto made = std::make_shared<ListObject>();
    done_.emplace(&list, Value(made));
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
    done_.emplace(&dict, Value(made));
    for (const HashTable::Entry& entry : std::vector<HashTable::Entry>(dict.table.entries())) {
      if (entry.live) TRY(made->table.set(interpreter_, TRY(inner(entry.key)), TRY(inner(entry.value)), span_));
    }
    return Value(std::move(made));
  }
  Result<Value> copy_instance(const Value& value, InstanceObject& instance) {
    static const Name kCopy("__copy__"), kDeepCopy("__deepcopy__");
    if (instance.class_object()->lookup(deep_ ? kDeepCopy : kCopy)) {
      CallArgs args{{}, {}, span_, {}};
      if (deep_) args.positional.push_back(make_dict());
      return interpreter_.call_method(value, deep_ ? kDeepCopy : kCopy, std::move(args), span_);
    }
    if (&instance.type() != &InstanceObject::kType) {
      return type_error(span_, fmt::format("a '{}' object cannot be copied", instance.type_name()));
    }
    auto made = std::make_shared<InstanceObject>(instance.class_object());
    done_.emplace(&instance, Value(made));
    for (Name name : std::vector<Name>(instance.attributes().names())) {
      made->attributes().set(name, TRY(inner(*instance.attributes().find(name))));
    }
    return Value(std::move(made));
  }

  Interpreter& interpreter_;
  bool deep_;
  Span span_;
  std::unordered_map<const Object*, Value> done_;
};

template <bool deep>
Result<Value> copy_value(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{deep ? "deepcopy" : "copy", {"x", "memo"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Copier(interpreter, deep, args.span).copy(*read[0]);
}

Result<Value> warn(Interpreter& interpreter, CallArgs& args) {
  if (args.positional.empty()) return type_error(args.span, "warn() missing required argument 'message' (pos 1)");
  interpreter.print("warning: " + TRY(interpreter.str(args.positional[0])) + "\n");
  return Value();
}

Result<Value> nothing(Interpreter&, CallArgs&) { return Value(); }

Result<Value> unchanged(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"decorator", {"function"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return *read[0];
}

}  // namespace

void fill_contextlib(Interpreter&, ModuleObject& module) { module.function("nullcontext", null_context); }

void fill_copy(Interpreter&, ModuleObject& module) {
  module.function("copy", copy_value<false>);
  module.function("deepcopy", copy_value<true>);
}

void fill_warnings(Interpreter&, ModuleObject& module) {
  module.function("warn", warn);
  for (std::string_view name : {"simplefilter", "filterwarnings"}) module.function(name, nothing);
}

void fill_abc(Interpreter& interpreter, ModuleObject& module) {
  for (std::string_view name : {"abstractmethod", "abstractproperty"}) module.function(name, unchanged);
  auto base = make_class(interpreter, Name("ABC"), {}, Span{});
  if (base.ok()) module.set("ABC", *std::move(base));
  module.set("ABCMeta", *interpreter.find_builtin("type"));
}

}  // namespace tilepilot::stage
