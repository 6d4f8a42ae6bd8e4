// The dumps of tokens and trees.
#include <fmt/format.h>

#include "compiler/syntax/lexer.h"
#include "compiler/syntax/literal_text.h"
#include "compiler/syntax/pattern.h"
#include "compiler/syntax/print.h"

namespace tilepilot::syntax {
namespace {

std::string_view word(Parameter::Kind kind) {
  switch (kind) {
    case Parameter::Kind::positional_only:
      return "positional_only";
    case Parameter::Kind::positional:
      return "positional";
    case Parameter::Kind::keyword_only:
      return "keyword_only";
    case Parameter::Kind::var_positional:
      return "var_positional";
    case Parameter::Kind::var_keyword:
      return "var_keyword";
  }
  return "";
}

std::string_view word(ComprehensionExpr::Kind kind) {
  switch (kind) {
    case ComprehensionExpr::Kind::list:
      return "list";
    case ComprehensionExpr::Kind::set:
      return "set";
    case ComprehensionExpr::Kind::dict:
      return "dict";
    case ComprehensionExpr::Kind::generator:
      return "generator";
  }
  return "";
}

class TreeDumper {
 public:
  explicit TreeDumper(const DumpOptions& options) : sources_(options.sources) {}
  std::string take() && { return std::move(out_); }

  void expr(std::string_view label, const Expr& e) {
    label_ = label;
    span_ = e.span;
    std::visit(*this, e.node);
  }
  void body(std::string_view label, const Body& statements) {
    if (statements.empty()) return;
    Indented inner(*this, label);
    for (const Stmt& stmt : statements) {
      label_ = {};
      span_ = stmt.span;
      std::visit(*this, stmt.node);
    }
  }

  void operator()(const NameExpr& e) { leaf("name {}", e.name.text()); }
  void operator()(const NoneLiteral&) { leaf("none"); }
  void operator()(const EllipsisLiteral&) { leaf("ellipsis"); }
  void operator()(const BoolLiteral& e) { leaf("bool {}", e.value ? "True" : "False"); }
  void operator()(const IntLiteral& e) { leaf("int {}", e.wide ? to_text(*e.wide) : std::to_string(e.value)); }
  void operator()(const FloatLiteral& e) { leaf("float {}", float_text(e.value)); }
  void operator()(const StringLiteral& e) { leaf("string {}", python_literal(e.value)); }
  void operator()(const FormattedString& e) {
    Indented inner = node("format");
    for (const FormattedPart& part : e.parts) {
      if (!part.text.empty()) line(fmt::format("text {}", python_literal(part.text)), {});
      if (!part.value) continue;
      std::string head = "field";
      if (!part.self_text.empty()) head += fmt::format(" self={}", python_literal(part.self_text));
      if (part.conversion != 0) head += fmt::format(" !{}", part.conversion);
      Indented field(*this, head);
      expr("value", *part.value);
      one("format", part.format);
    }
  }
  void operator()(const AttributeExpr& e) {
    Indented inner = node("attribute {}", e.name.text());
    one("", e.object);
  }
  void operator()(const SubscriptExpr& e) {
    Indented inner = node("subscript");
    one("object", e.object);
    one("index", e.index);
  }
  void operator()(const SliceExpr& e) {
    Indented inner = node("slice");
    one("start", e.start);
    one("stop", e.stop);
    one("step", e.step);
  }
  void operator()(const CallExpr& e) {
    Indented inner = node("call");
    one("callee", e.callee);
    all("arg", e.args);
    keyword_list(e.keywords);
  }
  void operator()(const UnaryExpr& e) {
    Indented inner = node("unary {}", spelling(e.op));
    one("", e.operand);
  }
  void operator()(const BinaryExpr& e) {
    Indented inner = node("binary {}", spelling(e.op));
    one("", e.left);
    one("", e.right);
  }
  void operator()(const BoolExpr& e) {
    Indented inner = node(e.is_and ? "and" : "or");
    all("", e.operands);
  }
  void operator()(const CompareExpr& e) {
    Indented inner = node("compare");
    one("", e.first);
    for (size_t i = 0; i < e.ops.size(); ++i) one(spelling(e.ops[i]), e.rest[i]);
  }
  void operator()(const ConditionalExpr& e) {
    Indented inner = node("conditional");
    one("condition", e.condition);
    one("then", e.then);
    one("else", e.otherwise);
  }
  void operator()(const TupleExpr& e) { items("tuple", e.items); }
  void operator()(const ListExpr& e) { items("list", e.items); }
  void operator()(const SetExpr& e) { items("set", e.items); }
  void operator()(const DictExpr& e) {
    Indented inner = node("dict");
    for (const auto& [key, value] : e.items) {
      one("key", key);
      one(key ? "value" : "unpack", value);
    }
  }
  void operator()(const StarredExpr& e) {
    Indented inner = node("starred");
    one("", e.value);
  }
  void operator()(const NamedExpr& e) {
    Indented inner = node("named {}", e.name.text());
    one("", e.value);
  }
  void operator()(const YieldExpr& e) {
    Indented inner = node(e.from ? "yield_from" : "yield");
    one("", e.value);
  }
  void operator()(const ComprehensionExpr& e) {
    Indented inner = node("comprehension {}", word(e.kind));
    one("element", e.element);
    one("value", e.value);
    for (const ComprehensionClause& clause : e.clauses) {
      Indented nested(*this, "for");
      one("target", clause.target);
      one("in", clause.iterable);
      all("if", clause.conditions);
    }
  }
  void operator()(const LambdaExpr& e) {
    Indented inner = node("lambda");
    parameter_list(e.parameters);
    one("body", e.body);
  }

