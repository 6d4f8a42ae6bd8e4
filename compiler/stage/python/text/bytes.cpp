#include "compiler/stage/python/text/bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage {

namespace {

Value bytes_value(std::string data) { return std::make_shared<BytesObject>(std::move(data)); }
const std::string& data_of(const Value& self) { return self.get_if<BytesObject>()->data; }
Value number(char byte) { return Value(int64_t{static_cast<unsigned char>(byte)}); }

std::vector<Value> numbers_of(const std::string& data) {
  std::vector<Value> items;
  for (char byte : data) items.push_back(number(byte));
  return items;
}

enum class Encoding : uint8_t { utf8, latin1, ascii };

Result<Encoding> encoding_of(Interpreter& interpreter, std::string name, Span span) {
  std::string plain;
  for (char c : name)
    if (c != '-' && c != '_') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (plain == "utf8") return Encoding::utf8;
  if (plain == "latin1" || plain == "iso88591") return Encoding::latin1;
  if (plain == "ascii") return Encoding::ascii;
  return interpreter.raise("LookupError", "unknown encoding: " + name, span);
}

// What happens to what an encoding cannot hold.
enum class OnError : uint8_t { strict, ignore, replace };

Result<OnError> on_error_of(Interpreter& interpreter, const std::string& name, Span span) {
  if (name == "strict") return OnError::strict;
  if (name == "ignore") return OnError::ignore;
  if (name == "replace") return OnError::replace;
  return interpreter.raise("LookupError", fmt::format("unknown error handler name '{}'", name), span);
}

struct Coding {
  Encoding encoding;
  OnError on_error;
};

Result<Coding> coding_of(Interpreter& interpreter, const Arguments& read, size_t first) {
  const Encoding encoding = TRY(encoding_of(interpreter, TRY(read.text(first, "utf-8")), read.span()));
  return Coding{encoding, TRY(on_error_of(interpreter, TRY(read.text(first + 1, "strict")), read.span()))};
}

Result<std::string> encoded(Interpreter& interpreter, const std::string& text, Coding coding, Span span) {
  if (coding.encoding == Encoding::utf8) return text;
  const uint32_t limit = coding.encoding == Encoding::latin1 ? 0x100 : 0x80;
  std::string data;
  for (size_t at = 0; at < text.size();) {
    const syntax::CodePoint point = syntax::code_point_at(text, at);
    at += point.length;
    if (point.value < limit)
      data += static_cast<char>(point.value);
    else if (coding.on_error == OnError::strict)
      return interpreter.raise("UnicodeEncodeError", fmt::format("character U+{:04X} cannot be encoded", point.value),
                               span);
    else if (coding.on_error == OnError::replace)
      data += '?';
  }
  return data;
}

Result<std::string> decoded(Interpreter& interpreter, const std::string& data, Coding coding, Span span) {
  constexpr uint32_t kReplacement = 0xFFFD;
  std::string text;
  for (size_t at = 0; at < data.size();) {
    const std::string_view rest = std::string_view(data).substr(at);
    size_t good = coding.encoding == Encoding::utf8 ? syntax::find_invalid_utf8(rest) : 0;
    text += rest.substr(0, good);
    at += good;
    if (at == data.size()) break;
    const auto byte = static_cast<unsigned char>(data[at++]);
    if (coding.encoding == Encoding::latin1 || (coding.encoding == Encoding::ascii && byte < 0x80))
      syntax::append_utf8(text, byte);
    else if (coding.on_error == OnError::strict)
      return interpreter.raise("UnicodeDecodeError",
                               fmt::format("byte 0x{:02x} in position {} cannot be decoded", byte, at - 1), span);
    else if (coding.on_error == OnError::replace)
      syntax::append_utf8(text, kReplacement);
  }
  return text;
}

// An argument that is bytes, or with `number` also one byte as an int.
Result<std::string> bytes_argument(const Value& value, std::string_view function, Span span, bool or_number = false) {
  if (auto* bytes = value.get_if<BytesObject>()) return bytes->data;
  if (auto index = value.as_index(); index && or_number && *index >= 0 && *index < 256)
    return std::string(1, static_cast<char>(*index));
  return type_error(span, fmt::format("{}: a bytes-like object is required, not '{}'", function, value.type_name()));
}

Result<Value> decode(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"decode", {"encoding", "errors"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const Coding coding = TRY(coding_of(interpreter, read, 0));
  return Value(TRY(decoded(interpreter, data_of(self), coding, args.span)));
}

Result<Value> hex(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"hex", {"sep"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const std::string separator = TRY(read.text(0));
  std::string text;
  for (char byte : data_of(self))
    text += fmt::format("{}{:02x}", text.empty() ? "" : separator, static_cast<unsigned char>(byte));
  return Value(std::move(text));
}

template <bool at_end>
Result<Value> has_affix(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{at_end ? "endswith" : "startswith", {"affix"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value> wanted{*read[0]};
  if (auto* tuple = read[0]->get_if<TupleObject>()) wanted = tuple->items;
  for (const Value& each : wanted) {
    const std::string affix = TRY(bytes_argument(each, kSignature.function, args.span));
    if (at_end ? data_of(self).ends_with(affix) : data_of(self).starts_with(affix)) return Value(true);
  }
  return Value(false);
}

Result<Value> find(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"find", {"sub"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const size_t found = data_of(self).find(TRY(bytes_argument(*read[0], "find", args.span, true)));
  return Value(found == std::string::npos ? int64_t{-1} : static_cast<int64_t>(found));
}

// The pieces between the separators.
std::vector<std::string> pieces(const std::string& data, const std::string& separator) {
  std::vector<std::string> result;
  size_t begin = 0;
  for (size_t end; (end = data.find(separator, begin)) != std::string::npos; begin = end + separator.size())
    result.push_back(data.substr(begin, end - begin));
  result.push_back(data.substr(begin));
  return result;
}

Result<Value> split(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"split", {"sep"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const std::string separator = TRY(bytes_argument(*read[0], "split", args.span));
  if (separator.empty()) return value_error(args.span, "empty separator");
  std::vector<Value> items;
  for (std::string& piece : pieces(data_of(self), separator)) items.push_back(bytes_value(std::move(piece)));
  return make_list(std::move(items));
}

Result<Value> replace(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"replace", {"old", "new"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const std::string old = TRY(bytes_argument(*read[0], "replace", args.span));
  const std::string replacement = TRY(bytes_argument(*read[1], "replace", args.span));
  if (old.empty()) return value_error(args.span, "replace() needs something to replace");
  std::string data;
  for (const std::string& piece : pieces(data_of(self), old)) {
    data += piece + replacement;
    if (static_cast<int64_t>(data.size()) > interpreter.limits().container_items)
      return too_large(interpreter, args.span);
  }
  data.resize(data.size() - replacement.size());
  return bytes_value(std::move(data));
}

Result<Value> join(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"join", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string data;
  bool first = true;
  for (const Value& each : TRY(interpreter.to_vector(*read[0], args.span))) {
    data += (first ? "" : data_of(self)) + TRY(bytes_argument(each, "join", args.span));
    first = false;
    if (static_cast<int64_t>(data.size()) > interpreter.limits().container_items)
      return too_large(interpreter, args.span);
  }
  return bytes_value(std::move(data));
}

Result<Value> strip(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"strip", {"bytes"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const std::string blank = read.given(0) ? TRY(bytes_argument(*read[0], "strip", args.span)) : " \t\n\r\v\f";
  const std::string& data = data_of(self);
  const size_t begin = data.find_first_not_of(blank);
  if (begin == std::string::npos) return bytes_value("");
  return bytes_value(data.substr(begin, data.find_last_not_of(blank) + 1 - begin));
}

template <char low, char high, int change>
Result<Value> to_case(Interpreter&, const Value& self, CallArgs&) {
  std::string data = data_of(self);
  for (char& byte : data)
    if (byte >= low && byte <= high) byte = static_cast<char>(byte + change);
  return bytes_value(std::move(data));
}

const MethodTable& bytes_methods() {
  static const MethodTable kMethods{
      {"decode", decode},
      {"hex", hex},
      {"startswith", has_affix<false>},
      {"endswith", has_affix<true>},
      {"find", find},
      {"split", split},
      {"replace", replace},
      {"join", join},
      {"strip", strip},
      {"upper", to_case<'a', 'z', 'A' - 'a'>},
      {"lower", to_case<'A', 'Z', 'a' - 'A'>},
  };
  return kMethods;
}

Result<bool> is_little_endian(const std::string& order, Span span) {
  if (order == "little") return true;
  if (order == "big") return false;
  return value_error(span, "byteorder must be either 'little' or 'big'");
}

}  // namespace

Result<Value> BytesObject::get_attribute(Interpreter&, Name name, Span span) {
  return bytes_methods().bind(Value(shared_from_this()), name, span);
}

Result<Value> BytesObject::get_item(Interpreter&, const Value& index, Span span) {
  auto* slice = index.get_if<SliceObject>();
  const auto size = static_cast<int64_t>(data.size());
  if (!slice) return number(data[static_cast<size_t>(TRY(resolve_index(index, size, "index", span)))]);
  std::string result;
  for (const Value& each : TRY(slice_items(numbers_of(data), *slice, span)))
    result += static_cast<char>(*each.if_int());
  return bytes_value(std::move(result));
}

Result<std::unique_ptr<Iterator>> BytesObject::iterate(Interpreter&, Span) { return iterate_over(numbers_of(data)); }

Result<bool> BytesObject::contains(Interpreter&, const Value& item, Span span) {
  return data.find(TRY(bytes_argument(item, "in", span, true))) != std::string::npos;
}

Result<std::string> BytesObject::repr(Interpreter&) {
  std::string text = "b" + repr_text(data), shown;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return shown;
}

Result<std::optional<Value>> BytesObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                 bool reflected, Span span) {
  using Maybe = std::optional<Value>;
  if (op == BinaryOp::add) {
    auto* bytes = other.get_if<BytesObject>();
    if (!bytes && reflected) return Maybe();
    if (!bytes) return type_error(span, fmt::format("can't concat {} to bytes", other.type_name()));
    return Maybe(bytes_value(reflected ? bytes->data + data : data + bytes->data));
  }
  const auto times = other.as_index();
  if (op != BinaryOp::mul || !times) return Maybe();
  std::string result;
  if (*times > 0 && static_cast<int64_t>(data.size()) > interpreter.limits().container_items / *times)
    return too_large(interpreter, span);
  for (int64_t i = 0; i < *times; ++i) result += data;
  return Maybe(bytes_value(std::move(result)));
}

Result<std::optional<Value>> BytesObject::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                  Span span) {
  auto* bytes = other.get_if<BytesObject>();
  if (!bytes) return std::optional<Value>();
  return std::optional<Value>(TRY(interpreter.compare(op, Value(data.compare(bytes->data)), Value(0), span)));
}

Result<Value> bytes_from_literal(Interpreter& interpreter, CallArgs& args) {
  const std::string& text = *args.positional.at(0).if_string();
  return bytes_value(TRY(encoded(interpreter, text, {Encoding::latin1, OnError::strict}, args.span)));
}

Result<Value> make_bytes(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"bytes", {"source", "encoding", "errors"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (!read[0]) return bytes_value("");
  if (auto* text = read[0]->if_string()) {
    if (!read[1]) return type_error(args.span, "string argument without an encoding");
    const Coding coding = TRY(coding_of(interpreter, read, 1));
    return bytes_value(TRY(encoded(interpreter, *text, coding, args.span)));
  }
  if (read[0]->get_if<BytesObject>()) return *read[0];
  if (auto size = read[0]->as_index()) {
    if (*size < 0) return value_error(args.span, "negative count");
    if (*size > interpreter.limits().container_items) return too_large(interpreter, args.span);
    return bytes_value(std::string(static_cast<size_t>(*size), '\0'));
  }
  std::string data;
  for (const Value& each : TRY(interpreter.to_vector(*read[0], args.span))) {
    const auto value = each.as_index();
    if (!value || *value < 0 || *value > 255) return value_error(args.span, "bytes must be in range(0, 256)");
    data += static_cast<char>(*value);
  }
  return bytes_value(std::move(data));
}

Result<Value> bytes_from_hex(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"fromhex", {"string"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string digits = TRY(read.text(0)), data;
  std::erase(digits, ' ');
  for (size_t i = 0; i < digits.size(); i += 2) {
    const auto byte = BigInteger::parse(digits.substr(i, 2), 16);
    if (!byte || i + 1 == digits.size()) return value_error(args.span, "non-hexadecimal number found in fromhex() arg");
    data += static_cast<char>(*byte->to_int64());
  }
  return bytes_value(std::move(data));
}

Result<Value> integer_from_bytes(Interpreter& interpreter, CallArgs& args) {
  const Value* is_signed = args.keyword("signed");
  const bool with_sign = is_signed && TRY(interpreter.truth(*is_signed, args.span));
  CallArgs others{args.positional, {}, args.span, {}};
  for (const auto& [name, value] : args.keywords)
    if (name.text() != "signed") others.keywords.emplace_back(name, value);
  static constexpr Signature kSignature{"from_bytes", {"bytes", "byteorder"}, 1};
  Arguments read = TRY(Arguments::read(others, kSignature));
  std::string data = TRY(bytes_argument(*read[0], "from_bytes", args.span));
  if (data.size() > 8192) return value_error(args.span, "from_bytes() takes at most 8192 bytes");
  if (TRY(is_little_endian(TRY(read.text(1, "big")), args.span))) std::reverse(data.begin(), data.end());
  BigInteger value(0);
  for (char byte : data) value = value.shifted_left(8) + BigInteger(int64_t{static_cast<unsigned char>(byte)});
  if (with_sign && !data.empty() && (data[0] & 0x80)) value = value - BigInteger(1).shifted_left(data.size() * 8);
  return make_integer(std::move(value));
}

Result<Value> integer_to_bytes(Interpreter& interpreter, const Value& self, CallArgs& args) {
  const Value* is_signed = args.keyword("signed");
  const bool with_sign = is_signed && TRY(interpreter.truth(*is_signed, args.span));
  CallArgs others{args.positional, {}, args.span, {}};
  for (const auto& [name, value] : args.keywords)
    if (name.text() != "signed") others.keywords.emplace_back(name, value);
  static constexpr Signature kSignature{"to_bytes", {"length", "byteorder"}, 0};
  Arguments read = TRY(Arguments::read(others, kSignature));
  const int64_t size = TRY(read.integer(0, 1));
  if (size < 0 || size > 8192) return value_error(args.span, "length must be from 0 to 8192");
  const bool little = TRY(is_little_endian(TRY(read.text(1, "big")), args.span));
  BigInteger value = *integer_of(self);
  const auto bits = static_cast<size_t>(size) * 8;
  if (value.is_negative() && !with_sign)
    return interpreter.raise("OverflowError", "can't convert negative int to unsigned", args.span);
  if (value.is_negative()) value = value + BigInteger(1).shifted_left(bits);
  if (value.is_negative() || value.bit_length() > bits ||
      (with_sign && !integer_of(self)->is_negative() && value.bit_length() >= std::max<size_t>(bits, 1)))
    return interpreter.raise("OverflowError", "int too big to convert", args.span);
  std::string data;
  for (int64_t i = 0; i < size; ++i) {
    data += static_cast<char>(*(value - value.shifted_right(8).shifted_left(8)).to_int64());
    value = value.shifted_right(8);
  }
  if (!little) std::reverse(data.begin(), data.end());
  return bytes_value(std::move(data));
}

Result<Value> encode_text(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"encode", {"encoding", "errors"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const Coding coding = TRY(coding_of(interpreter, read, 0));
  return bytes_value(TRY(encoded(interpreter, *self.if_string(), coding, args.span)));
}

}  // namespace tilepilot::stage
