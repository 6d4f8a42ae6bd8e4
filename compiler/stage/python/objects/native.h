// What functions written in C++ share: reading their arguments against a signature, and tables of methods.
#pragma once

#include <array>
#include <initializer_list>
#include <unordered_map>

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

// The parameters of a built-in function, for matching and for messages.
struct Signature {
  static constexpr size_t kMost = 8;
  std::string_view function;
  std::array<std::string_view, kMost> parameters{};
  size_t required = 0;

  size_t count() const;
};

// One call's arguments in the order of a signature. Points into the CallArgs it was read from.
class Arguments {
 public:
  static Result<Arguments> read(const CallArgs& call, const Signature& signature);

  // The argument, or null if it was not given.
  const Value* operator[](size_t position) const { return values_[position]; }
  // As the type wanted; `type_error` with the parameter's name otherwise.
  Result<int64_t> integer(size_t position, int64_t fallback = 0) const;
  Result<double> number(size_t position, double fallback = 0) const;
  Result<std::string> text(size_t position, std::string_view fallback = "") const;
  bool given(size_t position) const { return values_[position] && !values_[position]->is_none(); }
  Span span() const { return span_; }

 private:
  Error wrong_type(size_t position, std::string_view wanted) const;
  const Signature* signature_ = nullptr;
  std::array<const Value*, Signature::kMost> values_{};
  Span span_;
};

// The methods of a built-in type.
using MethodBody = Result<Value> (*)(Interpreter& interpreter, const Value& self, CallArgs& args);
class MethodTable {
 public:
  MethodTable(std::initializer_list<std::pair<std::string_view, MethodBody>> methods);
  MethodBody find(Name name) const;
  std::vector<std::string_view> names() const;
  // `self.name` as a value.
  Result<Value> bind(const Value& self, Name name, Span span) const;
  Result<Value> call(Interpreter& interpreter, const Value& self, Name name, CallArgs& args) const;
  // Makes each method a member of the class, so that `str.upper` is a function.
  void add_to(ClassObject& class_object) const;

 private:
  std::unordered_map<Name, MethodBody, NameHash> methods_;
};

const MethodTable& string_methods();
const MethodTable& list_methods();
const MethodTable& tuple_methods();
const MethodTable& dict_methods();
const MethodTable& set_methods();
// Attributes of int, bool and float.
Result<Value> integer_attribute(const Value& self, Name name, Span span);
Result<Value> float_attribute(const Value& self, Name name, Span span);

// The staging's answer, if one is installed and a built-in got a run-time value.
Result<std::optional<Value>> ask_staging(Interpreter& interpreter, std::string_view name, CallArgs& args);
// What a conversion method (`__float__`, `__round__`) of an object gives; nullopt if it has none.
Result<std::optional<Value>> try_conversion(Interpreter& interpreter, const Value& value, std::string_view method,
                                            Span span, std::vector<Value> arguments = {});

// Errors in Python's words.
Error no_attribute(std::string_view type_name, Name name, Span span, const std::vector<std::string_view>& known = {});
Error type_error(Span span, std::string message);
Error value_error(Span span, std::string message);

Value make_builtin(std::string name, BuiltinFunction::Body body);
// A method for a class written in Python: its first argument is the instance.
Value make_method(std::string name, BuiltinFunction::Body body);

}  // namespace tilepilot::stage
