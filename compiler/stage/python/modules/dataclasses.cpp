// The module `dataclasses`: @dataclass writes __init__, __repr__ and __eq__ from the annotated members of a class.
#include <fmt/format.h>

#include "compiler/stage/python/containers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/native.h"

namespace tilepilot::stage {

namespace {

// What `field(...)` gives: a default or a function that makes one.
struct FieldObject final : TypedObject<FieldObject> {
  static constexpr Type kType{"dataclasses.Field"};
  std::optional<Value> default_value;
  std::optional<Value> factory;
  bool in_init = true;
};

struct DataField {
  Name name;
  std::optional<Value> default_value;
  std::optional<Value> factory;
  bool in_init = true;
};
using DataFields = std::vector<DataField>;

const Name& fields_name() {
  static const Name kFields("__dataclass_fields__");
  return kFields;
}

// Holds the fields where derived classes find them.
struct FieldsObject final : TypedObject<FieldsObject> {
  static constexpr Type kType{"dataclass_fields"};
  DataFields fields;
};

const DataFields* fields_of(ClassObject& class_object) {
  Value* found = class_object.lookup(fields_name());
  auto* holder = found ? found->get_if<FieldsObject>() : nullptr;
  return holder ? &holder->fields : nullptr;
}

void add_field(DataFields& fields, DataField field) {
  for (DataField& each : fields) {
    if (each.name == field.name) {
      each = std::move(field);
      return;
    }
  }
  fields.push_back(std::move(field));
}

DataField field_from(ClassObject& class_object, Name name) {
  DataField field{name, std::nullopt, std::nullopt, true};
  Value* value = class_object.members.find(name);
  if (!value) return field;
  if (auto* described = value->get_if<FieldObject>()) {
    field.default_value = described->default_value;
    field.factory = described->factory;
    field.in_init = described->in_init;
    if (field.default_value)
      class_object.members.set(name, *field.default_value);
    else
      class_object.members.erase(name);
  } else {
    field.default_value = *value;
  }
  return field;
}

DataFields collect_fields(ClassObject& class_object) {
  DataFields fields;
  const auto& order = class_object.resolution_order;
  for (size_t i = order.size(); i-- > 1;) {
    Value* held = order[i]->members.find(fields_name());
    auto* holder = held ? held->get_if<FieldsObject>() : nullptr;
    for (size_t f = 0; holder && f < holder->fields.size(); ++f) add_field(fields, holder->fields[f]);
  }
  Value* annotations = class_object.members.find(Name("__annotations__"));
  auto* dict = annotations ? annotations->get_if<DictObject>() : nullptr;
  if (!dict) return fields;
  for (const HashTable::Entry& entry : dict->table.entries()) {
    if (entry.live) add_field(fields, field_from(class_object, Name(*entry.key.if_string())));
  }
  return fields;
}

Result<InstanceObject*> self_of(CallArgs& args, std::string_view method) {
  auto* object = args.positional.empty() ? nullptr : args.positional[0].if_object();
  InstanceObject* self = object ? (*object)->as_instance() : nullptr;
  if (!self) return type_error(args.span, fmt::format("{} needs an instance", method));
  return self;
}

Result<std::optional<Value>> argument_for(const DataField& field, CallArgs& args, size_t& next,
                                          std::string_view class_name) {
  const Value* named = args.keyword(field.name.text());
  if (field.in_init && next < args.positional.size()) {
    if (named) {
      return make_error(
          DiagnosticKind::wrong_arguments, args.span,
          fmt::format("{}.__init__() got multiple values for argument '{}'", class_name, field.name.text()));
    }
    return std::optional<Value>(args.positional[next++]);
  }
  if (field.in_init && named) return std::optional<Value>(*named);
  return std::optional<Value>();
}

Status check_keywords(const DataFields& fields, const CallArgs& args, std::string_view class_name) {
  for (const auto& [name, value] : args.keywords) {
    bool known = false;
    for (const DataField& field : fields) known = known || (field.name == name && field.in_init);
    if (known) continue;
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("{}.__init__() got an unexpected keyword argument '{}'", class_name, name.text()));
  }
  return {};
}

Result<Value> initialize(Interpreter& interpreter, CallArgs& args) {
  InstanceObject* self = TRY(self_of(args, "__init__()"));
  ClassObject& class_object = *self->class_object();
  const DataFields* fields = fields_of(class_object);
  if (!fields) return type_error(args.span, "not a dataclass");
  TRY(check_keywords(*fields, args, class_object.name.text()));
  size_t next = 1;
  for (const DataField& field : *fields) {
    std::optional<Value> value = TRY(argument_for(field, args, next, class_object.name.text()));
    if (!value && field.factory) value = TRY(interpreter.call(*field.factory, CallArgs{{}, {}, args.span, {}}));
    if (!value) value = field.default_value;
    if (!value && field.in_init) {
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("{}.__init__() missing 1 required positional argument: '{}'",
                                    class_object.name.text(), field.name.text()));
    }
    if (value) self->attributes().set(field.name, *std::move(value));
  }
  if (next < args.positional.size()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("{}.__init__() takes {} positional arguments but {} were given",
                                  class_object.name.text(), next, args.positional.size()));
  }
  static const Name kPostInit("__post_init__");
  if (!class_object.lookup(kPostInit)) return Value();
  return interpreter.call_method(args.positional[0], kPostInit, CallArgs{{}, {}, args.span, {}}, args.span);
}

