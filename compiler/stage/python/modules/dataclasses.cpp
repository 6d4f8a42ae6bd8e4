// The module `dataclasses`: @dataclass writes __init__, __repr__ and __eq__ from the annotated members of a class.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

struct FieldOptions {
  std::optional<Value> default_value = {};
  std::optional<Value> factory = {};
  bool in_init = true, in_repr = true, in_comparison = true;
  bool keyword_only = false;
  bool only_init = false;  // InitVar: an argument of `__post_init__`, and no attribute
};

// What `field(...)` gives: a default or a function that makes one.
struct FieldObject final : TypedObject<FieldObject> {
  static constexpr Type kType{"dataclasses.Field"};
  FieldOptions options;
};

struct DataField : FieldOptions {
  Name name;
  Value type = {};
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
  DataField field;
  field.name = name;
  Value* value = class_object.members.find(name);
  if (!value) return field;
  if (auto* described = value->get_if<FieldObject>()) {
    static_cast<FieldOptions&>(field) = described->options;
    if (field.default_value)
      class_object.members.set(name, *field.default_value);
    else
      class_object.members.erase(name);
  } else {
    field.default_value = *value;
  }
  return field;
}

// "ClassVar", "InitVar" and "KW_ONLY" of annotations such as `ClassVar[int]` and "InitVar[int]"; "" for others.
Result<std::string_view> role_of(Interpreter& interpreter, const Value& annotation) {
  const std::string text = TRY(interpreter.str(annotation));
  for (std::string_view role : {"ClassVar", "InitVar", "KW_ONLY"}) {
    const size_t at = text.find(role);
    if (at == 0 || (at != std::string::npos && text[at - 1] == '.' && text.find('[') > at)) return role;
  }
  return std::string_view();
}

Result<DataFields> collect_fields(Interpreter& interpreter, ClassObject& class_object, bool keyword_only) {
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
    const std::string_view role = TRY(role_of(interpreter, entry.value));
    keyword_only = keyword_only || role == "KW_ONLY";
    if (!entry.live || role == "ClassVar" || role == "KW_ONLY") continue;
    DataField field = field_from(class_object, Name(*entry.key.if_string()));
    field.type = entry.value;
    field.only_init = role == "InitVar";
    field.keyword_only = field.keyword_only || keyword_only;
    add_field(fields, std::move(field));
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
  if (field.in_init && !field.keyword_only && next < args.positional.size()) {
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
  std::vector<Value> for_post_init;
  for (const DataField& field : *fields) {
    std::optional<Value> value = TRY(argument_for(field, args, next, class_object.name.text()));
    if (!value && field.factory) value = TRY(interpreter.call(*field.factory, CallArgs{{}, {}, args.span, {}}));
    if (!value) value = field.default_value;
    if (!value && field.in_init) {
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("{}.__init__() missing 1 required positional argument: '{}'",
                                    class_object.name.text(), field.name.text()));
    }
    if (value && field.only_init)
      for_post_init.push_back(*std::move(value));
    else if (value)
      self->attributes().set(field.name, *std::move(value));
  }
  if (next < args.positional.size()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("{}.__init__() takes {} positional arguments but {} were given",
                                  class_object.name.text(), next, args.positional.size()));
  }
  static const Name kPostInit("__post_init__");
  if (!class_object.lookup(kPostInit)) return Value();
  CallArgs rest{std::move(for_post_init), {}, args.span, {}};
  return interpreter.call_method(args.positional[0], kPostInit, std::move(rest), args.span);
}

Result<Value> show(Interpreter& interpreter, CallArgs& args) {
  InstanceObject* self = TRY(self_of(args, "__repr__()"));
  std::string text = self->class_object()->name.str() + "(";
  bool first = true;
  for (const DataField& field : *fields_of(*self->class_object())) {
    if (!field.in_repr || field.only_init) continue;
    Value value = TRY(interpreter.get_attribute(args.positional[0], field.name, args.span));
    text += (first ? "" : ", ") + field.name.str() + "=" + TRY(interpreter.repr(value));
    first = false;
  }
  return Value(text + ")");
}

enum class Which : uint8_t { all, compared };

Result<Value> field_values(Interpreter& interpreter, const Value& object, Span span, Which which = Which::all) {
  InstanceObject* self = object.if_object() ? (*object.if_object())->as_instance() : nullptr;
  const DataFields* fields = self ? fields_of(*self->class_object()) : nullptr;
  if (!fields) return type_error(span, "a dataclass instance is needed");
  std::vector<Value> values;
  for (const DataField& field : *fields) {
    if (field.only_init || (which == Which::compared && !field.in_comparison)) continue;
    values.push_back(TRY(interpreter.get_attribute(object, field.name, span)));
  }
  return make_tuple(std::move(values));
}

