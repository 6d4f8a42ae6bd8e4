#include "compiler/stage/tile/kernel/arguments.h"

#include <fmt/format.h>

#include "compiler/stage/tile/kernel/expressions.h"

namespace tilepilot::stage {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

TileSignature::TileSignature(std::string_view text) {
  bool keyword_only = false;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view word = trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (word.empty()) continue;
    if (!text_.empty()) text_ += ", ";
    if (word.front() == '*') {
      variadic_ = word.size() > 1;
      keyword_only = true;
      text_ += word;
    } else {
      add(word, keyword_only);
    }
  }
}

void TileSignature::add(std::string_view word, bool keyword_only) {
  const size_t end = std::min(word.find_first_of("=?"), word.size());
  Parameter parameter{word.substr(0, end), end < word.size(), keyword_only, false, {}};
  parameter.dropped = parameter.optional && word[end] == '?';
  if (parameter.dropped && end + 2 < word.size()) parameter.fallback = word.substr(end + 2);
  text_ += parameter.name;
  if (parameter.optional) text_ += "=";
  parameters_.push_back(parameter);
}

Result<TileArguments> TileArguments::match(TileContext& context, std::string_view function,
                                           const TileSignature& signature, CallArgs& call) {
  TileArguments matched;
  matched.context_ = &context;
  matched.function_ = function;
  matched.span_ = call.span;
  matched.signature_ = &signature;
  size_t count = signature.parameters().size();
  matched.values_.resize(count);
  matched.spans_.resize(count);
  matched.given_.resize(count);
  TRY(matched.place_positional(call));
  TRY(matched.place_keywords(call));
  TRY(matched.check_complete());
  return matched;
}

Status TileArguments::place_positional(CallArgs& call) {
  const auto& parameters = signature_->parameters();
  size_t accepted = 0;
  while (accepted < parameters.size() && !parameters[accepted].keyword_only) ++accepted;
  for (size_t i = 0; i < call.positional.size(); ++i) {
    if (i < accepted) {
      values_[i] = call.positional[i];
      given_[i] = true;
      if (i < call.positional_spans.size()) spans_[i] = call.positional_spans[i];
    } else if (signature_->variadic()) {
      rest_.push_back(call.positional[i]);
    } else {
      return make_error(DiagnosticKind::wrong_arguments, span_,
                        fmt::format("`{}` takes {} positional argument{}, got {}", function_, accepted,
                                    accepted == 1 ? "" : "s", call.positional.size()),
                        fmt::format("its form is `{}({})`", function_, signature_->text()));
    }
  }
  return {};
}

Status TileArguments::place_keywords(CallArgs& call) {
  const auto& parameters = signature_->parameters();
  for (auto& [name, value] : call.keywords) {
    size_t i = 0;
    while (i < parameters.size() && parameters[i].name != name.text()) ++i;
    if (i == parameters.size()) {
      std::vector<std::string_view> names;
      for (const auto& parameter : parameters) names.push_back(parameter.name);
      std::string_view near = nearest_name(name.text(), names);
      std::string hint = near.empty() ? fmt::format("its form is `{}({})`", function_, signature_->text())
                                      : fmt::format("did you mean `{}`?", near);
      return make_error(DiagnosticKind::wrong_arguments, span_,
                        fmt::format("`{}` has no parameter `{}`", function_, name.text()), std::move(hint));
    }
    if (given_[i])
      return make_error(DiagnosticKind::wrong_arguments, span_,
                        fmt::format("`{}` got two values for `{}`", function_, name.text()));
    values_[i] = value;
    given_[i] = true;
  }
  return {};
}

Status TileArguments::check_complete() const {
  const auto& parameters = signature_->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given_[i] || parameters[i].optional) continue;
    return make_error(DiagnosticKind::wrong_arguments, span_,
                      fmt::format("`{}` lacks its argument `{}`", function_, parameters[i].name),
                      fmt::format("its form is `{}({})`", function_, signature_->text()));
  }
  return {};
}

Status TileArguments::announce_dropped() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const TileSignature::Parameter& parameter = signature_->parameters()[i];
    if (!parameter.dropped || !has(i)) continue;
    if (parameter.fallback == TRY(context_->interpreter.repr(values_[i]))) continue;
    context_->announce_ignored(parameter_label(i), span(i));
  }
  return {};
}

std::string TileArguments::parameter_label(size_t i) const {
  return fmt::format("`{}` of `{}`", signature_->parameters()[i].name, function_);
}

Result<int64_t> TileArguments::integer(size_t i) const { return meta_integer(values_[i], parameter_label(i), span(i)); }

Result<int64_t> TileArguments::integer_or(size_t i, int64_t fallback) const { return has(i) ? integer(i) : fallback; }

Result<bool> TileArguments::flag_or(size_t i, bool fallback) const {
  if (!has(i)) return fallback;
  if (auto* flag = values_[i].if_bool()) return *flag;
  return TRY(integer(i)) != 0;
}

Result<std::string> TileArguments::text(size_t i) const {
  if (auto* text = values_[i].if_string()) return *text;
  return make_error(DiagnosticKind::type_error, span(i),
                    fmt::format("{} must be a string, not `{}`", parameter_label(i), values_[i].type_name()));
}

Value make_function(const ContextRef& context, std::string_view prefix, const TileFunction& row) {
  std::string name = fmt::format("{}{}", prefix, row.name);
  auto body = [context, name, &row, signature = TileSignature(row.parameters)](Interpreter&,
                                                                               CallArgs& call) -> Result<Value> {
    TileArguments arguments = TRY(TileArguments::match(*context, name, signature, call));
    Value result = TRY(row.handler(arguments));
    if (row.effect == Effect::hint) context->announce_ignored(fmt::format("`{}`", name), call.span);
    TRY(arguments.announce_dropped());
    return result;
  };
  return std::make_shared<BuiltinFunction>(name, std::move(body));
}

std::optional<int64_t> constant_integer(const Value& value) {
  if (auto index = value.as_index()) return index;
  if (auto* expression = value.get_if<TileExpr>()) return ir::constant_int(expression->expr);
  return std::nullopt;
}

Result<int64_t> meta_integer(const Value& value, std::string_view what, Span span) {
  if (auto constant = constant_integer(value)) return *constant;
  if (is_tile_value(value))
    return make_error(DiagnosticKind::staged_value_misused, span,
                      fmt::format("{} must be a compile-time integer, but this value is known only at run time", what),
                      "compute it from the factory's arguments");
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("{} must be an integer, not `{}`", what, value.type_name()));
}

}  // namespace tilepilot::stage