Result<Value> show(Interpreter& interpreter, CallArgs& args) {
  InstanceObject* self = TRY(self_of(args, "__repr__()"));
  std::string text = self->class_object()->name.str() + "(";
  bool first = true;
  for (const DataField& field : *fields_of(*self->class_object())) {
    Value value = TRY(interpreter.get_attribute(args.positional[0], field.name, args.span));
    text += (first ? "" : ", ") + field.name.str() + "=" + TRY(interpreter.repr(value));
    first = false;
  }
  return Value(text + ")");
}

Result<Value> field_values(Interpreter& interpreter, const Value& object, Span span) {
  InstanceObject* self = object.if_object() ? (*object.if_object())->as_instance() : nullptr;
  const DataFields* fields = self ? fields_of(*self->class_object()) : nullptr;
  if (!fields) return type_error(span, "a dataclass instance is needed");
  std::vector<Value> values;
  for (const DataField& field : *fields) values.push_back(TRY(interpreter.get_attribute(object, field.name, span)));
  return make_tuple(std::move(values));
}

Result<Value> equals(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"__eq__", {"self", "other"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (interpreter.class_of(*read[0]) != interpreter.class_of(*read[1]))
    return *interpreter.find_builtin("NotImplemented");
  Value left = TRY(field_values(interpreter, *read[0], args.span));
  Value right = TRY(field_values(interpreter, *read[1], args.span));
  return Value(TRY(interpreter.equal(left, right, args.span)));
}

Result<Value> hash_fields(Interpreter& interpreter, CallArgs& args) {
  Value values = TRY(field_values(interpreter, args.positional.at(0), args.span));
  return Value(static_cast<int64_t>(TRY(interpreter.hash(values, args.span))));
}

Result<Value> process(const Value& decorated, bool frozen, Span span) {
  auto* class_object = decorated.get_if<ClassObject>();
  if (!class_object) return type_error(span, "@dataclass decorates a class");
  auto holder = std::make_shared<FieldsObject>();
  holder->fields = collect_fields(*class_object);
  bool default_seen = false;
  for (const DataField& field : holder->fields) {
    bool has_default = field.default_value || field.factory;
    if (default_seen && !has_default && field.in_init) {
      return type_error(span, fmt::format("non-default argument '{}' follows default argument", field.name.text()));
    }
    default_seen = default_seen || has_default;
  }
  Namespace& members = class_object->members;
  members.set(fields_name(), holder);
  auto add = [&](std::string_view name, BuiltinFunction::Body body) {
    if (!members.find(Name(name))) members.set(Name(name), make_method(std::string(name), std::move(body)));
  };
  add("__init__", initialize);
  add("__repr__", show);
  add("__eq__", equals);
  if (frozen) {
    add("__hash__", hash_fields);
    add("__setattr__", [](Interpreter& inner, CallArgs& args) -> Result<Value> {
      return inner.raise("AttributeError", "cannot assign to a field of a frozen dataclass", args.span);
    });
  }
  return decorated;
}

// @dataclass and @dataclass(...)
Result<Value> dataclass(Interpreter& interpreter, CallArgs& args) {
  const Value* frozen = args.keyword("frozen");
  bool is_frozen = frozen && TRY(interpreter.truth(*frozen, args.span));
  if (!args.positional.empty()) return process(args.positional[0], is_frozen, args.span);
  return make_builtin("dataclass", [is_frozen](Interpreter&, CallArgs& decorated) -> Result<Value> {
    static constexpr Signature kSignature{"dataclass", {"cls"}, 1};
    Arguments read = TRY(Arguments::read(decorated, kSignature));
    return process(*read[0], is_frozen, decorated.span);
  });
}

Result<Value> field(Interpreter& interpreter, CallArgs& args) {
  auto made = std::make_shared<FieldObject>();
  if (const Value* value = args.keyword("default")) made->default_value = *value;
  if (const Value* value = args.keyword("default_factory")) made->factory = *value;
  if (const Value* value = args.keyword("init")) made->in_init = TRY(interpreter.truth(*value, args.span));
  return Value(std::move(made));
}

Result<Value> as_tuple(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"astuple", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return field_values(interpreter, *read[0], args.span);
}

Result<Value> as_dict(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"asdict", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Value values = TRY(field_values(interpreter, *read[0], args.span));
  const DataFields& fields = *fields_of(*interpreter.class_of(*read[0]));
  auto dict = std::make_shared<DictObject>();
  for (size_t i = 0; i < fields.size(); ++i) {
    Value value = (*sequence_items(values))[i];
    InstanceObject* inner = value.if_object() ? (*value.if_object())->as_instance() : nullptr;
    if (inner && fields_of(*inner->class_object())) {
      CallArgs nested{{value}, {}, args.span, {}};
      value = TRY(as_dict(interpreter, nested));
    }
    TRY(dict->table.set(interpreter, Value(fields[i].name.text()), std::move(value), args.span));
  }
  return Value(std::move(dict));
}

Result<Value> replace(Interpreter& interpreter, CallArgs& args) {
  if (args.positional.size() != 1) return type_error(args.span, "replace() takes one instance and fields by name");
  Value values = TRY(field_values(interpreter, args.positional[0], args.span));
  std::shared_ptr<ClassObject> class_object = interpreter.class_of(args.positional[0]);
  const DataFields& fields = *fields_of(*class_object);
  CallArgs made{{}, args.keywords, args.span, {}};
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].in_init && !args.keyword(fields[i].name.text())) {
      made.keywords.emplace_back(fields[i].name, (*sequence_items(values))[i]);
    }
  }
  return class_object->call(interpreter, std::move(made));
}

}  // namespace

void fill_dataclasses(Interpreter&, ModuleObject& module) {
  module.function("dataclass", dataclass);
  module.function("field", field);
  module.function("astuple", as_tuple);
  module.function("asdict", as_dict);
  module.function("replace", replace);
}

}  // namespace tilepilot::stage
