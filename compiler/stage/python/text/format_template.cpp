// str.format and the % operator.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

namespace {

// Runs over a template of str.format: text, {{, }}, and fields {name.attribute[item]!conversion:spec}.
class TemplateFormatter {
 public:
  TemplateFormatter(Interpreter& interpreter, const CallArgs& args) : interpreter_(interpreter), args_(args) {}

  Result<std::string> format(std::string_view text, int depth) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      char c = text[i];
      bool doubled = i + 1 < text.size() && text[i + 1] == c;
      if (c == '}' && !doubled) return value_error(args_.span, "single '}' encountered in format string");
      if ((c == '{' || c == '}') && doubled) {
        result += c;
        ++i;
      } else if (c == '{') {
        size_t end = field_end(text, i + 1);
        if (end == std::string_view::npos) return value_error(args_.span, "single '{' encountered in format string");
        result += TRY(field(text.substr(i + 1, end - i - 1), depth));
        i = end;
      } else {
        result += c;
      }
    }
    return result;
  }

 private:
  static size_t field_end(std::string_view text, size_t begin) {
    int open = 1;
    for (size_t i = begin; i < text.size(); ++i) {
      if (text[i] == '{') ++open;
      if (text[i] == '}' && --open == 0) return i;
    }
    return std::string_view::npos;
  }

  Result<std::string> field(std::string_view text, int depth) {
    if (depth > 1) return value_error(args_.span, "max string recursion exceeded");
    size_t colon = text.find(':');
    std::string_view name = text.substr(0, colon);
    char conversion = 0;
    if (size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != name.size()) return value_error(args_.span, "expected one conversion character after '!'");
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = TRY(look_up(name));
    std::string spec;
    if (colon != std::string_view::npos) spec = TRY(format(text.substr(colon + 1), depth + 1));
    return format_converted(interpreter_, value, conversion, spec, args_.span);
  }

  Result<Value> look_up(std::string_view path) {
    size_t end = path.find_first_of(".[");
    Value value = TRY(argument(path.substr(0, end)));
    while (end != std::string_view::npos && end < path.size()) {
      size_t begin = end + 1;
      if (path[end] == '.') {
        end = path.find_first_of(".[", begin);
        value = TRY(interpreter_.get_attribute(value, Name(path.substr(begin, end - begin)), args_.span));
      } else {
        size_t close = path.find(']', begin);
        if (close == std::string_view::npos) return value_error(args_.span, "expected '}' before end of string");
        std::string_view key = path.substr(begin, close - begin);
        value = TRY(interpreter_.get_item(value, item_key(key), args_.span));
        end = close + 1;
      }
    }
    return value;
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  static Value item_key(std::string_view key) {
    return is_number(key) ? Value(int64_t{std::stoi(std::string(key))}) : Value(key);
  }

  Result<Value> argument(std::string_view name) {
    if (name.empty() || is_number(name)) {
      size_t position = name.empty() ? automatic_++ : static_cast<size_t>(std::stoi(std::string(name)));
      if (position < args_.positional.size()) return args_.positional[position];
      return make_error(DiagnosticKind::index_error, args_.span,
                        fmt::format("Replacement index {} out of range for positional args tuple", position));
    }
    if (const Value* value = args_.keyword(name)) return *value;
    return make_error(DiagnosticKind::key_error, args_.span, fmt::format("'{}'", name));
  }

  Interpreter& interpreter_;
  const CallArgs& args_;
  size_t automatic_ = 0;
};

// Runs over a % template: %[(key)][flags][width][.precision]type.
class PercentFormatter {
 public:
  PercentFormatter(Interpreter& interpreter, const std::string& text, const Value& arguments, Span span)
      : interpreter_(interpreter), text_(text), arguments_(arguments), span_(span) {
    auto* tuple = arguments.get_if<TupleObject>();
    if (tuple)
      items_ = tuple->items;
    else
      items_ = {arguments};
    mapping_ = arguments.get_if<DictObject>();
  }

  Result<std::string> format() {
    std::string result;
    while (at_ < text_.size()) {
      char c = text_[at_++];
      if (c != '%') {
        result += c;
      } else if (at_ < text_.size() && text_[at_] == '%') {
        result += text_[at_++];
      } else {
        result += TRY(conversion());
      }
    }
    if (next_ < items_.size() && !mapping_) {
      return type_error(span_, "not all arguments converted during string formatting");
    }
    return result;
  }

