// Indices and slices of sequences, and text as a sequence of characters (code points of UTF-8).
#pragma once

#include <string_view>

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

// The positions that a slice of a sequence of `length` items selects.
struct SliceRange {
  int64_t start = 0, step = 1, count = 0;
};
Result<SliceRange> resolve_slice(const SliceObject& slice, int64_t length, Span span);
// A position from 0 to length - 1; negative ones count from the end. `what` shows in messages ("list").
Result<int64_t> resolve_index(const Value& index, int64_t length, std::string_view what, Span span);
// The items that a slice selects.
Result<std::vector<Value>> slice_items(const std::vector<Value>& items, const SliceObject& slice, Span span);
Result<std::vector<Value>> repeat_items(Interpreter& interpreter, const std::vector<Value>& items, int64_t count,
                                        Span span);
// Lexicographic comparison, as list and tuple do it.
Result<std::optional<Value>> compare_items(Interpreter& interpreter, CompareOp op, const std::vector<Value>& left,
                                           const std::vector<Value>& right, Span span);
Result<std::string> repr_items(Interpreter& interpreter, const std::vector<Value>& items);

bool is_ascii(std::string_view text);
size_t count_characters(std::string_view text);
std::vector<Value> split_characters(std::string_view text);
Result<Value> text_item(const std::string& text, const Value& index, Span span);
// Position in characters of a position in bytes, and back.
size_t character_position(std::string_view text, size_t byte);
size_t byte_position(std::string_view text, size_t character);

}  // namespace tilepilot::stage