template <CompareOp op>
Result<Value> compare_fields(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"compare", {"self", "other"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (interpreter.class_of(*read[0]) != interpreter.class_of(*read[1]))
    return *interpreter.find_builtin("NotImplemented");
  Value left = TRY(field_values(interpreter, *read[0], args.span, Which::compared));
  Value right = TRY(field_values(interpreter, *read[1], args.span, Which::compared));
  return interpreter.compare(op, left, right, args.span);
}

Result<Value> hash_fields(Interpreter& interpreter, CallArgs& args) {
  Value values = TRY(field_values(interpreter, args.positional.at(0), args.span, Which::compared));
  return Value(static_cast<int64_t>(TRY(interpreter.hash(values, args.span))));
}

Result<Value> refuse_assignment(Interpreter& interpreter, CallArgs& args) {
  const std::string* name = args.positional.size() > 1 ? args.positional[1].if_string() : nullptr;
  return interpreter.raise("AttributeError", fmt::format("cannot assign to field '{}'", name ? *name : ""), args.span);
}

// The arguments of @dataclass.
struct Options {
  bool init = true, repr = true, eq = true, order = false, unsafe_hash = false, frozen = false, kw_only = false;
};

Result<Options> read_options(Interpreter& interpreter, const CallArgs& args) {
  static constexpr std::pair<std::string_view, bool Options::*> kOptions[] = {
      {"init", &Options::init},       {"repr", &Options::repr},     {"eq", &Options::eq},
      {"order", &Options::order},     {"frozen", &Options::frozen}, {"unsafe_hash", &Options::unsafe_hash},
      {"kw_only", &Options::kw_only},
  };
  Options options;
  for (const auto& [name, value] : args.keywords) {
    if (name.text() == "slots" || name.text() == "match_args" || name.text() == "weakref_slot") continue;
    auto* known = std::find_if(std::begin(kOptions), std::end(kOptions),
                               [wanted = name.text()](const auto& each) { return each.first == wanted; });
    if (known == std::end(kOptions))
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("dataclass() got an unexpected keyword argument '{}'", name.text()));
    options.*(known->second) = TRY(interpreter.truth(value, args.span));
  }
  return options;
}

// What `match` takes by position.
Value positional_names(const DataFields& fields) {
  std::vector<Value> names;
  for (const DataField& field : fields)
    if (field.in_init && !field.keyword_only) names.emplace_back(field.name.text());
  return make_tuple(std::move(names));
}

Result<Value> process(Interpreter& interpreter, const Value& decorated, const Options& options, Span span) {
  auto* class_object = decorated.get_if<ClassObject>();
  if (!class_object) return type_error(span, "@dataclass decorates a class");
  auto holder = std::make_shared<FieldsObject>();
  holder->fields = TRY(collect_fields(interpreter, *class_object, options.kw_only));
  bool default_seen = false;
  for (const DataField& field : holder->fields) {
    bool has_default = field.default_value || field.factory;
    if (!field.in_init || field.keyword_only) continue;
    if (default_seen && !has_default) {
      return type_error(span, fmt::format("non-default argument '{}' follows default argument", field.name.text()));
    }
    default_seen = default_seen || has_default;
  }
  Namespace& members = class_object->members;
  members.set(fields_name(), holder);
  static const Name kMatchArgs("__match_args__");
  if (!members.find(kMatchArgs)) members.set(kMatchArgs, positional_names(holder->fields));
  auto add = [&](std::string_view name, BuiltinFunction::Body body, bool wanted = true) {
    if (wanted && !members.find(Name(name))) members.set(Name(name), make_method(std::string(name), std::move(body)));
  };
  add("__init__", initialize, options.init);
  add("__repr__", show, options.repr);
  add("__eq__", compare_fields<CompareOp::eq>, options.eq);
  add("__lt__", compare_fields<CompareOp::lt>, options.order);
  add("__le__", compare_fields<CompareOp::le>, options.order);
  add("__gt__", compare_fields<CompareOp::gt>, options.order);
  add("__ge__", compare_fields<CompareOp::ge>, options.order);
  add("__hash__", hash_fields, (options.frozen && options.eq) || options.unsafe_hash);
  add("__setattr__", refuse_assignment, options.frozen);
  return decorated;
}

// @dataclass and @dataclass(...)
Result<Value> dataclass(Interpreter& interpreter, CallArgs& args) {
  const Options options = TRY(read_options(interpreter, args));
  if (!args.positional.empty()) return process(interpreter, args.positional[0], options, args.span);
  return make_builtin("dataclass", [options](Interpreter& inner, CallArgs& decorated) -> Result<Value> {
    static constexpr Signature kSignature{"dataclass", {"cls"}, 1};
    Arguments read = TRY(Arguments::read(decorated, kSignature));
    return process(inner, *read[0], options, decorated.span);
  });
}