 private:
  Result<std::string> conversion() {
    std::optional<Value> value;
    if (at_ < text_.size() && text_[at_] == '(') value = TRY(keyed());
    FormatSpec spec;
    spec.align = '>';
    flags(spec);
    spec.width = TRY(count(0));
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      spec.precision = TRY(count(0));
    }
    while (at_ < text_.size() && (text_[at_] == 'l' || text_[at_] == 'h')) ++at_;
    if (at_ >= text_.size()) return value_error(span_, "incomplete format");
    char type = text_[at_++];
    if (!value) value = TRY(next());
    return convert(type, *value, spec);
  }

  Result<Value> keyed() {
    size_t close = text_.find(')', at_);
    if (close == std::string::npos) return value_error(span_, "incomplete format key");
    if (!mapping_) return type_error(span_, "format requires a mapping");
    std::string key = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return interpreter_.get_item(arguments_, Value(key), span_);
  }

  void flags(FormatSpec& spec) {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '-')
        spec.align = '<';
      else if (c == '0')
        zero_ = true;
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ' && spec.sign != '+')
        spec.sign = ' ';
      else if (c == '#')
        spec.alternate = true;
      else if (c != ' ')
        break;
    }
    if (zero_ && spec.align != '<') {
      spec.align = '=';
      spec.fill = "0";
    }
    zero_ = false;
  }

  Result<int64_t> count(int64_t fallback) {
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      auto wanted = TRY(next()).as_index();
      if (!wanted) return type_error(span_, "* wants int");
      return *wanted;
    }
    int64_t value = fallback;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > 1'000'000) return value_error(span_, "width too big");
    }
    return value;
  }

  Result<Value> next() {
    if (next_ < items_.size()) return items_[next_++];
    return type_error(span_, "not enough arguments for format string");
  }

  Result<std::string> convert(char type, const Value& value, FormatSpec spec) {
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        if (spec.align == '=') spec.align = '>', spec.fill = " ";
        spec.sign = '-';
        return shown(type, value, spec);
      case 'c':
        if (value.if_string()) return format_text(*value.if_string(), spec);
        [[fallthrough]];
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(type, value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(type, value, spec);
      default:
        return value_error(span_, fmt::format("unsupported format character '{}'", type));
    }
  }

  Result<std::string> shown(char type, const Value& value, const FormatSpec& spec) {
    const std::string text = type == 's' ? TRY(interpreter_.str(value)) : TRY(interpreter_.repr(value));
    return format_text(type == 'a' ? escape_beyond_ascii(text) : text, spec);
  }

  Result<std::string> integer(char type, const Value& value, FormatSpec spec) {
    bool decimal = type == 'd' || type == 'i' || type == 'u';
    std::optional<BigInteger> number = integer_of(value);
    if (!number && decimal && value.if_float())
      number = integer_of(TRY(integer_from(interpreter_, *value.if_float(), span_)));
    if (!number) {
      return type_error(span_, fmt::format("%{} format: {} is required, not {}", type,
                                           decimal ? "a real number" : "an integer", value.type_name()));
    }
    spec.type = decimal ? 'd' : type;
    int64_t digits = spec.precision;
    spec.precision = -1;
    if (digits < 0) return format_integer(*number, spec, span_);
    // A precision is the least number of digits; with a zero flag the width counts as well.
    FormatSpec zeros = spec;
    bool fill_up = spec.align == '=';
    zeros.align = '=';
    zeros.fill = "0";
    bool prefixed = spec.alternate && !decimal;
    zeros.width = digits + (number->is_negative() || spec.sign != '-' ? 1 : 0) + (prefixed ? 2 : 0);
    if (fill_up) zeros.width = std::max(zeros.width, spec.width);
    return format_text(TRY(format_integer(*number, zeros, span_)), spec);
  }

  Result<std::string> real(char type, const Value& value, FormatSpec spec) {
    std::optional<double> number = value.as_number();
    if (auto* big = value.get_if<IntObject>()) number = TRY(to_float(interpreter_, big->value, span_));
    if (!number) return type_error(span_, fmt::format("must be real number, not {}", value.type_name()));
    spec.type = type;
    return format_float(*number, spec);
  }

  Interpreter& interpreter_;
  const std::string& text_;
  const Value& arguments_;
  Span span_;
  std::vector<Value> items_;
  DictObject* mapping_ = nullptr;
  size_t at_ = 0;
  size_t next_ = 0;
  bool zero_ = false;
};

}  // namespace

Result<std::string> format_template(Interpreter& interpreter, const std::string& text, const CallArgs& args) {
  return TemplateFormatter(interpreter, args).format(text, 0);
}

Result<std::string> format_percent(Interpreter& interpreter, const std::string& text, const Value& arguments,
                                   Span span) {
  return PercentFormatter(interpreter, text, arguments, span).format();
}

}  // namespace tilepilot::stage
