#include <fmt/format.h>

#include "compiler/syntax/literal_text.h"
#include "compiler/syntax/pattern.h"
#include "compiler/syntax/print.h"
#include "compiler/syntax/unparser.h"

namespace tilepilot::syntax {
namespace {

class StatementPrinter {
 public:
  std::string take() && { return std::move(out_); }

  void body(const Body& statements) {
    for (size_t i = 0; i < statements.size(); ++i) {
      if (i > 0) separate(statements[i - 1], statements[i]);
      statement(statements[i]);
    }
  }
  void statement(const Stmt& s) { std::visit(*this, s.node); }

  void operator()(const ExprStmt& s) {
    const auto* text = std::get_if<StringLiteral>(&s.value->node);
    if (text != nullptr) return documentation(*text);
    line(source(*s.value, Binding::statement));
  }
  void operator()(const AssignStmt& s) {
    std::string text;
    for (const ExprPtr& target : s.targets) text += source(*target, Binding::tuple) + " = ";
    line(text + source(*s.value, Binding::statement));
  }
  void operator()(const AugAssignStmt& s) {
    line(fmt::format("{} {}= {}", source(*s.target, Binding::primary), spelling(s.op),
                     source(*s.value, Binding::statement)));
  }
  void operator()(const AnnAssignStmt& s) {
    std::string text =
        fmt::format("{}: {}", source(*s.target, Binding::primary), source(*s.annotation, Binding::conditional));
    if (s.value) text += " = " + source(*s.value, Binding::statement);
    line(text);
  }
  void operator()(const ForStmt& s) {
    line(fmt::format("for {} in {}:", source(*s.target, Binding::tuple), source(*s.iterable, Binding::tuple)));
    block(s.body);
    otherwise(s.otherwise);
  }
  void operator()(const WhileStmt& s) {
    line(fmt::format("while {}:", source(*s.condition, Binding::named)));
    block(s.body);
    otherwise(s.otherwise);
  }
  void operator()(const IfStmt& s) { conditional(s, "if"); }
  void operator()(const WithStmt& s) {
    std::string text = "with ";
    for (size_t i = 0; i < s.items.size(); ++i) text += (i > 0 ? ", " : "") + with_item(s.items[i], s.items.size());
    line(text + ":");
    block(s.body);
  }
  void operator()(const FunctionDef& s) {
    decorators(s.decorators);
    Unparser head;
    head.write(fmt::format("def {}(", s.name.text()));
    head.parameters(s.parameters);
    head.write(")");
    if (s.returns) {
      head.write(" -> ");
      head.expr(*s.returns, Binding::conditional);
    }
    head.write(":");
    line(std::move(head).take());
    block(s.body);
  }
  void operator()(const ClassDef& s) {
    decorators(s.decorators);
    Unparser head;
    head.write(fmt::format("class {}", s.name.text()));
    bool parenthesized = !s.bases.empty() || !s.keywords.empty();
    if (parenthesized) head.write("(");
    head.arguments(s.bases, s.keywords);
    head.write(parenthesized ? "):" : ":");
    line(std::move(head).take());
    block(s.body);
  }
  void operator()(const ReturnStmt& s) { keyword("return", s.value, Binding::tuple); }
  void operator()(const PassStmt&) { line("pass"); }
  void operator()(const BreakStmt&) { line("break"); }
  void operator()(const ContinueStmt&) { line("continue"); }
  void operator()(const AssertStmt& s) {
    std::string text = "assert " + source(*s.condition, Binding::conditional);
    if (s.message) text += ", " + source(*s.message, Binding::conditional);
    line(text);
  }
  void operator()(const RaiseStmt& s) {
    if (!s.cause) return keyword("raise", s.exception, Binding::conditional);
    line(fmt::format("raise {} from {}", source(*s.exception, Binding::conditional),
                     source(*s.cause, Binding::conditional)));
  }
  void operator()(const TryStmt& s) {
    line("try:");
    block(s.body);
    for (const ExceptHandler& handler : s.handlers) {
      std::string text = "except";
      if (handler.type) text += " " + source(*handler.type, Binding::conditional);
      if (handler.name.id() != nullptr) text += fmt::format(" as {}", handler.name.text());
      line(text + ":");
      block(handler.body);
    }
    otherwise(s.otherwise);
    if (s.finally.empty()) return;
    line("finally:");
    block(s.finally);
  }
  void operator()(const MatchStmt& s) {
    line(fmt::format("match {}:", source(*s.subject, Binding::named)));
    ++depth_;
    for (const MatchCase& each : s.cases) {
      std::string text = "case " + to_source(*each.pattern);
      if (each.guard) text += " if " + source(*each.guard, Binding::named);
      line(text + ":");
      block(each.body);
    }
    --depth_;
  }
  void operator()(const ImportStmt& s) { line("import " + aliases(s.names)); }
  void operator()(const ImportFromStmt& s) {
    std::string dots(static_cast<size_t>(s.level), '.');
    line(fmt::format("from {}{} import {}", dots, s.module, aliases(s.names)));
  }
  void operator()(const GlobalStmt& s) { names("global ", s.names); }
  void operator()(const NonlocalStmt& s) { names("nonlocal ", s.names); }
  void operator()(const DeleteStmt& s) {
    std::string text;
    for (const ExprPtr& target : s.targets) text += (text.empty() ? "" : ", ") + source(*target, Binding::bit_or);
    line("del " + text);
  }