  void operator()(const ExprStmt& s) {
    Indented inner = node("expression");
    one("", s.value);
  }
  void operator()(const AssignStmt& s) {
    Indented inner = node("assign");
    all("target", s.targets);
    one("value", s.value);
  }
  void operator()(const AugAssignStmt& s) {
    Indented inner = node("assign {}=", spelling(s.op));
    one("target", s.target);
    one("value", s.value);
  }
  void operator()(const AnnAssignStmt& s) {
    Indented inner = node("annotated");
    one("target", s.target);
    one("annotation", s.annotation);
    one("value", s.value);
  }
  void operator()(const ForStmt& s) {
    Indented inner = node("for");
    one("target", s.target);
    one("in", s.iterable);
    body("body", s.body);
    body("else", s.otherwise);
  }
  void operator()(const WhileStmt& s) {
    Indented inner = node("while");
    one("condition", s.condition);
    body("body", s.body);
    body("else", s.otherwise);
  }
  void operator()(const IfStmt& s) {
    Indented inner = node("if");
    one("condition", s.condition);
    body("then", s.then);
    body("else", s.otherwise);
  }
  void operator()(const WithStmt& s) {
    Indented inner = node("with");
    for (const WithItem& item : s.items) {
      one("context", item.context);
      one("as", item.target);
    }
    body("body", s.body);
  }
  void operator()(const FunctionDef& s) {
    Indented inner = node("def {}{}", s.name.text(), s.is_generator ? " generator" : "");
    all("decorator", s.decorators);
    parameter_list(s.parameters);
    one("returns", s.returns);
    body("body", s.body);
  }
  void operator()(const ClassDef& s) {
    Indented inner = node("class {}", s.name.text());
    all("decorator", s.decorators);
    all("base", s.bases);
    keyword_list(s.keywords);
    body("body", s.body);
  }
  void operator()(const ReturnStmt& s) {
    Indented inner = node("return");
    one("", s.value);
  }
  void operator()(const PassStmt&) { leaf("pass"); }
  void operator()(const BreakStmt&) { leaf("break"); }
  void operator()(const ContinueStmt&) { leaf("continue"); }
  void operator()(const AssertStmt& s) {
    Indented inner = node("assert");
    one("condition", s.condition);
    one("message", s.message);
  }
  void operator()(const RaiseStmt& s) {
    Indented inner = node("raise");
    one("", s.exception);
    one("from", s.cause);
  }
  void operator()(const TryStmt& s) {
    Indented inner = node("try");
    body("body", s.body);
    for (const ExceptHandler& handler : s.handlers) {
      bool named = handler.name.id() != nullptr;
      Indented nested(*this, named ? fmt::format("except as {}", handler.name.text()) : "except");
      one("type", handler.type);
      body("body", handler.body);
    }
    body("else", s.otherwise);
    body("finally", s.finally);
  }
  void operator()(const MatchStmt& s) {
    Indented inner = node("match");
    one("subject", s.subject);
    for (const MatchCase& each : s.cases) {
      Indented nested(*this, "case " + to_source(*each.pattern));
      one("guard", each.guard);
      body("body", each.body);
    }
  }
  void operator()(const ImportStmt& s) {
    Indented inner = node("import");
    aliases(s.names);
  }
  void operator()(const ImportFromStmt& s) {
    Indented inner = node("from {}{}", std::string(static_cast<size_t>(s.level), '.'), s.module);
    aliases(s.names);
  }
  void operator()(const GlobalStmt& s) { names("global", s.names); }
  void operator()(const NonlocalStmt& s) { names("nonlocal", s.names); }
  void operator()(const DeleteStmt& s) { items("delete", s.targets); }

