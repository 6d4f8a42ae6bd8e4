// The methods of str, and str() and repr() of any value.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/bytes.h"
#include "compiler/stage/python/text/format_spec.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage {

namespace {

constexpr std::string_view kBlank = " \t\n\r\v\f";

const std::string& text_of(const Value& self) { return *self.if_string(); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
// Bytes beyond ASCII belong to letters of other scripts.
bool is_alpha(char c) { return is_lower(c) || is_upper(c) || static_cast<unsigned char>(c) >= 0x80; }
char to_lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }
char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 32) : c; }

template <char (*change)(char)>
Result<Value> map_characters(Interpreter&, const Value& self, CallArgs&) {
  std::string text = text_of(self);
  std::transform(text.begin(), text.end(), text.begin(), change);
  return Value(std::move(text));
}

char swap_case(char c) { return is_upper(c) ? to_lower(c) : to_upper(c); }

Result<Value> capitalize(Interpreter&, const Value& self, CallArgs&) {
  std::string text = text_of(self);
  for (size_t i = 0; i < text.size(); ++i) text[i] = i == 0 ? to_upper(text[i]) : to_lower(text[i]);
  return Value(std::move(text));
}

Result<Value> title(Interpreter&, const Value& self, CallArgs&) {
  std::string text = text_of(self);
  bool inside = false;
  for (char& c : text) {
    c = inside ? to_lower(c) : to_upper(c);
    inside = is_alpha(c);
  }
  return Value(std::move(text));
}

template <bool left, bool right>
Result<Value> strip(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"strip", {"chars"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string characters = read.given(0) ? TRY(read.text(0)) : std::string(kBlank);
  std::string_view text = text_of(self);
  size_t begin = left ? std::min(text.find_first_not_of(characters), text.size()) : 0;
  size_t end = text.size();
  while (right && end > begin && characters.find(text[end - 1]) != std::string::npos) --end;
  return Value(text.substr(begin, end - begin));
}

std::vector<Value> split_blank(std::string_view text, int64_t most) {
  std::vector<Value> parts;
  size_t at = text.find_first_not_of(kBlank);
  while (at != std::string_view::npos) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      size_t last = text.find_last_not_of(kBlank);
      parts.emplace_back(text.substr(at, last + 1 - at));
      break;
    }
    size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return parts;
}

