// Words of the IR's text form, shared by the printer and the reader. A table each; enumerators in order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

std::string_view to_string(LoopKind kind);
std::string_view to_string(ReduceOp op);
std::string_view to_string(WarpPolicy policy);
std::string_view to_string(Precision precision);
std::string_view to_string(ScanOp op);
std::string_view to_string(AtomicOp op);
std::string_view to_string(MemoryOrder order);
std::string_view to_string(CopyMode mode);
std::string_view to_string(SyncScope scope);
std::string_view to_string(ShuffleOp op);
std::string_view to_string(BarrierOp op);
std::string_view to_string(AsyncOp op);

bool is_literal(const Expr& expr);
// Marks a literal's type where the place does not say it: `5i64`, `0.5f16`, `inf_bf16`.
std::string_view literal_suffix(DType type);
std::optional<DType> type_of_suffix(std::string_view suffix);

// Words that name no variable: keywords, functions, dtypes.
bool is_reserved_word(std::string_view word);

// How tightly expressions bind, loosest first.
enum class Precedence : uint8_t {
  lowest,
  logical_or,
  logical_and,
  logical_not,
  compare,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  prefix,
  primary
};
Precedence precedence(BinaryOp op);
// From `min` to `fmod`: written as calls.
bool is_call(BinaryOp op);

}  // namespace tilepilot::ir