 private:
  // Lines written during its life are one level further in.
  class Indented {
   public:
    Indented(TreeDumper& dumper, std::string_view head, Span span = {}) : dumper_(dumper) {
      dumper_.line(head, span);
      ++dumper_.depth_;
    }
    ~Indented() { --dumper_.depth_; }
    Indented(const Indented&) = delete;
    Indented& operator=(const Indented&) = delete;

   private:
    TreeDumper& dumper_;
  };

  void line(std::string_view text, Span span) {
    out_.append(static_cast<size_t>(depth_) * 2, ' ').append(text);
    if (sources_ != nullptr && span.valid()) {
      Position begin = sources_->position(span.file, span.begin);
      Position end = sources_->position(span.file, span.end);
      out_ += fmt::format("  @{}:{}-{}:{}", begin.line, begin.column, end.line, end.column);
    }
    out_.push_back('\n');
  }

  template <class... Args>
  std::string labelled(fmt::format_string<Args...> format, Args&&... args) {
    std::string text = fmt::format(format, std::forward<Args>(args)...);
    return label_.empty() ? text : fmt::format("{}: {}", label_, text);
  }
  template <class... Args>
  void leaf(fmt::format_string<Args...> format, Args&&... args) {
    line(labelled(format, std::forward<Args>(args)...), span_);
  }
  template <class... Args>
  Indented node(fmt::format_string<Args...> format, Args&&... args) {
    return Indented(*this, labelled(format, std::forward<Args>(args)...), span_);
  }
  Indented node(const char* text) { return node("{}", text); }

  void one(std::string_view label, const ExprPtr& e) {
    if (e) expr(label, *e);
  }
  void all(std::string_view label, const std::vector<ExprPtr>& list) {
    for (const ExprPtr& e : list) one(label, e);
  }
  void items(const char* kind, const std::vector<ExprPtr>& list) {
    Indented inner = node(kind);
    all("", list);
  }
  void keyword_list(const std::vector<Keyword>& list) {
    for (const Keyword& keyword : list) {
      bool unpacked = keyword.name.id() == nullptr;
      Indented inner(*this, unpacked ? "unpack" : fmt::format("keyword {}", keyword.name.text()));
      one("", keyword.value);
    }
  }
  void parameter_list(const std::vector<Parameter>& list) {
    for (const Parameter& parameter : list) {
      Indented inner(*this, fmt::format("parameter {} {}", parameter.name.text(), word(parameter.kind)));
      one("annotation", parameter.annotation);
      one("default", parameter.default_value);
    }
  }
  void aliases(const std::vector<ImportAlias>& list) {
    for (const ImportAlias& alias : list) {
      line(alias.as.id() == nullptr ? alias.name : fmt::format("{} as {}", alias.name, alias.as.text()), {});
    }
  }
  void names(std::string_view kind, const std::vector<Name>& list) {
    std::string text(kind);
    for (Name name : list) text.append(" ").append(name.text());
    line(text, span_);
  }

  const SourceMap* sources_;
  std::string out_;
  std::string_view label_;
  Span span_;
  int depth_ = 0;
};

}  // namespace

std::string dump_tokens(const SourceMap& sources, int32_t file) {
  std::string out;
  TokenList list = lex(sources, file);
  for (const Token& token : list.tokens) {
    Position at = sources.position(file, token.begin);
    std::string_view text = sources.text({file, token.begin, token.end});
    bool is_text = token.kind == TokenKind::name || token.kind == TokenKind::integer || token.kind == TokenKind::real;
    out += fmt::format("{}:{} {}", at.line, at.column, spelling(token.kind));
    if (is_text) out += fmt::format(" {}", text);
    if (token.kind == TokenKind::string) out += fmt::format(" {}", python_literal(text));
    if (token.kind == TokenKind::error) out += fmt::format(": {}", list.errors[token.error_index].message);
    out.push_back('\n');
  }
  return out;
}

std::string dump_tree(const Module& module, const DumpOptions& options) {
  TreeDumper dumper(options);
  dumper.body("module", module.body);
  return std::move(dumper).take();
}

std::string dump_tree(const Expr& expr, const DumpOptions& options) {
  TreeDumper dumper(options);
  dumper.expr("", expr);
  return std::move(dumper).take();
}

}  // namespace tilepilot::syntax
