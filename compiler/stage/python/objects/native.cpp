#include "compiler/stage/python/objects/native.h"

#include <fmt/format.h>

#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"

namespace tilepilot::stage {

namespace {

Error wrong_call(Span span, std::string message) {
  return make_error(DiagnosticKind::wrong_arguments, span, std::move(message));
}

}  // namespace

size_t Signature::count() const {
  size_t count = 0;
  while (count < kMost && !parameters[count].empty()) ++count;
  return count;
}

Result<Arguments> Arguments::read(const CallArgs& call, const Signature& signature) {
  Arguments arguments;
  arguments.signature_ = &signature;
  arguments.span_ = call.span;
  size_t count = signature.count(), given = call.positional.size();
  if (given > count) {
    return wrong_call(call.span,
                      fmt::format("{}() takes {}{} argument{} ({} given)", signature.function,
                                  signature.required < count ? "at most " : "", count, count == 1 ? "" : "s", given));
  }
  for (size_t i = 0; i < given; ++i) arguments.values_[i] = &call.positional[i];
  for (const auto& [name, value] : call.keywords) {
    size_t i = 0;
    while (i < count && signature.parameters[i] != name.text()) ++i;
    if (i == count) {
      return wrong_call(call.span,
                        fmt::format("{}() got an unexpected keyword argument '{}'", signature.function, name.text()));
    }
    if (arguments.values_[i]) {
      return wrong_call(call.span,
                        fmt::format("{}() got multiple values for argument '{}'", signature.function, name.text()));
    }
    arguments.values_[i] = &value;
  }
  for (size_t i = 0; i < signature.required; ++i) {
    if (arguments.values_[i]) continue;
    return wrong_call(call.span, fmt::format("{}() missing required argument '{}' (pos {})", signature.function,
                                             signature.parameters[i], i + 1));
  }
  return arguments;
}

Error Arguments::wrong_type(size_t position, std::string_view wanted) const {
  return type_error(span_, fmt::format("{}() argument '{}' must be {}, not {}", signature_->function,
                                       signature_->parameters[position], wanted, values_[position]->type_name()));
}

Result<int64_t> Arguments::integer(size_t position, int64_t fallback) const {
  if (!values_[position]) return fallback;
  if (auto index = values_[position]->as_index()) return *index;
  if (values_[position]->get_if<IntObject>()) return integer_overflow(span_, signature_->function);
  return wrong_type(position, "int");
}

Result<double> Arguments::number(size_t position, double fallback) const {
  if (!values_[position]) return fallback;
  if (auto number = values_[position]->as_number()) return *number;
  if (auto* big = values_[position]->get_if<IntObject>()) return big->value.to_double();
  return wrong_type(position, "a real number");
}

Result<std::string> Arguments::text(size_t position, std::string_view fallback) const {
  if (!values_[position]) return std::string(fallback);
  if (auto* text = values_[position]->if_string()) return *text;
  auto* object = values_[position]->if_object();
  if (const std::string* text = object && *object ? (*object)->as_text() : nullptr) return *text;
  return wrong_type(position, "str");
}

MethodTable::MethodTable(std::initializer_list<std::pair<std::string_view, MethodBody>> methods) {
  for (const auto& [name, body] : methods) methods_.emplace(Name(name), body);
}

MethodBody MethodTable::find(Name name) const {
  auto found = methods_.find(name);
  return found == methods_.end() ? nullptr : found->second;
}

std::vector<std::string_view> MethodTable::names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, body] : methods_) names.push_back(name.text());
  return names;
}

Result<Value> MethodTable::bind(const Value& self, Name name, Span span) const {
  MethodBody body = find(name);
  if (!body) return no_attribute(self.type_name(), name, span, names());
  return make_builtin(name.str(),
                      [self, body](Interpreter& interpreter, CallArgs& args) { return body(interpreter, self, args); });
}

Result<Value> MethodTable::call(Interpreter& interpreter, const Value& self, Name name, CallArgs& args) const {
  if (MethodBody body = find(name)) return body(interpreter, self, args);
  return no_attribute(self.type_name(), name, args.span, names());
}

void MethodTable::add_to(ClassObject& class_object) const {
  for (const auto& [name, body] : methods_) {
    auto on_held = [body = body](Interpreter& interpreter, const Value& self, CallArgs& args) {
      return body(interpreter, Value(held_value(self)), args);
    };
    class_object.members.set(name, make_descriptor(class_object.name, name, on_held));
  }
}

Result<std::optional<Value>> ask_staging(Interpreter& interpreter, std::string_view name, CallArgs& args) {
  Staging* staging = interpreter.staging();
  if (!staging) return std::optional<Value>();
  for (const Value& each : args.positional) {
    if (staging->is_staged(each)) return staging->builtin(name, args);
  }
  return std::optional<Value>();
}

Result<std::optional<Value>> try_conversion(Interpreter& interpreter, const Value& value, std::string_view method,
                                            Span span, std::vector<Value> arguments) {
  if (!value.if_object()) return std::optional<Value>();
  auto found = interpreter.get_attribute(value, Name(method), span);
  if (!found.ok()) {
    if (found.error().kind == DiagnosticKind::unknown_attribute) return std::optional<Value>();
    return std::move(found).take_error();
  }
  return std::optional<Value>(TRY(interpreter.call(*found, CallArgs{std::move(arguments), {}, span, {}})));
}

Error no_attribute(std::string_view type_name, Name name, Span span, const std::vector<std::string_view>& known) {
  std::string_view nearest = nearest_name(name.text(), known);
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("'{}' object has no attribute '{}'", type_name, name.text()),
                    nearest.empty() ? "" : fmt::format("did you mean `{}`?", nearest));
}

Error type_error(Span span, std::string message) {
  return make_error(DiagnosticKind::type_error, span, std::move(message));
}

Error value_error(Span span, std::string message) {
  return make_error(DiagnosticKind::value_error, span, std::move(message));
}

Value make_builtin(std::string name, BuiltinFunction::Body body) {
  return std::make_shared<BuiltinFunction>(std::move(name), std::move(body));
}

Value make_method(std::string name, BuiltinFunction::Body body) {
  auto made = std::make_shared<BuiltinFunction>(std::move(name), std::move(body));
  made->is_method = true;
  return made;
}

}  // namespace tilepilot::stage
