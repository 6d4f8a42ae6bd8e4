#include "compiler/stage/python/containers/sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Result<int64_t> slice_part(const Value& value, int64_t fallback, Span span) {
  if (value.is_none()) return fallback;
  if (auto index = value.as_index()) return *index;
  return type_error(span, "slice indices must be integers or None");
}

// Moves an end of a slice into [low, high], negative ones counted from the end.
int64_t clamp_end(int64_t position, int64_t length, int64_t low, int64_t high) {
  if (position < 0) position += length;
  return std::clamp(position, low, high);
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

Result<SliceRange> resolve_slice(const SliceObject& slice, int64_t length, Span span) {
  int64_t step = TRY(slice_part(slice.step, 1, span));
  if (step == 0) return value_error(span, "slice step cannot be zero");
  step = std::max(step, -std::numeric_limits<int64_t>::max());
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  int64_t start = step > 0 ? low : high, stop = step > 0 ? high : low;
  if (!slice.start.is_none()) start = clamp_end(TRY(slice_part(slice.start, 0, span)), length, low, high);
  if (!slice.stop.is_none()) stop = clamp_end(TRY(slice_part(slice.stop, 0, span)), length, low, high);
  int64_t distance = step > 0 ? stop - start : start - stop;
  int64_t size = step > 0 ? step : -step;
  return SliceRange{start, step, distance <= 0 ? 0 : (distance - 1) / size + 1};
}

Result<int64_t> resolve_index(const Value& index, int64_t length, std::string_view what, Span span) {
  auto position = index.as_index();
  if (!position) {
    std::string_view shown = what == "str" ? "string" : what;
    return type_error(span, fmt::format("{} indices must be integers or slices, not {}", shown, index.type_name()));
  }
  int64_t resolved = *position < 0 ? *position + length : *position;
  if (resolved >= 0 && resolved < length) return resolved;
  std::string_view shown = what == "str" ? "string" : what;
  return make_error(DiagnosticKind::index_error, span, fmt::format("{} index out of range", shown),
                    fmt::format("the index is {}, the length {}", *position, length));
}

Result<std::vector<Value>> slice_items(const std::vector<Value>& items, const SliceObject& slice, Span span) {
  SliceRange range = TRY(resolve_slice(slice, static_cast<int64_t>(items.size()), span));
  std::vector<Value> result;
  result.reserve(static_cast<size_t>(range.count));
  for (int64_t i = 0; i < range.count; ++i) result.push_back(items[static_cast<size_t>(range.start + i * range.step)]);
  return result;
}

Result<std::vector<Value>> repeat_items(Interpreter& interpreter, const std::vector<Value>& items, int64_t count,
                                        Span span) {
  std::vector<Value> result;
  if (count <= 0 || items.empty()) return result;
  if (count > interpreter.limits().container_items / static_cast<int64_t>(items.size())) {
    return too_large(interpreter, span);
  }
  result.reserve(items.size() * static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) result.insert(result.end(), items.begin(), items.end());
  return result;
}

Result<std::optional<Value>> compare_items(Interpreter& interpreter, CompareOp op, const std::vector<Value>& left,
                                           const std::vector<Value>& right, Span span) {
  using Maybe = std::optional<Value>;
  bool equality = op == CompareOp::eq || op == CompareOp::ne;
  if (equality && left.size() != right.size()) return Maybe(Value(op == CompareOp::ne));
  // By position and with copies: comparisons written in Python may change the lists.
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    Value mine = left[i], theirs = right[i];
    if (TRY(interpreter.equal(mine, theirs, span))) continue;
    if (equality) return Maybe(Value(op == CompareOp::ne));
    return Maybe(TRY(interpreter.compare(op, mine, theirs, span)));
  }
  return Maybe(TRY(interpreter.compare(op, Value(static_cast<int64_t>(left.size())),
                                       Value(static_cast<int64_t>(right.size())), span)));
}

Result<std::string> repr_items(Interpreter& interpreter, const std::vector<Value>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];  // a copy: `__repr__` may change the list
    if (i > 0) text += ", ";
    text += TRY(interpreter.repr(item));
  }
  return text;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::vector<Value> split_characters(std::string_view text) {
  std::vector<Value> characters;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    while (end < text.size() && is_continuation(text[end])) ++end;
    characters.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return characters;
}

Result<Value> text_item(const std::string& text, const Value& index, Span span) {
  auto* slice = index.get_if<SliceObject>();
  if (is_ascii(text)) {
    auto length = static_cast<int64_t>(text.size());
    if (!slice) return Value(std::string(1, text[static_cast<size_t>(TRY(resolve_index(index, length, "str", span)))]));
    SliceRange range = TRY(resolve_slice(*slice, length, span));
    std::string result;
    for (int64_t i = 0; i < range.count; ++i) result += text[static_cast<size_t>(range.start + i * range.step)];
    return Value(std::move(result));
  }
  std::vector<Value> characters = split_characters(text);
  auto length = static_cast<int64_t>(characters.size());
  if (!slice) return characters[static_cast<size_t>(TRY(resolve_index(index, length, "str", span)))];
  std::string result;
  for (const Value& each : TRY(slice_items(characters, *slice, span))) result += *each.if_string();
  return Value(std::move(result));
}

size_t character_position(std::string_view text, size_t byte) { return count_characters(text.substr(0, byte)); }

size_t byte_position(std::string_view text, size_t character) {
  size_t byte = 0;
  for (; character > 0 && byte < text.size(); --character) {
    ++byte;
    while (byte < text.size() && is_continuation(text[byte])) ++byte;
  }
  return byte;
}

}  // namespace tilepilot::stage
