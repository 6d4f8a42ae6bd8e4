// The syntax tree of the supported Python: closed sum types, one struct a node kind, a span on every node. Built by the
// parser, never changed afterwards; functions that outlive the parse hold the whole `Module`. Grammar: the Python 3.11
// reference, chapter 10, without async and type parameters. The patterns of `match` are in pattern.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/source/source.h"
#include "compiler/syntax/number.h"

namespace tilepilot::syntax {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<Stmt>;
struct Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

// A name, interned for the life of the process: comparing two names compares pointers.
class Name {
 public:
  Name() = default;
  explicit Name(std::string_view text);
  std::string_view text() const { return *text_; }
  std::string str() const { return *text_; }
  friend bool operator==(Name, Name) = default;
  const void* id() const { return text_; }

 private:
  const std::string* text_ = nullptr;
};

enum class UnaryOp { plus, minus, invert, logical_not };
enum class BinaryOp { add, sub, mul, matmul, div, floor_div, mod, pow, shl, shr, bit_and, bit_or, bit_xor };
enum class CompareOp { eq, ne, lt, le, gt, ge, is, is_not, in, not_in };
std::string_view spelling(UnaryOp op);
std::string_view spelling(BinaryOp op);
std::string_view spelling(CompareOp op);

struct NameExpr {
  Name name;
};
struct NoneLiteral {};
struct EllipsisLiteral {};
struct BoolLiteral {
  bool value;
};
struct IntLiteral {
  int64_t value;                            // never negative
  std::shared_ptr<const WideInteger> wide;  // where 64 bits do not suffice; else null
};
struct FloatLiteral {
  double value;
};
struct StringLiteral {
  std::string value;
};  // UTF-8; adjacent literals already joined
struct FormattedPart {
  std::string text;       // literal text before `value`
  ExprPtr value;          // null: the part is only text
  char conversion = 0;    // 'r', 's', 'a' or 0
  ExprPtr format;         // a FormattedString, or null
  std::string self_text;  // for `{x=}`: the text `x=`; `conversion` is then 'r' unless the program says otherwise
};
struct FormattedString {
  std::vector<FormattedPart> parts;
};
struct AttributeExpr {
  ExprPtr object;
  Name name;
  Span name_span;
};
struct SubscriptExpr {
  ExprPtr object;
  ExprPtr index;
};  // several indices: index is a TupleExpr
struct SliceExpr {
  ExprPtr start, stop, step;
};  // each may be null
struct Keyword {
  Name name;
  ExprPtr value;
  Span span;
};  // empty name (id() == nullptr): `**value`
struct CallExpr {
  ExprPtr callee;
  std::vector<ExprPtr> args;
  std::vector<Keyword> keywords;
};  // `*a`: StarredExpr in args
struct UnaryExpr {
  UnaryOp op;
  ExprPtr operand;
};
struct BinaryExpr {
  BinaryOp op;
  ExprPtr left, right;
};
struct BoolExpr {
  bool is_and;
  std::vector<ExprPtr> operands;
};
struct CompareExpr {
  ExprPtr first;
  std::vector<CompareOp> ops;
  std::vector<ExprPtr> rest;
};
struct ConditionalExpr {
  ExprPtr condition, then, otherwise;
};
struct TupleExpr {
  std::vector<ExprPtr> items;
};
struct ListExpr {
  std::vector<ExprPtr> items;
};
struct SetExpr {
  std::vector<ExprPtr> items;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};  // null key: `**value`
struct StarredExpr {
  ExprPtr value;
};
struct NamedExpr {
  Name name;
  ExprPtr value;
};  // `name := value`
struct YieldExpr {
  ExprPtr value;
  bool from = false;
};
struct ComprehensionClause {
  ExprPtr target;
  ExprPtr iterable;
  std::vector<ExprPtr> conditions;
};
struct ComprehensionExpr {
  enum class Kind { list, set, dict, generator } kind;
  ExprPtr element;  // the key, for a dict
  ExprPtr value;    // dict only
  std::vector<ComprehensionClause> clauses;
};

struct Parameter {
  enum class Kind { positional_only, positional, keyword_only, var_positional, var_keyword } kind = Kind::positional;
  Name name;
  ExprPtr annotation;     // may be null
  ExprPtr default_value;  // may be null
  Span span;
};
struct LambdaExpr {
  std::vector<Parameter> parameters;
  ExprPtr body;
};

struct Expr {
  using Node = std::variant<NameExpr, NoneLiteral, EllipsisLiteral, BoolLiteral, IntLiteral, FloatLiteral,
                            StringLiteral, FormattedString, AttributeExpr, SubscriptExpr, SliceExpr, CallExpr,
                            UnaryExpr, BinaryExpr, BoolExpr, CompareExpr, ConditionalExpr, TupleExpr, ListExpr, SetExpr,
                            DictExpr, StarredExpr, NamedExpr, YieldExpr, ComprehensionExpr, LambdaExpr>;
  Node node;
  Span span;
  uint16_t height = 1;  // longest path to a leaf: at most kMaxTreeHeight (parser.h), so recursion over a tree is safe
};

struct ExprStmt {
  ExprPtr value;
};
struct AssignStmt {
  std::vector<ExprPtr> targets;
  ExprPtr value;
};  // a = b = value: two targets
struct AugAssignStmt {
  ExprPtr target;
  BinaryOp op;
  ExprPtr value;
};
struct AnnAssignStmt {
  ExprPtr target;
  ExprPtr annotation;
  ExprPtr value;
};  // value may be null
struct ForStmt {
  ExprPtr target;
  ExprPtr iterable;
  Body body;
  Body otherwise;
};
struct WhileStmt {
  ExprPtr condition;
  Body body;
  Body otherwise;
};
struct IfStmt {
  ExprPtr condition;
  Body then;
  Body otherwise;
};  // elif: an IfStmt alone in otherwise
struct WithItem {
  ExprPtr context;
  ExprPtr target;
};  // target may be null
struct WithStmt {
  std::vector<WithItem> items;
  Body body;
};
struct FunctionDef {
  Name name;
  Span name_span;
  std::vector<ExprPtr> decorators;
  std::vector<Parameter> parameters;
  ExprPtr returns;  // may be null
  Body body;
  bool is_generator = false;
};
struct ClassDef {
  Name name;
  Span name_span;
  std::vector<ExprPtr> decorators;
  std::vector<ExprPtr> bases;
  std::vector<Keyword> keywords;
  Body body;
};
struct ReturnStmt {
  ExprPtr value;
};  // may be null
struct PassStmt {};
struct BreakStmt {};
struct ContinueStmt {};
struct AssertStmt {
  ExprPtr condition;
  ExprPtr message;
};  // message may be null
struct RaiseStmt {
  ExprPtr exception;
  ExprPtr cause;
};  // both may be null
struct ExceptHandler {
  ExprPtr type;
  Name name;
  Body body;
  Span span;
};  // null type: bare except
struct TryStmt {
  Body body;
  std::vector<ExceptHandler> handlers;
  Body otherwise;
  Body finally;
};
struct MatchCase {
  PatternPtr pattern;
  ExprPtr guard;  // may be null
  Body body;
  Span span;
};
struct MatchStmt {
  ExprPtr subject;
  std::vector<MatchCase> cases;
};
struct ImportAlias {
  std::string name;
  Name as;
  Span span;
};  // dotted name; empty `as`: none given
struct ImportStmt {
  std::vector<ImportAlias> names;
};
struct ImportFromStmt {
  std::string module;
  int level = 0;
  std::vector<ImportAlias> names;
};  // `*` is the name "*"
struct GlobalStmt {
  std::vector<Name> names;
};
struct NonlocalStmt {
  std::vector<Name> names;
};
struct DeleteStmt {
  std::vector<ExprPtr> targets;
};

struct Stmt {
  using Node = std::variant<ExprStmt, AssignStmt, AugAssignStmt, AnnAssignStmt, ForStmt, WhileStmt, IfStmt, WithStmt,
                            FunctionDef, ClassDef, ReturnStmt, PassStmt, BreakStmt, ContinueStmt, AssertStmt, RaiseStmt,
                            TryStmt, MatchStmt, ImportStmt, ImportFromStmt, GlobalStmt, NonlocalStmt, DeleteStmt>;
  Node node;
  Span span;  // a compound statement's span covers its body
};

struct Module {
  int32_t file = -1;
  Body body;
};
using ModuleRef = std::shared_ptr<const Module>;

}  // namespace tilepilot::syntax
