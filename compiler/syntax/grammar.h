// The recursive-descent parser behind parse(). Functions are named after the rules of Python's grammar.
//
// Errors: fail() reports, then moves to the end of the logical line and lets nothing else be reported until the next
// statement starts. So a rule never checks whether the rule it called failed: it sees the end of the line, where every
// accept() is false, and returns; the placeholder tree is thrown away.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/syntax/parser.h"
#include "compiler/syntax/token.h"

namespace tilepilot::syntax {

class Grammar {
 public:
  Grammar(const SourceMap& sources, int32_t file, DiagnosticList& diagnostics, TokenList tokens);
  Body module();
  bool has_errors() const { return errors_ > 0; }

 private:
  using Kind = TokenKind;

  // The innermost expression of kMaxNesting brackets or blocks is a level of its own.
  static constexpr int kMaxLevels = kMaxNesting + 1;

  // One level of brackets, blocks or prefix operators; too many of them are an error.
  class Level {
   public:
    explicit Level(Grammar& grammar) : grammar_(grammar) {
      if (++grammar_.nesting_ > kMaxLevels) grammar_.nested_too_deeply();
    }
    ~Level() { --grammar_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Grammar& grammar_;
  };

  // What surrounds a statement, as far as its validity depends on it.
  struct Context {
    bool in_function = false;  // directly, not in a class inside it
    bool in_any_function = false;
    bool in_loop = false;
    bool is_generator = false;
  };

  // Cursor (grammar.cpp)
  const Token& token() const { return (*tokens_)[at_]; }
  Kind kind() const { return token().kind; }
  Kind kind_after() const { return kind() == Kind::end ? Kind::end : (*tokens_)[at_ + 1].kind; }
  bool at(Kind expected) const { return kind() == expected; }
  Token next();
  bool accept(Kind expected);
  void expect(Kind expected, std::string_view where);
  void expect_closing(Kind expected, const Token& opening);
  Name expect_name(std::string_view what);
  Span span_of(const Token& token) const { return {file_, token.begin, token.end}; }
  Span span_from(uint32_t begin) const { return {file_, begin, std::max(begin, previous_end_)}; }

  // Errors (grammar.cpp)
  void report(Diagnostic diagnostic);
  void fail(Diagnostic diagnostic);
  void fail_at(Span span, std::string message, std::string hint = {});
  void fail_here(std::string expected);  // "expected <expected>, found <token>"
  void fail_unsupported(Span span, std::string message, std::string hint);
  void nested_too_deeply();
  void skip_to_line_end();
  void skip_block();
  std::string describe_token() const;
  std::string hint_for_token() const;

  // Makes a node that spans from `begin` to the last token read.
  ExprPtr make(Expr::Node node, uint32_t begin);
  ExprPtr placeholder() { return make(NoneLiteral{}, token().begin); }

  // Expressions (expressions.cpp)
  bool starts_expression() const;
  ExprPtr expression();        // no tuple, no `:=`
  ExprPtr named_expression();  // `name := value` allowed
  ExprPtr starred_or_named();  // `*value` too
  ExprPtr starred();
  ExprPtr tuple_or_single();  // a, *b, c
  ExprPtr yield_or_tuple();
  ExprPtr yield_expression();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr inversion();
  ExprPtr comparison();
  bool accept_comparison(CompareOp& op);
  ExprPtr binary(int min_precedence);
  ExprPtr unary();
  ExprPtr power();
  ExprPtr primary();
  ExprPtr subscript(ExprPtr object, uint32_t begin);
  ExprPtr subscript_item();
  ExprPtr call(ExprPtr callee, uint32_t begin);
  void argument(CallExpr& call);
  void keyword_argument(CallExpr& call, uint32_t begin);
  ExprPtr lambda();

  // Displays and literals (displays.cpp)
  ExprPtr atom();
  ExprPtr integer();
  ExprPtr parenthesized();
  ExprPtr list_display();
  ExprPtr brace_display();
  std::pair<ExprPtr, ExprPtr> dict_item();
  ExprPtr dict_display(std::pair<ExprPtr, ExprPtr> first, const Token& opening);
  ExprPtr comprehension(ComprehensionExpr parts, uint32_t begin);
  std::vector<ComprehensionClause> comprehension_clauses(size_t yields_before);

