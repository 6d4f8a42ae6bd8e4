// Named tuples: a tuple whose items have names.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/named_tuple.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Result<Value> replaced(const std::shared_ptr<TupleObject>& self, CallArgs& args) {
  std::vector<Value> items = self->items;
  for (auto& [name, value] : args.keywords) {
    size_t i = 0;
    while (i < items.size() && self->fields->names[i] != name) ++i;
    if (i == items.size())
      return value_error(args.span, fmt::format("Got unexpected field names: ['{}']", name.text()));
    items[i] = std::move(value);
  }
  auto made = std::make_shared<TupleObject>(std::move(items));
  made->fields = self->fields;
  return Value(std::move(made));
}

Result<Value> as_dict(Interpreter& interpreter, const TupleObject& self, Span span) {
  auto dict = std::make_shared<DictObject>();
  for (size_t i = 0; i < self.items.size(); ++i) {
    TRY(dict->table.set(interpreter, Value(self.fields->names[i].text()), self.items[i], span));
  }
  return Value(std::move(dict));
}

Result<Value> construct(const std::shared_ptr<const TupleFields>& fields, const std::vector<Value>& defaults,
                        CallArgs& args) {
  size_t count = fields->names.size();
  std::vector<std::optional<Value>> values(count);
  if (args.positional.size() > count) {
    return make_error(
        DiagnosticKind::wrong_arguments, args.span,
        fmt::format("{}() takes {} arguments but {} were given", fields->class_name, count, args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values[i] = args.positional[i];
  for (auto& [name, value] : args.keywords) {
    size_t i = 0;
    while (i < count && fields->names[i] != name) ++i;
    if (i == count || values[i]) {
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("{}() got an unexpected keyword argument '{}'", fields->class_name, name.text()));
    }
    values[i] = value;
  }
  std::vector<Value> items;
  for (size_t i = 0; i < count; ++i) {
    size_t from_end = count - i;
    if (!values[i] && from_end <= defaults.size()) values[i] = defaults[defaults.size() - from_end];
    if (!values[i]) {
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("{}() missing 1 required positional argument: '{}'", fields->class_name,
                                    fields->names[i].text()));
    }
    items.push_back(*values[i]);
  }
  auto made = std::make_shared<TupleObject>(std::move(items));
  made->fields = fields;
  return Value(std::move(made));
}

}  // namespace

Result<Value> named_tuple_attribute(Interpreter& interpreter, TupleObject& self, ClassObject& class_object, Name name,
                                    Span span) {
  auto tuple = std::static_pointer_cast<TupleObject>(self.shared_from_this());
  if (name.text() == "_replace") {
    return make_builtin("_replace", [tuple](Interpreter&, CallArgs& args) { return replaced(tuple, args); });
  }
  if (name.text() == "_asdict") {
    return make_builtin("_asdict",
                        [tuple](Interpreter& inner, CallArgs& args) { return as_dict(inner, *tuple, args.span); });
  }
  for (ClassObject* each : class_object.resolution_order) {
    Value* member = each->members.find(name);
    if (!member) continue;
    Value found = *member;
    return bind_member(interpreter, found, Value(tuple), *each, span);
  }
  return no_attribute(self.type_name(), name, span);
}

void make_named_tuple(const std::shared_ptr<ClassObject>& class_object, std::vector<Name> names,
                      std::vector<Value> defaults) {
  auto fields = std::make_shared<TupleFields>();
  fields->class_object = class_object;
  fields->class_name = class_object->name.str();
  fields->names = std::move(names);
  std::vector<Value> shown;
  for (Name name : fields->names) shown.emplace_back(name.text());
  class_object->members.set(Name("__match_args__"), make_tuple(shown));
  class_object->members.set(Name("_fields"), make_tuple(std::move(shown)));
  class_object->construct = [fields, defaults = std::move(defaults)](Interpreter&, CallArgs& args) {
    return construct(fields, defaults, args);
  };
}

}  // namespace tilepilot::stage
