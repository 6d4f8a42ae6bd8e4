// The built-in classes: int, float, str, list, ... as values that can be called, compared and tested with isinstance.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/bytes.h"
#include "compiler/stage/python/text/format_spec.h"
#include "compiler/syntax/bytes_literal.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage {

namespace {

std::string stripped(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\n\r\v\f");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n\r\v\f") + 1 - begin));
}

// Removes underscores between digits; false if they stand elsewhere.
bool drop_underscores(std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') continue;
    bool between = i > 0 && i + 1 < text.size() && std::isalnum(static_cast<unsigned char>(text[i - 1])) &&
                   std::isalnum(static_cast<unsigned char>(text[i + 1]));
    if (!between) return false;
  }
  std::erase(text, '_');
  return true;
}

Result<Value> parse_integer(const std::string& source, int64_t base, Span span) {
  auto bad = [&] {
    return value_error(span, fmt::format("invalid literal for int() with base {}: {}", base, repr_text(source)));
  };
  std::string text = stripped(source);
  if (!drop_underscores(text)) return bad();
  bool negative = !text.empty() && text[0] == '-';
  std::string digits = !text.empty() && (text[0] == '-' || text[0] == '+') ? text.substr(1) : text;
  auto prefixed = [&](char letter) { return digits.size() > 2 && digits[0] == '0' && (digits[1] | 32) == letter; };
  int64_t prefix_base = prefixed('x') ? 16 : prefixed('o') ? 8 : prefixed('b') ? 2 : 0;
  if (prefix_base != 0 && (base == prefix_base || base == 0)) {
    base = prefix_base;
    digits = digits.substr(2);
  } else if (base == 0) {
    base = 10;
  }
  if (digits.empty() || !std::isalnum(static_cast<unsigned char>(digits[0]))) return bad();
  TRY(check_digits(digits.size(), static_cast<int>(base), span));
  auto value = BigInteger::parse(digits, static_cast<int>(base));
  if (!value) return bad();
  return make_integer(negative ? -*value : *std::move(value));
}

