// Built-in functions on numbers: abs, round, divmod, pow, min, max, sum, and the spellings of integers.
#include <fmt/format.h>

#include <cmath>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Result<Value> absolute(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"abs", {"x"}, 1};
  if (auto staged = TRY(ask_staging(interpreter, "abs", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (auto* real = read[0]->if_float()) return Value(std::fabs(*real));
  if (auto index = read[0]->as_index()) {
    return *index < 0 ? interpreter.unary(UnaryOp::minus, Value(*index), args.span) : Result<Value>(Value(*index));
  }
  if (auto converted = TRY(try_conversion(interpreter, *read[0], "__abs__", args.span))) return *std::move(converted);
  return type_error(args.span, fmt::format("bad operand type for abs(): '{}'", read[0]->type_name()));
}

Result<Value> round_value(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"round", {"number", "ndigits"}, 1};
  if (auto staged = TRY(ask_staging(interpreter, "round", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  int64_t digits = read.given(1) ? TRY(read.integer(1)) : 0;
  if (auto index = read[0]->as_index()) return round_to_digits(*index, digits);
  if (auto* real = read[0]->if_float()) {
    if (!read.given(1)) return integer_from(interpreter, std::nearbyint(*real), args.span);
    return Value(round_to_digits(*real, digits));
  }
  if (read[0]->if_object()) {
    std::vector<Value> rest;
    if (read[1]) rest.push_back(*read[1]);
    auto rounded = TRY(try_conversion(interpreter, *read[0], "__round__", args.span, std::move(rest)));
    if (rounded) return *std::move(rounded);
  }
  return type_error(args.span, fmt::format("type {} doesn't define __round__ method", read[0]->type_name()));
}

Result<Value> divide_with_rest(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"divmod", {"x", "y"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Value quotient = TRY(interpreter.binary(BinaryOp::floor_div, *read[0], *read[1], args.span));
  Value rest = TRY(interpreter.binary(BinaryOp::mod, *read[0], *read[1], args.span));
  return make_tuple({std::move(quotient), std::move(rest)});
}

Result<Value> power(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"pow", {"base", "exp", "mod"}, 2};
  if (auto staged = TRY(ask_staging(interpreter, "pow", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (!read.given(2)) return interpreter.binary(BinaryOp::pow, *read[0], *read[1], args.span);
  auto base = integer_of(*read[0]), exponent = integer_of(*read[1]), modulus = integer_of(*read[2]);
  if (!base || !exponent || !modulus)
    return type_error(args.span, "pow() 3rd argument not allowed unless all arguments are integers");
  return modular_power(*base, *exponent, *modulus, args.span);
}

// min and max: of one iterable, or of several arguments; `key` and `default` by keyword.
template <CompareOp better>
Result<Value> extreme(Interpreter& interpreter, CallArgs& args) {
  constexpr std::string_view kName = better == CompareOp::lt ? "min" : "max";
  if (auto staged = TRY(ask_staging(interpreter, kName, args))) return *std::move(staged);
  const Value* key = args.keyword("key");
  const Value* fallback = args.keyword("default");
  for (const auto& [name, value] : args.keywords) {
    if (&value != key && &value != fallback) {
      return make_error(DiagnosticKind::wrong_arguments, args.span,
                        fmt::format("{}() got an unexpected keyword argument '{}'", kName, name.text()));
    }
  }
  if (args.positional.empty()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("{} expected at least 1 argument, got 0", kName));
  }
  std::vector<Value> items = args.positional;
  if (items.size() == 1) items = TRY(interpreter.to_vector(args.positional[0], args.span));
  if (items.empty()) {
    return fallback ? Result<Value>(*fallback)
                    : value_error(args.span, fmt::format("{}() arg is an empty sequence", kName));
  }
  auto key_of = [&](const Value& item) -> Result<Value> {
    if (!key || key->is_none()) return item;
    return interpreter.call(*key, CallArgs{{item}, {}, args.span, {}});
  };
  size_t best = 0;
  Value best_key = TRY(key_of(items[0]));
  for (size_t i = 1; i < items.size(); ++i) {
    Value each = TRY(key_of(items[i]));
    Value wins = TRY(interpreter.compare(better, each, best_key, args.span));
    if (!TRY(interpreter.truth(wins, args.span))) continue;
    best = i;
    best_key = std::move(each);
  }
  return items[best];
}

Result<Value> sum(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"sum", {"iterable", "start"}, 1};
  if (auto staged = TRY(ask_staging(interpreter, "sum", args))) return *std::move(staged);
  Arguments read = TRY(Arguments::read(args, kSignature));
  Value total = read[1] ? *read[1] : Value(0);
  if (total.if_string()) { return type_error(args.span, "sum() can't sum strings [use ''.join(seq) instead]"); }
  std::unique_ptr<Iterator> items = TRY(interpreter.iterate(*read[0], args.span));
  while (std::optional<Value> item = TRY(items->next(interpreter))) {
    TRY(interpreter.charge(args.span));
    total = TRY(interpreter.binary(BinaryOp::add, total, *item, args.span));
  }
  return total;
}

template <char type>
Result<Value> spell_integer(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{type == 'x' ? "hex" : type == 'o' ? "oct" : "bin", {"number"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  FormatSpec spec;
  spec.type = type;
  spec.alternate = true;
  auto number = integer_of(*read[0]);
  if (!number)
    return type_error(args.span, fmt::format("'{}' object cannot be interpreted as an integer", read[0]->type_name()));
  return Value(TRY(format_integer(*number, spec, args.span)));
}

Result<Value> character(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"chr", {"i"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  int64_t code = TRY(read.integer(0));
  if (code < 0 || code > 0x10FFFF) return value_error(args.span, "chr() arg not in range(0x110000)");
  auto byte = [](int64_t bits) { return static_cast<char>(bits); };
  if (code < 0x80) return Value(std::string{byte(code)});
  if (code < 0x800) return Value(std::string{byte(0xC0 | code >> 6), byte(0x80 | (code & 63))});
  if (code < 0x10000) {
    return Value(std::string{byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))});
  }
  return Value(std::string{byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
                           byte(0x80 | (code & 63))});
}

Result<Value> code_point(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"ord", {"character"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string text = TRY(read.text(0));
  int64_t length = TRY(interpreter.length(Value(text), args.span));
  if (length != 1) {
    return type_error(args.span, fmt::format("ord() expected a character, but string of length {} found", length));
  }
  auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return Value(int64_t{first});
  int64_t code = first & (text.size() == 2 ? 0x1F : text.size() == 3 ? 0x0F : 0x07);
  for (size_t i = 1; i < text.size(); ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  return Value(code);
}

}  // namespace

void install_number_functions(Interpreter& interpreter) {
  const std::pair<std::string_view, Result<Value> (*)(Interpreter&, CallArgs&)> kFunctions[] = {
      {"abs", absolute},
      {"round", round_value},
      {"divmod", divide_with_rest},
      {"pow", power},
      {"min", extreme<CompareOp::lt>},
      {"max", extreme<CompareOp::gt>},
      {"sum", sum},
      {"hex", spell_integer<'x'>},
      {"oct", spell_integer<'o'>},
      {"bin", spell_integer<'b'>},
      {"chr", character},
      {"ord", code_point},
  };
  for (const auto& [name, body] : kFunctions) interpreter.set_builtin(name, make_builtin(std::string(name), body));
}

}  // namespace tilepilot::stage