  // String literals (strings.cpp)
  struct StringParts;
  struct LiteralBody;
  ExprPtr strings();
  ExprPtr bytes_literal(std::string characters, uint32_t begin);
  void string_token(const Token& token, StringParts& parts);
  void decode(const LiteralBody& body, std::string& out);
  void escape(const LiteralBody& body, uint32_t& at, std::string& out);
  void hex_escape(const LiteralBody& body, uint32_t& at, std::string& out);
  uint32_t format_text(const LiteralBody& body, int level, StringParts& parts);
  uint32_t format_field(const LiteralBody& body, int level, FormattedPart& part);
  uint32_t field_expression_end(const LiteralBody& body);
  ExprPtr embedded_expression(Span span);

  // Targets and parameters (targets.cpp)
  enum class TargetUse { assign, augmented, annotated, remove };
  void check_target(const Expr& target, TargetUse use, bool inside_sequence = false);
  ExprPtr target_list();  // of `for`
  std::vector<Parameter> parameters(Kind closing, bool annotated);
  void parameter(std::vector<Parameter>& list, bool annotated);
  void check_last_parameter(std::vector<Parameter>& list);
  void check_unique_names(const std::vector<Parameter>& list);

  // Statements (statements.cpp, compound.cpp)
  void statement(Body& body);
  void simple_line(Body& body);
  void fail_line_end(const Stmt& statement);
  void stray_block(bool after_failure);
  Stmt::Node simple();
  Stmt::Node expression_statement();
  Stmt::Node assignment(ExprPtr first);
  Stmt::Node annotated_assignment(ExprPtr target);
  bool at_type_statement() const;
  Stmt::Node type_statement();
  Stmt::Node return_statement();
  Stmt::Node loop_control();
  Stmt::Node assert_statement();
  Stmt::Node raise_statement();
  Stmt::Node delete_statement();
  Stmt::Node import_statement();
  Stmt::Node import_from_statement();
  void import_names(ImportFromStmt& import);
  ImportAlias import_alias(bool dotted);
  std::string dotted_name();
  std::vector<Name> name_list();
  Stmt::Node nonlocal_statement();

  bool at_compound() const;
  Stmt::Node compound();
  bool at_stray_clause() const;
  void stray_clause(bool after_failure);
  Body block(std::string_view owner, Span header);
  Body loop_body(std::string_view owner, Span header);
  Body else_block();
  Stmt::Node if_statement();
  Stmt::Node for_statement();
  Stmt::Node while_statement();
  Stmt::Node with_statement();
  bool at_parenthesized_with_items() const;
  WithItem with_item();
  Stmt::Node try_statement();
  ExceptHandler except_handler();
  bool at_match() const;
  bool at_case() const;
  Stmt::Node match_statement();
  MatchCase match_case();
  Stmt::Node decorated();
  Stmt::Node function(std::vector<ExprPtr> decorators);
  Stmt::Node class_definition(std::vector<ExprPtr> decorators);
  void refuse_type_parameters();

  // Patterns (patterns.cpp)
  PatternPtr make_pattern(Pattern node);
  PatternPtr open_pattern();
  PatternPtr sequence_item();
  PatternPtr pattern();
  PatternPtr alternatives();
  PatternPtr closed_pattern();
  PatternPtr name_pattern();
  PatternPtr class_pattern(ExprPtr type, uint32_t begin);
  PatternPtr mapping_pattern();
  PatternPtr bracketed_pattern();
  std::vector<PatternPtr> pattern_list(Kind closing, const Token& opening, bool& has_comma);
  ExprPtr pattern_value();
  Name pattern_target();
  void check_pattern(const Pattern& pattern);
  PatternPtr any_pattern();

  const SourceMap& sources_;
  int32_t file_;
  DiagnosticList& diagnostics_;
  TokenList file_tokens_;
  const std::vector<Token>* tokens_;
  std::vector<Diagnostic>* lexical_errors_;
  size_t at_ = 0;
  uint32_t previous_end_ = 0;
  int nesting_ = 0;
  size_t errors_ = 0;
  size_t yields_ = 0;
  bool failed_ = false;
  bool reported_nesting_ = false;
  Context context_;
};

}  // namespace tilepilot::syntax