Result<Value> make_int(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"int", {"x", "base"}, 0};
  if (auto staged = TRY(ask_staging(interpreter, "int", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (!read[0]) return Value(0);
  if (auto* text = read[0]->if_string()) return parse_integer(*text, TRY(read.integer(1, 10)), args.span);
  if (read[1]) return type_error(args.span, "int() can't convert non-string with explicit base");
  if (auto index = read[0]->as_index()) return Value(*index);
  if (auto* real = read[0]->if_float()) return integer_from(interpreter, *real, args.span);
  for (std::string_view method : {"__int__", "__index__", "__trunc__"}) {
    if (auto converted = TRY(try_conversion(interpreter, *read[0], method, args.span))) return *std::move(converted);
  }
  return type_error(args.span, fmt::format("int() argument must be a string, a bytes-like object or a real number, "
                                           "not '{}'",
                                           read[0]->type_name()));
}

Result<Value> parse_float(const std::string& source, Span span) {
  std::string text = stripped(source);
  bool hexadecimal = text.find_first_of("xX") != std::string::npos;
  char* end = nullptr;
  bool good = drop_underscores(text);
  double value = std::strtod(text.c_str(), &end);
  if (!good || hexadecimal || text.empty() || *end != 0 || text.find('(') != std::string::npos) {
    return value_error(span, fmt::format("could not convert string to float: {}", repr_text(source)));
  }
  return Value(value);
}

Result<Value> make_float(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"float", {"x"}, 0};
  if (auto staged = TRY(ask_staging(interpreter, "float", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (!read[0]) return Value(0.0);
  if (auto number = read[0]->as_number()) return Value(*number);
  if (auto* text = read[0]->if_string()) return parse_float(*text, args.span);
  if (auto converted = TRY(try_conversion(interpreter, *read[0], "__float__", args.span))) return *converted;
  if (auto converted = TRY(try_conversion(interpreter, *read[0], "__index__", args.span))) {
    if (auto number = converted->as_number()) return Value(*number);
  }
  return type_error(args.span,
                    fmt::format("float() argument must be a string or a real number, not '{}'", read[0]->type_name()));
}

Result<Value> make_bool(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"bool", {"x"}, 0};
  if (auto staged = TRY(ask_staging(interpreter, "bool", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(read[0] && TRY(interpreter.truth(*read[0], args.span)));
}

Result<Value> make_str(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"str", {"object"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return read[0] ? Value(TRY(interpreter.str(*read[0]))) : Value("");
}

Result<std::vector<Value>> items_of_argument(Interpreter& interpreter, CallArgs& args, const Signature& signature) {
  Arguments read = TRY(Arguments::read(args, signature));
  if (!read[0]) return std::vector<Value>();
  return interpreter.to_vector(*read[0], args.span);
}

Result<Value> make_list_value(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"list", {"iterable"}, 0};
  return make_list(TRY(items_of_argument(interpreter, args, kSignature)));
}

Result<Value> make_tuple_value(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"tuple", {"iterable"}, 0};
  return make_tuple(TRY(items_of_argument(interpreter, args, kSignature)));
}

template <bool frozen>
Result<Value> make_set(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{frozen ? "frozenset" : "set", {"iterable"}, 0};
  auto set = std::make_shared<SetObject>();
  for (Value& item : TRY(items_of_argument(interpreter, args, kSignature))) {
    TRY(set->table.set(interpreter, std::move(item), None{}, args.span));
  }
  set->frozen = frozen;
  return Value(std::move(set));
}

Result<Value> make_dict_value(Interpreter& interpreter, CallArgs& args) {
  Value dict = make_dict();
  TRY(dict_methods().call(interpreter, dict, Name("update"), args));
  return dict;
}

Result<Value> make_slice(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"slice", {"start", "stop", "step"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (!read[1]) return Value(std::make_shared<SliceObject>(Value(), *read[0], Value()));
  return Value(std::make_shared<SliceObject>(*read[0], *read[1], read[2] ? *read[2] : Value()));
}

Result<Value> make_range(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"range", {"start", "stop", "step"}, 1};
  if (auto staged = TRY(ask_staging(interpreter, "range", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  int64_t ends[3] = {0, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    if (!read[i]) continue;
    auto index = read[i]->as_index();
    if (read[i]->get_if<IntObject>()) return integer_overflow(args.span, "range()");
    if (!index) {
      auto converted = TRY(try_conversion(interpreter, *read[i], "__index__", args.span));
      if (converted) index = converted->as_index();
    }
    if (!index) {
      return type_error(args.span,
                        fmt::format("'{}' object cannot be interpreted as an integer", read[i]->type_name()));
    }
    ends[i] = *index;
  }
  if (!read[1]) return Value(std::make_shared<RangeObject>(0, ends[0], 1));
  if (ends[2] == 0) return value_error(args.span, "range() arg 3 must not be zero");
  return Value(std::make_shared<RangeObject>(ends[0], ends[1], ends[2]));
}

Result<Value> make_type(Interpreter& interpreter, CallArgs& args) {
  if (args.positional.size() != 1 || !args.keywords.empty()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span, "type() takes 1 argument",
                      "write a `class` statement to make a class");
  }
  return Value(interpreter.class_of(args.positional[0]));
}

Result<Value> make_property(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"property", {"fget", "fset", "fdel", "doc"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto made = std::make_shared<PropertyObject>();
  if (read[0]) made->getter = *read[0];
  if (read[1]) made->setter = *read[1];
  if (read[2]) made->deleter = *read[2];
  return Value(std::move(made));
}

template <class Method>
Result<Value> make_method(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"staticmethod", {"function"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(std::make_shared<Method>(*read[0]));
}

// super(Class, self); without arguments the evaluator supplies them.
Result<Value> make_super(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"super", {"type", "object"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto owner = read[0]->get_shared<ClassObject>();
  if (!owner)
    return type_error(args.span, fmt::format("super() argument 1 must be a type, not {}", read[0]->type_name()));
  auto start = read[1]->get_if<ClassObject>() ? read[1]->get_shared<ClassObject>() : interpreter.class_of(*read[1]);
  if (!start->is_subclass_of(*owner)) {
    return type_error(args.span, "super(type, obj): obj must be an instance or subtype of type");
  }
  return Value(std::make_shared<SuperObject>(std::move(owner), *read[1]));
}

// str.maketrans(from, to, without) and str.maketrans(dict).
Result<Value> make_translation(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"maketrans", {"x", "y", "z"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto table = std::make_shared<DictObject>();
  const auto code = [](const Value& text) { return Value(int64_t{syntax::code_point_at(*text.if_string(), 0).value}); };
  if (auto* given = read[0]->get_if<DictObject>()) {
    for (const HashTable::Entry& entry : given->table.entries()) {
      if (!entry.live) continue;
      const bool named = entry.key.if_string() && !entry.key.if_string()->empty();
      TRY(table->table.set(interpreter, named ? code(entry.key) : entry.key, entry.value, args.span));
    }
    return Value(std::move(table));
  }
  const std::vector<Value> from = split_characters(TRY(read.text(0))), to = split_characters(TRY(read.text(1)));
  if (from.size() != to.size())
    return value_error(args.span, "the first two maketrans arguments must have equal length");
  for (size_t i = 0; i < from.size(); ++i) TRY(table->table.set(interpreter, code(from[i]), code(to[i]), args.span));
  for (const Value& each : split_characters(TRY(read.text(2))))
    TRY(table->table.set(interpreter, code(each), Value(), args.span));
  return Value(std::move(table));
}

using Construct = Result<Value> (*)(Interpreter&, CallArgs&);

struct BuiltinClass {
  std::string_view name;
  const Type* type;
  Construct construct;  // null: cannot be called
  const MethodTable& (*methods)();
};

const BuiltinClass kClasses[] = {
    {"type", &ClassObject::kType, make_type, nullptr},
    {"int", &kIntType, make_int, nullptr},
    {"float", &kFloatType, make_float, nullptr},
    {"str", &kStrType, make_str, string_methods},
    {"bytes", &BytesObject::kType, make_bytes, nullptr},
    {"list", &ListObject::kType, make_list_value, list_methods},
    {"tuple", &TupleObject::kType, make_tuple_value, tuple_methods},
    {"dict", &DictObject::kType, make_dict_value, dict_methods},
    {"set", &SetObject::kType, make_set<false>, set_methods},
    {"frozenset", &kFrozenSet, make_set<true>, set_methods},
    {"slice", &SliceObject::kType, make_slice, nullptr},
    {"range", &RangeObject::kType, make_range, nullptr},
    {"property", &PropertyObject::kType, make_property, nullptr},
    {"staticmethod", &StaticMethod::kType, make_method<StaticMethod>, nullptr},
    {"classmethod", &ClassMethod::kType, make_method<ClassMethod>, nullptr},
    {"super", &SuperObject::kType, make_super, nullptr},
};

// What `super().__init__(...)` finds at the top; user classes without `__init__` take no arguments either.
Result<Value> object_init(Interpreter&, CallArgs& args) {
  if (args.positional.size() <= 1 && args.keywords.empty()) return Value();
  return make_error(DiagnosticKind::wrong_arguments, args.span,
                    fmt::format("{}() takes no arguments", args.positional[0].type_name()));
}

// object.__setattr__, which a class's own `__setattr__` ends with.
Result<Value> object_setattr(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"__setattr__", {"self", "name", "value"}, 3};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string name = TRY(read.text(1));
  InstanceObject* instance = read[0]->if_object() ? (*read[0]->if_object())->as_instance() : nullptr;
  if (!instance)
    TRY(interpreter.set_attribute(*read[0], Name(name), *read[2], args.span));
  else
    instance->attributes().set(Name(name), *read[2]);
  return Value();
}

}  // namespace

void install_types(Interpreter& interpreter, Core& core) {
  auto object = core.add_class("object", nullptr);
  object->members.set(Name("__init__"), make_builtin("__init__", object_init));
  object->members.set(Name("__setattr__"), make_builtin("__setattr__", object_setattr));
  auto ignore = make_builtin("__init_subclass__", [](Interpreter&, CallArgs& args) -> Result<Value> {
    if (args.keywords.empty()) return Value();
    return type_error(args.span, "__init_subclass__() takes no keyword arguments");
  });
  object->members.set(Name("__init_subclass__"), std::make_shared<ClassMethod>(std::move(ignore)));
  interpreter.set_builtin("object", object);
  for (const BuiltinClass& each : kClasses) {
    auto made = core.add_class(each.name, each.type);
    made->construct = each.construct;
    made->sealed = true;
    if (each.methods) each.methods().add_to(*made);
    interpreter.set_builtin(each.name, made);
  }
  Value from_keys = std::make_shared<StaticMethod>(make_builtin("fromkeys", dict_from_keys));
  interpreter.find_builtin("dict")->get_if<ClassObject>()->members.set(Name("fromkeys"), std::move(from_keys));
  const auto add_static = [&](std::string_view owner, std::string_view name, Construct body) {
    Value function = std::make_shared<StaticMethod>(make_builtin(std::string(name), body));
    interpreter.find_builtin(owner)->get_if<ClassObject>()->members.set(Name(name), std::move(function));
  };
  add_static("bytes", "fromhex", bytes_from_hex);
  add_static("int", "from_bytes", integer_from_bytes);
  add_static("str", "maketrans", make_translation);
  install_derivable_types(interpreter);
  interpreter.set_builtin(syntax::kBytesLiteral, make_builtin("bytes", bytes_from_literal));
  auto boolean = core.add_class("bool", &kBoolType, interpreter.find_builtin("int")->get_shared<ClassObject>());
  boolean->construct = make_bool;
  boolean->sealed = true;
  interpreter.set_builtin("bool", boolean);
  core.add_class("NoneType", &kNoneType)->sealed = true;
  core.add_class("function", &FunctionObject::kType)->sealed = true;
  interpreter.set_builtin("Ellipsis", std::make_shared<EllipsisObject>());
  interpreter.set_builtin("NotImplemented", std::make_shared<NotImplementedObject>());
}

Result<Value> integer_attribute(const Value& self, Name name, Span span) {
  std::string_view text = name.text();
  if (text == "real" || text == "numerator") return Value(*self.as_index());
  if (text == "imag") return Value(0);
  if (text == "denominator") return Value(1);
  if (text == "to_bytes")
    return make_builtin("to_bytes", [self](Interpreter& interpreter, CallArgs& args) {
      return integer_to_bytes(interpreter, self, args);
    });
  if (text == "conjugate")
    return make_builtin("conjugate", [self](Interpreter&, CallArgs&) -> Result<Value> { return self; });
  if (text != "bit_length" && text != "bit_count" && text != "is_integer") {
    return no_attribute(self.type_name(), name, span, {"real", "imag", "bit_length", "bit_count", "is_integer"});
  }
  int64_t value = *self.as_index();
  return make_builtin(name.str(), [value, text](Interpreter&, CallArgs&) -> Result<Value> {
    if (text == "is_integer") return Value(true);
    uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    if (text == "bit_count") return Value(__builtin_popcountll(size));
    return Value(size == 0 ? 0 : 64 - __builtin_clzll(size));
  });
}

Result<Value> float_attribute(const Value& self, Name name, Span span) {
  std::string_view text = name.text();
  if (text == "real") return self;
  if (text == "imag") return Value(0.0);
  if (text != "is_integer") return no_attribute(self.type_name(), name, span, {"real", "imag", "is_integer"});
  double value = *self.if_float();
  return make_builtin("is_integer", [value](Interpreter&, CallArgs&) -> Result<Value> {
    return Value(std::isfinite(value) && std::floor(value) == value);
  });
}

}  // namespace tilepilot::stage
