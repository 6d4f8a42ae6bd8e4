#include "compiler/stage/python/objects/protocol_methods.h"

#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

namespace {

using ProtocolBody = Result<Value> (*)(Interpreter&, const Value& self, CallArgs& args);

Status check_count(const CallArgs& args, size_t wanted) {
  if (args.positional.size() == wanted && args.keywords.empty()) return {};
  return make_error(
      DiagnosticKind::wrong_arguments, args.span,
      fmt::format("expected {} argument{}, got {}", wanted, wanted == 1 ? "" : "s", args.positional.size()));
}

Result<Value> length(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 0));
  return Value(TRY(interpreter.length(held_value(self), args.span)));
}

Result<Value> iterate(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 0));
  return make_iterator(TRY(interpreter.iterate(held_value(self), args.span)));
}

Result<Value> contains(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  return interpreter.compare(CompareOp::in, args.positional[0], held_value(self), args.span);
}

Result<Value> get_item(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  return interpreter.get_item(held_value(self), args.positional[0], args.span);
}

// A class that derives from dict may say by `__missing__` what a key gives that is not there.
Result<Value> get_entry(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  static const Name kMissing("__missing__");
  auto* instance = self.get_if<HeldInstance>();
  auto* dict = held_value(self).get_if<DictObject>();
  const Value* hook = instance ? instance->class_object()->lookup(kMissing) : nullptr;
  if (!hook || TRY(dict->contains(interpreter, args.positional[0], args.span)))
    return get_item(interpreter, self, args);
  const Value function = *hook;
  return interpreter.call(function, CallArgs{{self, args.positional[0]}, {}, args.span, {}});
}

Result<Value> set_item(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 2));
  TRY(interpreter.set_item(held_value(self), args.positional[0], args.positional[1], args.span));
  return Value();
}

Result<Value> delete_item(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  TRY(interpreter.delete_item(held_value(self), args.positional[0], args.span));
  return Value();
}

Result<Value> show(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 0));
  return Value(TRY(interpreter.repr(held_value(self))));
}

Result<Value> text(Interpreter&, const Value& self, CallArgs& args) {
  TRY(check_count(args, 0));
  return held_value(self);
}

Result<Value> format(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  const std::string* spec = args.positional[0].if_string();
  if (!spec) return type_error(args.span, "format() argument 2 must be str");
  return Value(TRY(format_value(interpreter, held_value(self), *spec, args.span)));
}

Result<Value> hash(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 0));
  return Value(static_cast<int64_t>(TRY(interpreter.hash(held_value(self), args.span))));
}

Value or_not_implemented(Interpreter& interpreter, std::optional<Value> result) {
  return result ? *std::move(result) : *interpreter.find_builtin("NotImplemented");
}

template <BinaryOp op, bool reflected>
Result<Value> combine(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  const Value own = held_value(self), other = held_value(args.positional[0]);
  if (auto* object = own.if_object())
    return or_not_implemented(interpreter, TRY((*object)->binary(interpreter, op, other, reflected, args.span)));
  return reflected ? interpreter.binary(op, other, own, args.span) : interpreter.binary(op, own, other, args.span);
}

template <BinaryOp op>
Result<Value> combine_in_place(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  const Value own = held_value(self), other = held_value(args.positional[0]);
  if (auto* set = own.get_if<SetObject>()) {
    const auto made = TRY(set->binary(interpreter, op, other, false, args.span));
    if (!made) return or_not_implemented(interpreter, made);
    set->table = made->get_if<SetObject>()->table;
    return own;
  }
  auto result = TRY((*own.if_object())->binary_in_place(interpreter, op, other, args.span));
  return or_not_implemented(interpreter, std::move(result));
}

template <CompareOp op>
Result<Value> compare(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(check_count(args, 1));
  const Value own = held_value(self), other = held_value(args.positional[0]);
  if (auto* object = own.if_object())
    return or_not_implemented(interpreter, TRY((*object)->compare(interpreter, op, other, args.span)));
  if (!other.if_string()) return *interpreter.find_builtin("NotImplemented");
  return interpreter.compare(op, own, other, args.span);
}

constexpr unsigned kList = 1, kDict = 2, kSet = 4, kText = 8;
constexpr unsigned kAll = kList | kDict | kSet | kText;

struct Row {
  std::string_view name;
  unsigned owners;
  ProtocolBody body;
};

constexpr Row kRows[] = {
    {"__len__", kAll, length},
    {"__iter__", kAll, iterate},
    {"__contains__", kAll, contains},
    {"__repr__", kAll, show},
    {"__str__", kText, text},
    {"__format__", kText, format},
    {"__hash__", kText, hash},
    {"__getitem__", kList | kText, get_item},
    {"__getitem__", kDict, get_entry},
    {"__setitem__", kList | kDict, set_item},
    {"__delitem__", kList | kDict, delete_item},
    {"__eq__", kAll, compare<CompareOp::eq>},
    {"__ne__", kAll, compare<CompareOp::ne>},
    {"__lt__", kList | kSet | kText, compare<CompareOp::lt>},
    {"__le__", kList | kSet | kText, compare<CompareOp::le>},
    {"__gt__", kList | kSet | kText, compare<CompareOp::gt>},
    {"__ge__", kList | kSet | kText, compare<CompareOp::ge>},
    {"__add__", kList | kText, combine<BinaryOp::add, false>},
    {"__iadd__", kList, combine_in_place<BinaryOp::add>},
    {"__mul__", kList | kText, combine<BinaryOp::mul, false>},
    {"__rmul__", kList | kText, combine<BinaryOp::mul, true>},
    {"__imul__", kList, combine_in_place<BinaryOp::mul>},
    {"__mod__", kText, combine<BinaryOp::mod, false>},
    {"__or__", kDict | kSet, combine<BinaryOp::bit_or, false>},
    {"__ror__", kDict | kSet, combine<BinaryOp::bit_or, true>},
    {"__ior__", kDict | kSet, combine_in_place<BinaryOp::bit_or>},
    {"__iand__", kSet, combine_in_place<BinaryOp::bit_and>},
    {"__isub__", kSet, combine_in_place<BinaryOp::sub>},
    {"__ixor__", kSet, combine_in_place<BinaryOp::bit_xor>},
    {"__and__", kSet, combine<BinaryOp::bit_and, false>},
    {"__rand__", kSet, combine<BinaryOp::bit_and, true>},
    {"__sub__", kSet, combine<BinaryOp::sub, false>},
    {"__rsub__", kSet, combine<BinaryOp::sub, true>},
    {"__xor__", kSet, combine<BinaryOp::bit_xor, false>},
    {"__rxor__", kSet, combine<BinaryOp::bit_xor, true>},
};

}  // namespace

void add_protocol_methods(ClassObject& built_in) {
  const std::string_view name = built_in.name.text();
  const unsigned owner = name == "list" ? kList : name == "dict" ? kDict : name == "set" ? kSet : kText;
  for (const Row& row : kRows) {
    if (!(row.owners & owner)) continue;
    const Name method(row.name);
    built_in.members.set(method, make_descriptor(built_in.name, method, row.body));
  }
}

}  // namespace tilepilot::stage
