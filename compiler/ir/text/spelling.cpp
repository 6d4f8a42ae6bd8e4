#include "compiler/ir/text/spelling.h"

#include <algorithm>
#include <array>

namespace tilepilot::ir {
namespace {

constexpr std::array<std::string_view, 5> kLoops{"serial", "parallel", "pipelined", "unrolled", "vectorized"};
constexpr std::array<std::string_view, 8> kReductions{"sum",     "max",     "min",    "abs_sum",
                                                      "abs_max", "bit_and", "bit_or", "bit_xor"};
constexpr std::array<std::string_view, 3> kPolicies{"square", "full_row", "full_col"};
constexpr std::array<std::string_view, 3> kPrecisions{"ieee", "tf32", "fp32"};
constexpr std::array<std::string_view, 2> kScans{"sum", "max"};
constexpr std::array<std::string_view, 6> kAtomics{"load", "store", "add", "min", "max", "bit_or"};
constexpr std::array<std::string_view, 5> kOrders{"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
constexpr std::array<std::string_view, 4> kCopyModes{"complete", "group", "bulk_load", "bulk_store"};
constexpr std::array<std::string_view, 5> kSyncs{"block", "grid", "warp", "cluster", "cluster_wait"};
constexpr std::array<std::string_view, 4> kShuffles{"from", "xor", "up", "down"};
constexpr std::array<std::string_view, 5> kBarriers{"arrive", "wait", "expect", "arrive_expect", "arrive_copied"};
constexpr std::array<std::string_view, 10> kAsyncs{
    "commit_copies", "wait_copies",     "commit_stores",   "wait_stores",    "wait_gemms",
    "fence",         "raise_registers", "lower_registers", "arrive_cluster", "arrive_cluster_relaxed"};

struct Suffix {
  std::string_view text;
  DType type;
};
constexpr std::array kSuffixes{
    Suffix{"i8", kInt8},           Suffix{"i16", kInt16},         Suffix{"i32", kInt32},
    Suffix{"i64", kInt64},         Suffix{"u8", kUInt8},          Suffix{"u16", kUInt16},
    Suffix{"u32", kUInt32},        Suffix{"u64", kUInt64},        Suffix{"f16", kFloat16},
    Suffix{"f32", kFloat32},       Suffix{"f64", kFloat64},       Suffix{"bf16", kBFloat16},
    Suffix{"f8e4m3", kFloat8E4M3}, Suffix{"f8e5m2", kFloat8E5M2}, Suffix{"f8e8m0", kFloat8E8M0},
    Suffix{"i4", kInt4},           Suffix{"u4", kUInt4},          Suffix{"f4e2m1", kFloat4E2M1},
    Suffix{"tf32", kTensorFloat32}};

constexpr std::array<std::string_view, 78> kKeywords{"program",
                                                     "kernel",
                                                     "in",
                                                     "threads",
                                                     "stages",
                                                     "while",
                                                     "if",
                                                     "else",
                                                     "let",
                                                     "break",
                                                     "continue",
                                                     "copy",
                                                     "fill",
                                                     "gemm",
                                                     "reduce",
                                                     "axis",
                                                     "policy",
                                                     "strides",
                                                     "true",
                                                     "false",
                                                     "inf",
                                                     "nan",
                                                     "select",
                                                     "reinterpret",
                                                     "disable_tma",
                                                     "and",
                                                     "or",
                                                     "not",
                                                     "min",
                                                     "max",
                                                     "pow",
                                                     "atan2",
                                                     "hypot",
                                                     "ldexp",
                                                     "nextafter",
                                                     "fmod",
                                                     "accumulate",
                                                     "coalesced_width",
                                                     "sync",
                                                     "scan",
                                                     "reverse",
                                                     "atomic",
                                                     "order",
                                                     "all_reduce",
                                                     "over",
                                                     "view",
                                                     "address",
                                                     "workspace",
                                                     "nan_propagate",
                                                     "mode",
                                                     "counting",
                                                     "async",
                                                     "asynchronous",
                                                     "roles",
                                                     "extern",
                                                     "arrivals",
                                                     "aligned",
                                                     "row_aligned",
                                                     "few_elements",
                                                     "reducer",
                                                     "precision",
                                                     "on",
                                                     "foreign",
                                                     "shuffle",
                                                     "load_matrix",
                                                     "mma",
                                                     "transposed",
                                                     "panels",
                                                     "of_columns",
                                                     "concurrent",
                                                     "check",
                                                     "assume",
                                                     "print",
                                                     "cluster",
                                                     "cluster_wait",
                                                     "into",
                                                     "into_block",
                                                     "in_line"};

constexpr std::array<Precedence, 27> kPrecedence{
    Precedence::sum,         Precedence::sum,       Precedence::product, Precedence::product, Precedence::product,
    Precedence::product,     Precedence::primary,   Precedence::primary, Precedence::primary, Precedence::primary,
    Precedence::primary,     Precedence::primary,   Precedence::primary, Precedence::primary, Precedence::shift,
    Precedence::shift,       Precedence::bit_and,   Precedence::bit_or,  Precedence::bit_xor, Precedence::compare,
    Precedence::compare,     Precedence::compare,   Precedence::compare, Precedence::compare, Precedence::compare,
    Precedence::logical_and, Precedence::logical_or};

template <class Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

template <class Enum>
bool names_one(std::string_view word, Enum last) {
  for (size_t k = 0; k <= size_t(last); ++k) {
    if (to_string(Enum(k)) == word) return true;
  }
  return false;
}

// `inf_f16`, `nan_bf16`.
bool is_typed_special(std::string_view word) {
  const auto bar = word.find('_');
  if (bar != 3 || (word.substr(0, 3) != "inf" && word.substr(0, 3) != "nan")) return false;
  return type_of_suffix(word.substr(4)).has_value();
}

}  // namespace

std::string_view to_string(LoopKind kind) { return kLoops[size_t(kind)]; }
std::string_view to_string(ReduceOp op) { return kReductions[size_t(op)]; }
std::string_view to_string(WarpPolicy policy) { return kPolicies[size_t(policy)]; }
std::string_view to_string(Precision precision) { return kPrecisions[size_t(precision)]; }
std::string_view to_string(ScanOp op) { return kScans[size_t(op)]; }
std::string_view to_string(AtomicOp op) { return kAtomics[size_t(op)]; }
std::string_view to_string(MemoryOrder order) { return kOrders[size_t(order)]; }
std::string_view to_string(CopyMode mode) { return kCopyModes[size_t(mode)]; }
std::string_view to_string(SyncScope scope) { return kSyncs[size_t(scope)]; }
std::string_view to_string(ShuffleOp op) { return kShuffles[size_t(op)]; }
std::string_view to_string(BarrierOp op) { return kBarriers[size_t(op)]; }
std::string_view to_string(AsyncOp op) { return kAsyncs[size_t(op)]; }

bool is_literal(const Expr& expr) {
  return std::holds_alternative<IntImm>(expr->node) || std::holds_alternative<FloatImm>(expr->node);
}

std::string_view literal_suffix(DType type) {
  const auto* row = std::find_if(kSuffixes.begin(), kSuffixes.end(), [&](const Suffix& s) { return s.type == type; });
  return row == kSuffixes.end() ? std::string_view{} : row->text;
}

std::optional<DType> type_of_suffix(std::string_view suffix) {
  const auto* row = std::find_if(kSuffixes.begin(), kSuffixes.end(), [&](const Suffix& s) { return s.text == suffix; });
  if (row == kSuffixes.end()) return std::nullopt;
  return row->type;
}

bool is_reserved_word(std::string_view word) {
  return contains(kKeywords, word) || contains(kLoops, word) || names_one(word, Scope::barrier) ||
         names_one(word, MathFn::isfinite) || parse_dtype(word).has_value() || is_typed_special(word);
}

Precedence precedence(BinaryOp op) { return kPrecedence[size_t(op)]; }
bool is_call(BinaryOp op) { return op >= BinaryOp::min && op <= BinaryOp::fmod; }

}  // namespace tilepilot::ir