Result<Value> field(Interpreter& interpreter, CallArgs& args) {
  auto made = std::make_shared<FieldObject>();
  FieldOptions& options = made->options;
  if (const Value* value = args.keyword("default")) options.default_value = *value;
  if (const Value* value = args.keyword("default_factory")) options.factory = *value;
  static constexpr std::pair<std::string_view, bool FieldOptions::*> kFlags[] = {
      {"init", &FieldOptions::in_init},
      {"repr", &FieldOptions::in_repr},
      {"compare", &FieldOptions::in_comparison},
      {"kw_only", &FieldOptions::keyword_only},
  };
  for (const auto& [name, flag] : kFlags)
    if (const Value* value = args.keyword(name)) options.*flag = TRY(interpreter.truth(*value, args.span));
  return Value(std::move(made));
}

// fields(class_or_instance): what each field is called, its type and its default.
Result<Value> list_fields(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"fields", {"class_or_instance"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto described = read[0]->get_shared<ClassObject>();
  if (!described) described = interpreter.class_of(*read[0]);
  const DataFields* fields = fields_of(*described);
  if (!fields) return type_error(args.span, "must be called with a dataclass type or instance");
  std::shared_ptr<ClassObject> field_class = TRY(make_class(interpreter, Name("Field"), {}, args.span));
  std::vector<Value> items;
  for (const DataField& field : *fields) {
    if (field.only_init) continue;
    auto made = std::make_shared<InstanceObject>(field_class);
    made->attributes().set(Name("name"), Value(field.name.text()));
    made->attributes().set(Name("type"), field.type);
    made->attributes().set(Name("default"), field.default_value.value_or(Value()));
    made->attributes().set(Name("init"), Value(field.in_init));
    items.emplace_back(std::move(made));
  }
  return make_tuple(std::move(items));
}

Result<Value> is_dataclass(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"is_dataclass", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto described = read[0]->get_shared<ClassObject>();
  return Value(fields_of(described ? *described : *interpreter.class_of(*read[0])) != nullptr);
}

Result<Value> as_tuple(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"astuple", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return field_values(interpreter, *read[0], args.span);
}

Result<Value> as_dict(Interpreter& interpreter, CallArgs& args);

// Dataclasses inside lists, tuples and dicts become dicts too.
Result<Value> plain_value(Interpreter& interpreter, const Value& value, Span span) {
  TRY(interpreter.check_stack(span));
  InstanceObject* inner = value.if_object() ? (*value.if_object())->as_instance() : nullptr;
  if (inner && fields_of(*inner->class_object())) {
    CallArgs nested{{value}, {}, span, {}};
    return as_dict(interpreter, nested);
  }
  if (auto* dict = value.get_if<DictObject>()) {
    auto made = std::make_shared<DictObject>();
    for (const HashTable::Entry& entry : std::vector<HashTable::Entry>(dict->table.entries()))
      if (entry.live)
        TRY(made->table.set(interpreter, entry.key, TRY(plain_value(interpreter, entry.value, span)), span));
    return Value(std::move(made));
  }
  auto* tuple = value.get_if<TupleObject>();
  if (!value.get_if<ListObject>() && (!tuple || tuple->fields)) return value;
  std::vector<Value> items;
  for (const Value& item : std::vector<Value>(*sequence_items(value)))
    items.push_back(TRY(plain_value(interpreter, item, span)));
  return tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
}

Result<Value> as_dict(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"asdict", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Value values = TRY(field_values(interpreter, *read[0], args.span));
  const DataFields& fields = *fields_of(*interpreter.class_of(*read[0]));
  auto dict = std::make_shared<DictObject>();
  size_t position = 0;
  for (const DataField& field : fields) {
    if (field.only_init) continue;
    Value value = TRY(plain_value(interpreter, (*sequence_items(values))[position++], args.span));
    TRY(dict->table.set(interpreter, Value(field.name.text()), std::move(value), args.span));
  }
  return Value(std::move(dict));
}

Result<Value> replace(Interpreter& interpreter, CallArgs& args) {
  if (args.positional.size() != 1) return type_error(args.span, "replace() takes one instance and fields by name");
  Value values = TRY(field_values(interpreter, args.positional[0], args.span));
  std::shared_ptr<ClassObject> class_object = interpreter.class_of(args.positional[0]);
  const DataFields& fields = *fields_of(*class_object);
  CallArgs made{{}, args.keywords, args.span, {}};
  size_t position = 0;
  for (const DataField& field : fields) {
    if (field.only_init) continue;
    const Value& value = (*sequence_items(values))[position++];
    if (field.in_init && !args.keyword(field.name.text())) made.keywords.emplace_back(field.name, value);
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
  module.function("fields", list_fields);
  module.function("is_dataclass", is_dataclass);
  for (std::string_view name : {"InitVar", "KW_ONLY"}) module.set(name, make_typing_name(std::string(name)));
}

}  // namespace tilepilot::stage
