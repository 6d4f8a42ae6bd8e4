// Matching a call's arguments with a function's parameters, with Python's own words for what does not fit.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

using syntax::Parameter;
using Kind = Parameter::Kind;

namespace {

std::string shown_name(const FunctionObject& function) {
  auto owner = function.owner.lock();
  return owner ? fmt::format("{}.{}()", owner->name.text(), function.name.text())
               : fmt::format("{}()", function.name.text());
}

Error mismatch(const FunctionObject& function, Span span, std::string message) {
  Error error = make_error(DiagnosticKind::wrong_arguments, span, shown_name(function) + " " + std::move(message));
  if (function.span.valid()) error->note(function.span, fmt::format("`{}` is defined here", function.name.text()));
  return error;
}

bool takes_positional(const Parameter& parameter) {
  return parameter.kind == Kind::positional_only || parameter.kind == Kind::positional;
}

bool is_plain(const Parameter& parameter) {
  return parameter.kind != Kind::var_positional && parameter.kind != Kind::var_keyword;
}

std::string quoted_list(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : names.size() > 2 ? ", and " : " and ";
    text += fmt::format("'{}'", names[i]);
  }
  return text;
}

std::string_view plural(size_t count) { return count == 1 ? "" : "s"; }

// One call being matched.
class Binder {
 public:
  Binder(Interpreter& interpreter, const FunctionObject& function, CallArgs& args)
      : interpreter_(interpreter), function_(function), parameters_(*function.parameters), args_(args) {
    values_.resize(parameters_.size());
  }

  Result<std::vector<Value>> bind() {
    TRY(positional());
    TRY(keywords());
    TRY(missing(true));
    TRY(missing(false));
    std::vector<Value> values;
    values.reserve(values_.size());
    for (auto& value : values_) values.push_back(*std::move(value));
    return values;
  }

 private:
  Status positional() {
    size_t next = 0;
    for (size_t i = 0; i < parameters_.size() && takes_positional(parameters_[i]); ++i) {
      if (next < args_.positional.size()) values_[i] = std::move(args_.positional[next++]);
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].kind != Kind::var_positional) continue;
      std::vector<Value> rest(args_.positional.begin() + static_cast<std::ptrdiff_t>(next), args_.positional.end());
      values_[i] = make_tuple(std::move(rest));
      return {};
    }
    if (next < args_.positional.size()) return too_many();
    return {};
  }

  Error too_many() const {
    size_t most = 0, required = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!takes_positional(parameters_[i])) continue;
      ++most;
      if (!function_.defaults[i]) ++required;
    }
    std::string range = required == most ? fmt::format("{}", most) : fmt::format("from {} to {}", required, most);
    size_t given = args_.positional.size();
    return mismatch(function_, args_.span,
                    fmt::format("takes {} positional argument{} but {} {} given", range, plural(most), given,
                                given == 1 ? "was" : "were"));
  }

  Status keywords() {
    std::shared_ptr<DictObject> rest;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].kind == Kind::var_keyword) values_[i] = rest = std::make_shared<DictObject>();
    }
    for (auto& [name, value] : args_.keywords) {
      size_t i = find(name);
      if (i == parameters_.size()) {
        if (!rest) return unexpected(name);
        TRY(rest->table.set(interpreter_, Value(name.text()), std::move(value), args_.span));
      } else if (values_[i]) {
        return mismatch(function_, args_.span, fmt::format("got multiple values for argument '{}'", name.text()));
      } else {
        values_[i] = std::move(value);
      }
    }
    return {};
  }

  size_t find(Name name) const {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      bool by_name = parameters_[i].kind == Kind::positional || parameters_[i].kind == Kind::keyword_only;
      if (by_name && parameters_[i].name == name) return i;
    }
    return parameters_.size();
  }

  // Names of positional-only parameters among the keywords, separated by commas.
  std::string misplaced() const {
    std::string names;
    for (const Parameter& parameter : parameters_) {
      if (parameter.kind != Kind::positional_only || !args_.keyword(parameter.name.text())) continue;
      names += (names.empty() ? "" : ", ") + parameter.name.str();
    }
    return names;
  }

  Error unexpected(Name name) const {
    if (const std::string names = misplaced(); !names.empty())
      return mismatch(function_, args_.span,
                      fmt::format("got some positional-only arguments passed as keyword arguments: '{}'", names));
    std::vector<std::string_view> known;
    for (const Parameter& parameter : parameters_) {
      if (is_plain(parameter)) known.push_back(parameter.name.text());
    }
    Error error = mismatch(function_, args_.span, fmt::format("got an unexpected keyword argument '{}'", name.text()));
    std::string_view nearest = nearest_name(name.text(), known);
    if (!nearest.empty()) error->with_hint(fmt::format("did you mean `{}`?", nearest));
    return error;
  }

  // Fills in defaults of one sort of parameters; an error if a required one has no value.
  Status missing(bool positional) {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (values_[i] || takes_positional(parameters_[i]) != positional) continue;
      if (function_.defaults[i]) {
        values_[i] = function_.defaults[i];
      } else {
        names.push_back(parameters_[i].name.text());
      }
    }
    if (names.empty()) return {};
    return mismatch(function_, args_.span,
                    fmt::format("missing {} required {} argument{}: {}", names.size(),
                                positional ? "positional" : "keyword-only", plural(names.size()), quoted_list(names)));
  }

  Interpreter& interpreter_;
  const FunctionObject& function_;
  const std::vector<Parameter>& parameters_;
  CallArgs& args_;
  std::vector<std::optional<Value>> values_;
};

// The common case: as many positional arguments as parameters, none of them special.
bool fits_exactly(const FunctionObject& function, const CallArgs& args) {
  return args.keywords.empty() && args.positional.size() == function.parameters->size() && function.only_positional;
}

}  // namespace

Result<std::vector<Value>> Interpreter::bind_arguments(const FunctionObject& function, CallArgs args) {
  if (fits_exactly(function, args)) return std::move(args.positional);
  return Binder(*this, function, args).bind();
}

}  // namespace tilepilot::stage
