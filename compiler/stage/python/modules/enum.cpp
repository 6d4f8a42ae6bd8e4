// The module `enum`: Enum, IntEnum, and auto().
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

namespace {

struct AutoObject final : TypedObject<AutoObject> {
  static constexpr Type kType{"auto"};
};

const Name& value_name() {
  static const Name kValue("value");
  return kValue;
}

const Name& members_name() {
  static const Name kMembers("__members__");
  return kMembers;
}

InstanceObject& member_of(const CallArgs& args) { return *(*args.positional[0].if_object())->as_instance(); }

Result<Value> show_member(Interpreter& interpreter, CallArgs& args) {
  InstanceObject& self = member_of(args);
  std::string value = TRY(interpreter.repr(*self.attributes().find(value_name())));
  return Value(fmt::format("<{}.{}: {}>", self.type_name(), *self.attributes().find(Name("name"))->if_string(), value));
}

Result<Value> text(Interpreter&, CallArgs& args) {
  InstanceObject& self = member_of(args);
  return Value(fmt::format("{}.{}", self.type_name(), *self.attributes().find(Name("name"))->if_string()));
}

Result<Value> as_integer(Interpreter&, CallArgs& args) { return *member_of(args).attributes().find(value_name()); }

// Comparison and hash of an IntEnum are those of its value.
template <CompareOp op>
Result<Value> compare_values(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"compare", {"self", "other"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Value other = *read[1];
  InstanceObject* instance = other.if_object() ? (*other.if_object())->as_instance() : nullptr;
  if (Value* value = instance ? instance->attributes().find(value_name()) : nullptr) other = *value;
  return interpreter.compare(op, *member_of(args).attributes().find(value_name()), other, args.span);
}

// Iterating over the class gives its members; calling it with a value finds one.
Result<Value> find_member(Interpreter& interpreter, Name name, const std::shared_ptr<ListObject>& members,
                          CallArgs& args) {
  static constexpr Signature kSignature{"Enum", {"value"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  for (const Value& member : members->items) {
    InstanceObject& instance = *(*member.if_object())->as_instance();
    Value value = *instance.attributes().find(value_name());
    if (TRY(interpreter.equal(value, *read[0], args.span))) return member;
    if (TRY(interpreter.equal(member, *read[0], args.span))) return member;
  }
  return value_error(args.span, fmt::format("{} is not a valid {}", TRY(interpreter.repr(*read[0])), name.text()));
}

Result<std::optional<Value>> member_of_value(Interpreter& interpreter, const ListObject& members, const Value& value,
                                             Span span) {
  for (const Value& member : members.items) {
    const Value* own = (*member.if_object())->as_instance()->attributes().find(value_name());
    if (TRY(interpreter.equal(*own, value, span))) return std::optional<Value>(member);
  }
  return std::optional<Value>();
}

// An IntEnum's arithmetic is that of its values.
template <BinaryOp op, bool reflected>
Result<Value> compute(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"operator", {"self", "other"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const Value own = *member_of(args).attributes().find(value_name());
  return reflected ? interpreter.binary(op, *read[1], own, args.span)
                   : interpreter.binary(op, own, *read[1], args.span);
}

Result<Value> text_of_value(Interpreter& interpreter, CallArgs& args) {
  return Value(TRY(interpreter.str(*member_of(args).attributes().find(value_name()))));
}

Result<Value> format_value_of(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"__format__", {"self", "format_spec"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const Value own = *member_of(args).attributes().find(value_name());
  return Value(TRY(format_value(interpreter, own, TRY(read.text(1)), args.span)));
}

template <BinaryOp op>
void add_operator(ClassObject& integers, std::string_view stem) {
  const auto add = [&](std::string name, Result<Value> (*body)(Interpreter&, CallArgs&)) {
    integers.members.set(Name(name), make_builtin(name, body));
  };
  add(fmt::format("__{}__", stem), compute<op, false>);
  add(fmt::format("__r{}__", stem), compute<op, true>);
}

void add_arithmetic(ClassObject& integers) {
  add_operator<BinaryOp::add>(integers, "add");
  add_operator<BinaryOp::sub>(integers, "sub");
  add_operator<BinaryOp::mul>(integers, "mul");
  add_operator<BinaryOp::div>(integers, "truediv");
  add_operator<BinaryOp::floor_div>(integers, "floordiv");
  add_operator<BinaryOp::mod>(integers, "mod");
  add_operator<BinaryOp::pow>(integers, "pow");
  add_operator<BinaryOp::shl>(integers, "lshift");
  add_operator<BinaryOp::shr>(integers, "rshift");
  add_operator<BinaryOp::bit_and>(integers, "and");
  add_operator<BinaryOp::bit_or>(integers, "or");
  add_operator<BinaryOp::bit_xor>(integers, "xor");
}

Result<Value> format_as_text(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"__format__", {"self", "format_spec"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const Value spec = read[1] ? *read[1] : Value("");
  const Value shown = Value(TRY(interpreter.str(*read[0])));
  const Value format = *interpreter.find_builtin("format");
  return interpreter.call(format, CallArgs{{shown, spec}, {}, args.span, {}});
}

// What auto() gives a member of a StrEnum.
Value lowered(Name name) {
  std::string text = name.str();
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return Value(std::move(text));
}

// Members that are strings too are shown as members: `str` comes before `Enum` in the order of the bases.
void prefer_enum_text(ClassObject& made) {
  for (std::string_view each : {"__repr__", "__str__", "__format__"}) {
    const Name name(each);
    for (ClassObject* base : made.resolution_order) {
      if (!base->members.find(name)) continue;
      if (base->name.text() != "str" || base->user_defined) break;
      const auto& order = made.resolution_order;
      const auto has_name = [](const ClassObject* other) { return other->name.text() == "Enum"; };
      auto plain = std::find_if(order.begin(), order.end(), has_name);
      if (plain != order.end()) made.members.set(name, *(*plain)->members.find(name));
      break;
    }
  }
}

// Turns the plain values of a finished class body into members.
Result<Value> make_members(Interpreter& interpreter, const std::shared_ptr<ClassObject>& made, Span span) {
  auto members = std::make_shared<ListObject>();
  auto by_name = std::make_shared<DictObject>();
  int64_t next = 1;
  const bool is_text = made->is_subclass_of(*interpreter.find_builtin("str")->get_if<ClassObject>());
  if (is_text) prefer_enum_text(*made);
  for (Name name : std::vector<Name>(made->members.names())) {
    Value value = *made->members.find(name);
    bool plain = !value.get_if<FunctionObject>() && !value.get_if<BuiltinFunction>() && name.text().front() != '_' &&
                 value.type_name() != "property" && value.type_name() != "staticmethod" &&
                 value.type_name() != "classmethod";
    if (!plain) continue;
    if (value.get_if<AutoObject>()) value = is_text ? lowered(name) : Value(next);
    if (auto index = value.as_index()) next = *index + 1;
    if (std::optional<Value> same = TRY(member_of_value(interpreter, *members, value, span))) {  // another name for it
      TRY(by_name->table.set(interpreter, Value(name.text()), *same, span));
      made->members.set(name, *std::move(same));
      continue;
    }
    auto member = std::make_shared<InstanceObject>(made);
    if (is_text && value.if_string()) member = std::make_shared<HeldInstance>(made, value);
    member->attributes().set(Name("name"), Value(name.text()));
    member->attributes().set(value_name(), value);
    made->members.set(name, member);
    members->items.emplace_back(member);
    TRY(by_name->table.set(interpreter, Value(name.text()), Value(member), span));
    interpreter.watch(member);
  }
  made->members.set(members_name(), by_name);
  made->iterate_class = [members](Interpreter& inner, Span at) { return inner.iterate(Value(members), at); };
  made->construct = [members, name = made->name](Interpreter& inner, CallArgs& args) {
    return find_member(inner, name, members, args);
  };
  return Value(made);
}

}  // namespace

void fill_enum(Interpreter& interpreter, ModuleObject& module) {
  auto base = make_class(interpreter, Name("Enum"), {}, Span{});
  if (!base.ok()) return;
  std::shared_ptr<ClassObject> plain = *std::move(base);
  plain->derive = make_members;
  plain->members.set(Name("__repr__"), make_method("__repr__", show_member));
  plain->members.set(Name("__str__"), make_method("__str__", text));
  plain->members.set(Name("__format__"), make_method("__format__", format_as_text));
  module.set("Enum", plain);
  auto text_base = interpreter.find_builtin("str")->get_shared<ClassObject>();
  auto texts = make_class(interpreter, Name("StrEnum"), {text_base, plain}, Span{});
  if (!texts.ok()) return;
  (*texts)->members.set(Name("__str__"), make_builtin("__str__", text_of_value));
  (*texts)->members.set(Name("__format__"), make_builtin("__format__", format_value_of));
  module.set("StrEnum", *std::move(texts));
  auto derived = make_class(interpreter, Name("IntEnum"), {plain}, Span{});
  if (!derived.ok()) return;
  std::shared_ptr<ClassObject> integers = *std::move(derived);
  for (std::string_view name : {"__int__", "__index__", "__hash__"}) {
    integers->members.set(Name(name), make_builtin(std::string(name), as_integer));
  }
  integers->members.set(Name("__eq__"), make_builtin("__eq__", compare_values<CompareOp::eq>));
  integers->members.set(Name("__lt__"), make_builtin("__lt__", compare_values<CompareOp::lt>));
  integers->members.set(Name("__le__"), make_builtin("__le__", compare_values<CompareOp::le>));
  integers->members.set(Name("__gt__"), make_builtin("__gt__", compare_values<CompareOp::gt>));
  integers->members.set(Name("__ge__"), make_builtin("__ge__", compare_values<CompareOp::ge>));
  add_arithmetic(*integers);
  integers->members.set(Name("__str__"), make_builtin("__str__", text_of_value));
  integers->members.set(Name("__format__"), make_builtin("__format__", format_value_of));
  module.set("IntEnum", integers);
  module.function("auto",
                  [](Interpreter&, CallArgs&) -> Result<Value> { return Value(std::make_shared<AutoObject>()); });
  module.function("unique", [](Interpreter&, CallArgs& args) -> Result<Value> {
    static constexpr Signature kSignature{"unique", {"enumeration"}, 1};
    Arguments read = TRY(Arguments::read(args, kSignature));
    return *read[0];
  });
}

}  // namespace tilepilot::stage