std::vector<Value> rsplit_blank(std::string_view text, int64_t most) {
  std::vector<Value> parts;
  size_t last = text.find_last_not_of(kBlank);
  while (last != std::string_view::npos) {
    size_t before = text.find_last_of(kBlank, last);
    if (before == std::string_view::npos || (most >= 0 && static_cast<int64_t>(parts.size()) == most)) {
      size_t first = static_cast<int64_t>(parts.size()) == most ? text.find_first_not_of(kBlank) : before + 1;
      parts.emplace_back(text.substr(first, last + 1 - first));
      break;
    }
    parts.emplace_back(text.substr(before + 1, last - before));
    last = text.find_last_not_of(kBlank, before);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_at(std::string_view text, std::string_view separator, int64_t most) {
  std::vector<Value> parts;
  size_t at = 0;
  for (size_t found; (found = text.find(separator, at)) != std::string_view::npos;) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) break;
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

std::vector<Value> rsplit_at(std::string_view text, std::string_view separator, int64_t most) {
  std::vector<Value> parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    size_t found = text.rfind(separator);
    if (found == std::string_view::npos) break;
    parts.emplace_back(text.substr(found + separator.size()));
    text = text.substr(0, found);
  }
  parts.emplace_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_right>
Result<Value> split(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"split", {"sep", "maxsplit"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  int64_t most = TRY(read.integer(1, -1));
  if (!read.given(0)) {
    return make_list(from_right ? rsplit_blank(text_of(self), most) : split_blank(text_of(self), most));
  }
  std::string separator = TRY(read.text(0));
  if (separator.empty()) return value_error(args.span, "empty separator");
  return make_list(from_right ? rsplit_at(text_of(self), separator, most) : split_at(text_of(self), separator, most));
}

Result<Value> splitlines(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"splitlines", {"keepends"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  bool keep = read[0] && TRY(interpreter.truth(*read[0], args.span));
  std::string_view text = text_of(self);
  std::vector<Value> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    size_t next = end;
    if (next < text.size()) next += text.compare(next, 2, "\r\n") == 0 ? 2 : 1;
    lines.emplace_back(text.substr(at, (keep ? next : end) - at));
    at = next;
  }
  return make_list(std::move(lines));
}

Result<Value> join(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"join", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string text;
  size_t position = 0;
  for (const Value& item : TRY(interpreter.to_vector(*read[0], args.span))) {
    const std::string* part = held_value(item).if_string();
    if (!part) {
      return type_error(args.span,
                        fmt::format("sequence item {}: expected str instance, {} found", position, item.type_name()));
    }
    if (position++ > 0) text += text_of(self);
    text += *part;
    if (static_cast<int64_t>(text.size()) > interpreter.limits().container_items) {
      return too_large(interpreter, args.span);
    }
  }
  return Value(std::move(text));
}

Result<Value> replace(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"replace", {"old", "new", "count"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string old = TRY(read.text(0)), fresh = TRY(read.text(1));
  int64_t left = TRY(read.integer(2, -1));
  const std::string& text = text_of(self);
  std::string result;
  size_t at = 0;
  for (size_t found; left != 0 && (found = text.find(old, at)) != std::string::npos; --left) {
    result.append(text, at, found - at).append(fresh);
    at = found + old.size();
    if (old.empty()) {
      if (found == text.size()) break;
      size_t next = at + byte_position(std::string_view(text).substr(at), 1);
      result.append(text, at, next - at);
      at = next;
    }
    if (static_cast<int64_t>(result.size()) > interpreter.limits().container_items) {
      return too_large(interpreter, args.span);
    }
  }
  if (at < text.size()) result.append(text, at, std::string::npos);
  return Value(std::move(result));
}

template <bool at_end>
Result<Value> has_affix(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{at_end ? "endswith" : "startswith", {"prefix", "start", "end"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  SliceObject slice(read[1] ? *read[1] : Value(), read[2] ? *read[2] : Value(), Value());
  std::string_view text = text_of(self);
  SliceRange range = TRY(resolve_slice(slice, static_cast<int64_t>(text.size()), args.span));
  text = text.substr(static_cast<size_t>(range.start), static_cast<size_t>(range.count));
  std::vector<Value> one{*read[0]};
  const std::vector<Value>* affixes = sequence_items(*read[0]);
  for (const Value& each : affixes ? *affixes : one) {
    const std::string* affix = each.if_string();
    if (!affix)
      return type_error(args.span, fmt::format("{} first arg must be str or a tuple of str, not {}",
                                               kSignature.function, each.type_name()));
    if (at_end ? text.ends_with(*affix) : text.starts_with(*affix)) return Value(true);
  }
  return Value(false);
}

struct Search {
  bool from_right;
  bool must_find;
};

template <Search search>
Result<Value> find(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"find", {"sub", "start", "end"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string wanted = TRY(read.text(0));
  std::string_view text = text_of(self);
  SliceObject slice(read[1] ? *read[1] : Value(), read[2] ? *read[2] : Value(), Value());
  SliceRange range = TRY(resolve_slice(slice, static_cast<int64_t>(count_characters(text)), args.span));
  size_t begin = byte_position(text, static_cast<size_t>(range.start));
  size_t end = byte_position(text, static_cast<size_t>(range.start + range.count));
  std::string_view part = text.substr(begin, end - begin);
  size_t found = search.from_right ? part.rfind(wanted) : part.find(wanted);
  if (found != std::string_view::npos) return Value(static_cast<int64_t>(character_position(text, begin + found)));
  if (search.must_find) return value_error(args.span, "substring not found");
  return Value(-1);
}

Result<Value> count(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"count", {"sub"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string wanted = TRY(read.text(0));
  const std::string& text = text_of(self);
  if (wanted.empty()) return Value(static_cast<int64_t>(count_characters(text)) + 1);
  int64_t number = 0;
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + wanted.size())) ++number;
  return Value(number);
}

template <bool (*test)(char)>
Result<Value> all_are(Interpreter&, const Value& self, CallArgs&) {
  const std::string& text = text_of(self);
  return Value(!text.empty() && std::all_of(text.begin(), text.end(), test));
}

bool is_alnum(char c) { return is_alpha(c) || is_digit(c); }
bool is_space(char c) { return kBlank.find(c) != std::string_view::npos; }

template <bool (*good)(char), bool (*bad)(char)>
Result<Value> is_case(Interpreter&, const Value& self, CallArgs&) {
  const std::string& text = text_of(self);
  return Value(std::any_of(text.begin(), text.end(), good) && std::none_of(text.begin(), text.end(), bad));
}

Result<Value> isidentifier(Interpreter&, const Value& self, CallArgs&) {
  const std::string& text = text_of(self);
  bool good = !text.empty() && !is_digit(text[0]);
  for (char c : text) good = good && (is_alnum(c) || c == '_');
  return Value(good);
}

// The width of a result, which must stay small enough to be made.
Result<int64_t> width_of(Interpreter& interpreter, const Arguments& read) {
  int64_t width = TRY(read.integer(0));
  if (width > interpreter.limits().container_items) return too_large(interpreter, read.span());
  return width;
}

template <char align>
Result<Value> justify(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"ljust", {"width", "fillchar"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  FormatSpec spec;
  spec.width = TRY(width_of(interpreter, read));
  spec.fill = TRY(read.text(1, " "));
  if (count_characters(spec.fill) != 1) {
    return type_error(args.span, "The fill character must be exactly one character long");
  }
  spec.align = align;
  // str.center puts the odd one on the left when the width is odd; the format mini-language on the right.
  auto missing = spec.width - static_cast<int64_t>(count_characters(text_of(self)));
  if (align == '^' && missing > 0) {
    int64_t before = missing / 2 + (missing & spec.width & 1);
    FormatSpec left = spec;
    left.align = '>';
    left.width = spec.width - (missing - before);
    spec.align = '<';
    return Value(format_text(format_text(text_of(self), left), spec));
  }
  return Value(format_text(text_of(self), spec));
}

Result<Value> zfill(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"zfill", {"width"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string text = text_of(self);
  int64_t missing = TRY(width_of(interpreter, read)) - static_cast<int64_t>(count_characters(text));
  size_t at = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  if (missing > 0) text.insert(at, static_cast<size_t>(missing), '0');
  return Value(std::move(text));
}

Result<Value> expandtabs(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"expandtabs", {"tabsize"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t size = TRY(read.integer(0, 8)), most = interpreter.limits().container_items;
  std::string text;
  int64_t column = 0;
  for (char c : text_of(self)) {
    if (c != '\t') {
      text += c;
      column = c == '\n' || c == '\r' ? 0 : column + ((c & 0xC0) != 0x80);
      continue;
    }
    const int64_t blanks = size > 0 ? size - column % size : 0;
    if (blanks > most - static_cast<int64_t>(text.size())) return too_large(interpreter, args.span);
    text.append(static_cast<size_t>(blanks), ' ');
    column += blanks;
  }
  return Value(std::move(text));
}

// str.translate(table): each character by what a dict from codes says of it: a code, a text, or None to leave it out.
Result<Value> translate(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"translate", {"table"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto* table = read[0]->get_if<DictObject>();
  if (!table) return type_error(args.span, "translate() needs a dict, such as str.maketrans() gives");
  std::string text;
  for (const Value& each : split_characters(text_of(self))) {
    const Value code(static_cast<int64_t>(syntax::code_point_at(*each.if_string(), 0).value));
    const Value* found = TRY(table->find(interpreter, code, args.span));
    if (!found)
      text += *each.if_string();
    else if (auto* replacement = found->if_string())
      text += *replacement;
    else if (auto index = found->as_index())
      text += utf8_character(static_cast<uint32_t>(*index));
  }
  return Value(std::move(text));
}

Result<Value> casefold(Interpreter& interpreter, const Value& self, CallArgs& args) {
  return map_characters<to_lower>(interpreter, self, args);
}

Result<Value> format_map(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"format_map", {"mapping"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto* mapping = read[0]->get_if<DictObject>();
  if (!mapping) return type_error(args.span, "format_map() needs a dict");
  CallArgs named{{}, {}, args.span, {}};
  for (const HashTable::Entry& entry : mapping->table.entries())
    if (entry.live && entry.key.if_string()) named.keywords.emplace_back(Name(*entry.key.if_string()), entry.value);
  return Value(TRY(format_template(interpreter, text_of(self), named)));
}

Result<Value> isascii(Interpreter&, const Value& self, CallArgs&) { return Value(is_ascii(text_of(self))); }

Result<Value> isprintable(Interpreter&, const Value& self, CallArgs&) {
  const std::string& text = text_of(self);
  return Value(
      std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
}

// Every word begins with a capital, and there is one.
Result<Value> istitle(Interpreter&, const Value& self, CallArgs&) {
  bool any = false, inside = false;
  for (char c : text_of(self)) {
    if (inside ? is_upper(c) : is_lower(c)) return Value(false);
    any = any || is_upper(c);
    inside = is_alpha(c);
  }
  return Value(any);
}

template <bool from_right>
Result<Value> partition(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"partition", {"sep"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string separator = TRY(read.text(0));
  if (separator.empty()) return value_error(args.span, "empty separator");
  const std::string& text = text_of(self);
  size_t found = from_right ? text.rfind(separator) : text.find(separator);
  if (found == std::string::npos) {
    if (from_right) return make_tuple({Value(""), Value(""), self});
    return make_tuple({self, Value(""), Value("")});
  }
  return make_tuple({Value(text.substr(0, found)), Value(separator), Value(text.substr(found + separator.size()))});
}

template <bool at_end>
Result<Value> remove_affix(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{at_end ? "removesuffix" : "removeprefix", {"affix"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string affix = TRY(read.text(0));
  std::string_view text = text_of(self);
  if (at_end && !affix.empty() && text.ends_with(affix)) text.remove_suffix(affix.size());
  if (!at_end && text.starts_with(affix)) text.remove_prefix(affix.size());
  return Value(text);
}

Result<Value> format(Interpreter& interpreter, const Value& self, CallArgs& args) {
  return Value(TRY(format_template(interpreter, text_of(self), args)));
}

}  // namespace

const MethodTable& string_methods() {
  static const MethodTable kMethods{
      {"lower", map_characters<to_lower>},
      {"casefold", map_characters<to_lower>},
      {"upper", map_characters<to_upper>},
      {"swapcase", map_characters<swap_case>},
      {"capitalize", capitalize},
      {"title", title},
      {"strip", strip<true, true>},
      {"lstrip", strip<true, false>},
      {"rstrip", strip<false, true>},
      {"split", split<false>},
      {"rsplit", split<true>},
      {"splitlines", splitlines},
      {"join", join},
      {"replace", replace},
      {"startswith", has_affix<false>},
      {"endswith", has_affix<true>},
      {"find", find<Search{false, false}>},
      {"rfind", find<Search{true, false}>},
      {"index", find<Search{false, true}>},
      {"rindex", find<Search{true, true}>},
      {"count", count},
      {"isdigit", all_are<is_digit>},
      {"isdecimal", all_are<is_digit>},
      {"isnumeric", all_are<is_digit>},
      {"isalpha", all_are<is_alpha>},
      {"isalnum", all_are<is_alnum>},
      {"isspace", all_are<is_space>},
      {"islower", is_case<is_lower, is_upper>},
      {"isupper", is_case<is_upper, is_lower>},
      {"isidentifier", isidentifier},
      {"ljust", justify<'<'>},
      {"rjust", justify<'>'>},
      {"center", justify<'^'>},
      {"zfill", zfill},
      {"expandtabs", expandtabs},
      {"translate", translate},
      {"casefold", casefold},
      {"format_map", format_map},
      {"isascii", isascii},
      {"isprintable", isprintable},
      {"istitle", istitle},
      {"encode", encode_text},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"format", format},
  };
  return kMethods;
}

Result<std::string> Interpreter::repr(const Value& value) {
  TRY(check_stack(Span{}));
  if (auto* text = value.if_string()) return repr_text(*text);
  if (auto* object = value.if_object()) return (*object)->repr(*this);
  return str(value);
}

Result<std::string> Interpreter::str(const Value& value) {
  if (auto* text = value.if_string()) return *text;
  if (auto* integer = value.if_int()) return fmt::format("{}", *integer);
  if (auto* real = value.if_float()) return repr_float(*real);
  if (auto* boolean = value.if_bool()) return std::string(*boolean ? "True" : "False");
  if (auto* object = value.if_object()) return (*object)->str(*this);
  return std::string("None");
}

}  // namespace tilepilot::stage
