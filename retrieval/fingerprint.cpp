// The identity of a program: its tokens, with docstrings left out and the names it binds itself replaced by numbers in
// order of appearance. Layout, comments and naming then make no difference; attribute names and what is imported do.

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/visit.h"
#include "compiler/syntax/lexer.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/pattern.h"
#include "retrieval/corpus.h"
#include "retrieval/index/embedding.h"
#include "retrieval/index/stable_hash.h"

namespace tilepilot::retrieval {
namespace {

using namespace syntax;
using ir::overloaded;

// The names that a program binds by assignment, loop, `with`, parameter, `def` and `class`.
class BoundNames {
 public:
  explicit BoundNames(const Module& module) { add_all(module.body); }
  bool contains(Name name) const { return ids_.contains(name.id()); }

 private:
  void add(Name name) { ids_.insert(name.id()); }
  void add_all(const Body& body) {
    for (const Stmt& stmt : body) std::visit([this](const auto& node) { statement(node); }, stmt.node);
  }
  void target(const ExprPtr& expr) {
    if (!expr) return;
    std::visit(overloaded{[this](const NameExpr& name) { add(name.name); },
                          [this](const TupleExpr& tuple) {
                            for (const ExprPtr& item : tuple.items) target(item);
                          },
                          [this](const ListExpr& list) {
                            for (const ExprPtr& item : list.items) target(item);
                          },
                          [this](const StarredExpr& starred) { target(starred.value); }, [](const auto&) {}},
               expr->node);
  }
  void statement(const AssignStmt& stmt) {
    for (const ExprPtr& expr : stmt.targets) target(expr);
  }
  void statement(const AnnAssignStmt& stmt) { target(stmt.target); }
  void statement(const ForStmt& stmt) {
    target(stmt.target);
    add_all(stmt.body);
    add_all(stmt.otherwise);
  }
  void statement(const WhileStmt& stmt) { add_all(stmt.body); }
  void statement(const IfStmt& stmt) {
    add_all(stmt.then);
    add_all(stmt.otherwise);
  }
  void statement(const WithStmt& stmt) {
    for (const WithItem& item : stmt.items) target(item.target);
    add_all(stmt.body);
  }
  void statement(const MatchStmt& stmt) {
    for (const MatchCase& each : stmt.cases) {
      for (Name name : names_bound_by(*each.pattern)) add(name);
      add_all(each.body);
    }
  }
  void statement(const FunctionDef& def) {
    add(def.name);
    for (const Parameter& parameter : def.parameters) add(parameter.name);
    add_all(def.body);
  }
  void statement(const ClassDef& def) {
    add(def.name);
    add_all(def.body);
  }
  template <class Other>
  void statement(const Other&) {}

  std::unordered_set<const void*> ids_;
};

bool starts_statement(TokenKind before) {
  return before == TokenKind::newline || before == TokenKind::indent || before == TokenKind::dedent ||
         before == TokenKind::end;
}

std::string normalised(const SourceMap& sources, int32_t file, const BoundNames& bound) {
  TokenList lexed = lex(sources, file);
  std::unordered_map<const void*, size_t> numbers;
  std::string text;
  TokenKind before = TokenKind::end;
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    const Token& token = lexed.tokens[i];
    const bool docstring = token.kind == TokenKind::string && starts_statement(before) && i + 1 < lexed.tokens.size() &&
                           lexed.tokens[i + 1].kind == TokenKind::newline;
    if (docstring) {
      ++i;  // and its newline
      continue;
    }
    if (token.kind == TokenKind::name && before != TokenKind::dot && bound.contains(token.name))
      text += fmt::format("#{}", numbers.try_emplace(token.name.id(), numbers.size()).first->second);
    else if (token.kind == TokenKind::newline || token.kind == TokenKind::indent || token.kind == TokenKind::dedent)
      text += spelling(token.kind);
    else
      text += sources.text({file, token.begin, token.end});
    text += '\x1f';
    before = token.kind;
  }
  return text;
}

}  // namespace

Result<std::string> fingerprint(const std::string& source) {
  SourceMap sources;
  DiagnosticList diagnostics;
  int32_t file = sources.add("program", source);
  ModuleRef module = parse(sources, file, diagnostics);
  if (!module) return make_error(diagnostics.items().front());
  return stable_digest(normalised(sources, file, BoundNames(*module)));
}

std::string graph_fingerprint(const Structure& structure) {
  if (structure.ops.empty()) return {};
  std::string text;
  for (const std::string& op : structure.ops) text += '\x1f' + plain_operator(op);
  for (const auto& [from, to] : structure.links) text += fmt::format("\x1f{}>{}", from, to);
  // Of entries whose links are not known, by name.
  if (structure.links.empty())
    for (const auto& [from, to] : structure.edges)
      text += fmt::format("\x1f{}>{}", plain_operator(from), plain_operator(to));
  return stable_digest(text);
}

}  // namespace tilepilot::retrieval