 private:
  static std::string source(const Expr& e, Binding place) {
    Unparser unparser;
    unparser.expr(e, place);
    return std::move(unparser).take();
  }

  void line(std::string_view text) { out_.append(depth_ * 4, ' ').append(text).push_back('\n'); }

  void block(const Body& statements) {
    ++depth_;
    body(statements);
    if (statements.empty()) line("pass");
    --depth_;
  }

  // Blank lines around definitions, as PEP 8 has them.
  void separate(const Stmt& before, const Stmt& after) {
    auto defines = [](const Stmt& s) {
      return std::holds_alternative<FunctionDef>(s.node) || std::holds_alternative<ClassDef>(s.node);
    };
    if (defines(before) || defines(after)) out_.append(depth_ == 0 ? 2 : 1, '\n');
  }

  void conditional(const IfStmt& s, std::string_view word) {
    line(fmt::format("{} {}:", word, source(*s.condition, Binding::named)));
    block(s.then);
    const auto* chained = s.otherwise.size() == 1 ? std::get_if<IfStmt>(&s.otherwise[0].node) : nullptr;
    if (chained != nullptr) return conditional(*chained, "elif");
    otherwise(s.otherwise);
  }

  void otherwise(const Body& statements) {
    if (statements.empty()) return;
    line("else:");
    block(statements);
  }

  static std::string with_item(const WithItem& item, size_t count) {
    std::string text = source(*item.context, Binding::conditional);
    // `with (a, b):` enters two contexts, not a tuple.
    bool lone_tuple = count == 1 && !item.target && std::holds_alternative<TupleExpr>(item.context->node);
    if (lone_tuple) return "(" + text + ")";
    if (item.target) text += " as " + source(*item.target, Binding::primary);
    return text;
  }

  void decorators(const std::vector<ExprPtr>& list) {
    for (const ExprPtr& decorator : list) line("@" + source(*decorator, Binding::named));
  }

  void keyword(std::string_view word, const ExprPtr& value, Binding place) {
    line(value ? fmt::format("{} {}", word, source(*value, place)) : std::string(word));
  }

  static std::string aliases(const std::vector<ImportAlias>& list) {
    std::string text;
    for (const ImportAlias& alias : list) {
      text += (text.empty() ? "" : ", ") + alias.name;
      if (alias.as.id() != nullptr) text += fmt::format(" as {}", alias.as.text());
    }
    return text;
  }

  void names(std::string_view word, const std::vector<Name>& list) {
    std::string text(word);
    for (size_t i = 0; i < list.size(); ++i) text.append(i > 0 ? ", " : "").append(list[i].text());
    line(text);
  }

  // A string on its own is documentation: its lines stay lines.
  void documentation(const StringLiteral& text) {
    std::string out = R"(""")";
    append_escaped(out, text.value, R"(""")");
    line(out + R"(""")");
  }

  std::string out_;
  size_t depth_ = 0;
};

}  // namespace

std::string to_source(const Module& module) {
  StatementPrinter printer;
  printer.body(module.body);
  return std::move(printer).take();
}

std::string to_source(const Stmt& stmt) {
  StatementPrinter printer;
  printer.statement(stmt);
  return std::move(printer).take();
}

}  // namespace tilepilot::syntax
