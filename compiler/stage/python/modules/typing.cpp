// The module `typing`: names that mean nothing at run time. Each can be subscripted, called and combined with `|`.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/named_tuple.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

bool is_sequence(Interpreter&, const Value& value) {
  return sequence_items(value) || value.if_string() || value.get_if<RangeObject>();
}
bool is_mapping(Interpreter&, const Value& value) { return value.get_if<DictObject>() != nullptr; }
bool is_iterable(Interpreter& interpreter, const Value& value) { return interpreter.iterate(value, Span{}).ok(); }
bool is_sized(Interpreter& interpreter, const Value& value) { return interpreter.length(value, Span{}).ok(); }
bool is_iterator(Interpreter& interpreter, const Value& value) {
  return interpreter.get_attribute(value, Name("__next__"), Span{}).ok();
}
bool is_number(Interpreter&, const Value& value) { return value.if_float() || integer_of(value); }
bool is_integral(Interpreter&, const Value& value) { return integer_of(value).has_value(); }
bool can_be_called(Interpreter& interpreter, const Value& value) {
  auto result = interpreter.call(*interpreter.find_builtin("callable"), CallArgs{{value}, {}, Span{}, {}});
  return result.ok() && *result->if_bool();
}

// The names that isinstance() accepts.
struct InstanceTest {
  std::string_view name;
  bool (*holds)(Interpreter&, const Value&);
};

constexpr InstanceTest kInstanceTests[] = {
    {"Callable", can_be_called}, {"Iterable", is_iterable}, {"Iterator", is_iterator}, {"Sequence", is_sequence},
    {"Mapping", is_mapping},     {"Sized", is_sized},       {"Number", is_number},     {"Real", is_number},
    {"Integral", is_integral},   {"Collection", is_sized},
};

const InstanceTest* find_test(std::string_view name) {
  for (const InstanceTest& each : kInstanceTests) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

// `Optional`, `List[int]`, `int | None`: shown in messages, otherwise inert. As a base class it is left out.
struct TypingObject final : TypedObject<TypingObject> {
  static constexpr Type kType{"typing"};
  explicit TypingObject(std::string shown_) : shown(std::move(shown_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override {
    if (name.text() == "__mro_entries__" || name.text() == "__name__") return Value(shown);
    const InstanceTest* test = name.text() == "__instancecheck__" ? find_test(shown) : nullptr;
    if (test) {
      return make_builtin("__instancecheck__", [test](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
        static constexpr Signature kSignature{"isinstance", {"instance"}, 1};
        Arguments read = TRY(Arguments::read(args, kSignature));
        return Value(test->holds(interpreter, *read[0]));
      });
    }
    return no_attribute(type_name(), name, span);
  }
  Result<Value> get_item(Interpreter& interpreter, const Value& index, Span) override {
    std::string arguments = TRY(interpreter.repr(index));
    return Value(std::make_shared<TypingObject>(fmt::format("{}[{}]", shown, arguments)));
  }
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value&, bool, Span) override {
    if (op != BinaryOp::bit_or) return std::optional<Value>();
    return std::optional<Value>(Value(shared_from_this()));
  }
  Result<std::string> repr(Interpreter&) override { return "typing." + shown; }
  std::string shown;
};

constexpr std::string_view kNames[] = {
    "Any",           "Optional",      "Union",         "List",        "Tuple",          "Dict",
    "Set",           "FrozenSet",     "Callable",      "Iterable",    "Iterator",       "Sequence",
    "Mapping",       "Type",          "Generic",       "Literal",     "Final",          "ClassVar",
    "Protocol",      "NoReturn",      "Generator",     "Hashable",    "MutableMapping", "Annotated",
    "Self",          "TypeAlias",     "Concatenate",   "DefaultDict", "OrderedDict",    "Deque",
    "Collection",    "Text",          "SupportsFloat", "SupportsInt", "Never",          "Required",
    "NotRequired",   "ReadOnly",      "Unpack",        "TypeGuard",   "Awaitable",      "Sized",
    "Counter",       "ChainMap",      "AnyStr",        "Reversible",  "AbstractSet",    "MutableSequence",
    "SupportsIndex", "LiteralString",
};

// `class Point(NamedTuple)`: the annotated members become items, their values defaults.
Result<Value> derive_named_tuple(Interpreter&, const std::shared_ptr<ClassObject>& made, Span) {
  std::vector<Name> names;
  std::vector<Value> defaults;
  Value* annotations = made->members.find(Name("__annotations__"));
  auto* dict = annotations ? annotations->get_if<DictObject>() : nullptr;
  for (size_t i = 0; dict && i < dict->table.entries().size(); ++i) {
    names.emplace_back(*dict->table.entries()[i].key.if_string());
    if (Value* value = made->members.find(names.back())) defaults.push_back(*value);
  }
  make_named_tuple(made, std::move(names), std::move(defaults));
  return Value(made);
}

// `class Options(TypedDict)`: calling it makes a plain dict.
Result<Value> derive_typed_dict(Interpreter&, const std::shared_ptr<ClassObject>& made, Span) {
  made->construct = [](Interpreter& interpreter, CallArgs& args) {
    return interpreter.call(*interpreter.find_builtin("dict"), std::move(args));
  };
  return Value(made);
}

Result<Value> get_type_hints(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"get_type_hints", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto annotations = interpreter.get_attribute(*read[0], Name("__annotations__"), args.span);
  return annotations.ok() ? *annotations : make_dict();
}

Result<Value> type_variable(Interpreter&, CallArgs& args) {
  const std::string* name = args.positional.empty() ? nullptr : args.positional[0].if_string();
  return Value(std::make_shared<TypingObject>(name ? *name : "TypeVar"));
}

Result<Value> cast(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"cast", {"typ", "val"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return *read[1];
}

Result<Value> itself(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"decorator", {"function"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return *read[0];
}

}  // namespace

Value make_typing_name(std::string shown) { return std::make_shared<TypingObject>(std::move(shown)); }

void fill_numbers(Interpreter&, ModuleObject& module) {
  for (std::string_view name : {"Number", "Real", "Integral"}) module.set(name, make_typing_name(std::string(name)));
}

void fill_typing(Interpreter& interpreter, ModuleObject& module) {
  auto base = make_class(interpreter, Name("NamedTuple"), {}, Span{});
  if (base.ok()) {
    (*base)->derive = derive_named_tuple;
    module.set("NamedTuple", *std::move(base));
  }
  if (auto typed = make_class(interpreter, Name("TypedDict"), {}, Span{}); typed.ok()) {
    (*typed)->derive = derive_typed_dict;
    module.set("TypedDict", *std::move(typed));
  }
  for (std::string_view name : kNames) module.set(name, make_typing_name(std::string(name)));
  module.set("TYPE_CHECKING", Value(false));
  for (std::string_view name : {"TypeVar", "ParamSpec", "NewType"}) module.function(name, type_variable);
  for (std::string_view name : {"overload", "final", "runtime_checkable", "no_type_check", "override"}) {
    module.function(name, itself);
  }
  module.function("cast", cast);
  module.function("get_type_hints", get_type_hints);
}

}  // namespace tilepilot::stage
