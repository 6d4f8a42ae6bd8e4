// Matching calls of `T.` functions with their parameters. A function is one row of a table: name, parameter list as
// people write it, one line of documentation, handler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

// The parameters of a function, read from text such as "buffer, value, *, width=, policy?": a name with `=` is
// optional, one with `?` too, and no target here heeds it (`count?=1`: unless it is the default 1, that is announced);
// after a lone
// `*` only keywords are accepted, `*name` takes the remaining positional arguments.
class TileSignature {
 public:
  explicit TileSignature(std::string_view text);

  struct Parameter {
    std::string_view name;
    bool optional = false;
    bool keyword_only = false;
    bool dropped = false;
    std::string_view fallback;  // of a dropped one: the value that asks for nothing
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  bool variadic() const { return variadic_; }
  // As people write it: "buffer, value, *, width=, policy=".
  const std::string& text() const { return text_; }

 private:
  void add(std::string_view word, bool keyword_only);
  std::string text_;
  std::vector<Parameter> parameters_;
  bool variadic_ = false;
};

// The arguments of one call by position in the signature.
class TileArguments {
 public:
  // `function` is the name that messages show.
  static Result<TileArguments> match(TileContext& context, std::string_view function, const TileSignature& signature,
                                     CallArgs& call);

  TileContext& context() const { return *context_; }
  std::string_view function() const { return function_; }
  Span span() const { return span_; }
  // The span of argument `i`, or of the call.
  Span span(size_t i) const { return spans_[i].valid() ? spans_[i] : span_; }
  const Value& operator[](size_t i) const { return values_[i]; }
  // Given, and not None.
  bool has(size_t i) const { return given_[i] && !values_[i].is_none(); }
  const std::vector<Value>& rest() const { return rest_; }

  // Arguments of compile-time types; `type_error` or `staged_value_misused` otherwise.
  Result<int64_t> integer(size_t i) const;
  Result<int64_t> integer_or(size_t i, int64_t fallback) const;
  Result<bool> flag_or(size_t i, bool fallback) const;
  Result<std::string> text(size_t i) const;
  // Warns of the arguments that ask for something and that no target here heeds.
  Status announce_dropped() const;

 private:
  TileContext* context_ = nullptr;
  std::string_view function_;
  Span span_;
  const TileSignature* signature_ = nullptr;
  std::vector<Value> values_;
  std::vector<Span> spans_;
  std::vector<bool> given_;
  std::vector<Value> rest_;
  std::string parameter_label(size_t i) const;
  Status place_positional(CallArgs& call);
  Status place_keywords(CallArgs& call);
  Status check_complete() const;
};

// What a call does here. `hint`: checked for its form, then announced and dropped; it changes speed elsewhere, results
// nowhere.
enum class Effect : uint8_t { used, hint };

struct TileFunction {
  std::string_view name;
  std::string_view parameters;
  std::string_view summary;
  Result<Value> (*handler)(TileArguments& arguments);
  Effect effect = Effect::used;
};

// A row, which outlives it, as a callable value; `prefix` is "T." or "tilelang.".
Value make_function(const ContextRef& context, std::string_view prefix, const TileFunction& row);

// A compile-time integer: int, bool, or a constant tile expression.
Result<int64_t> meta_integer(const Value& value, std::string_view what, Span span);
// A compile-time integer, if it is one.
std::optional<int64_t> constant_integer(const Value& value);

}  // namespace tilepilot::stage
