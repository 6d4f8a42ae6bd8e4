#include "agent/builtin/writer/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/syntax/parser.h"

namespace tilepilot::agent::builtin {

namespace {

using syntax::ClassDef;
using syntax::FunctionDef;
using syntax::Stmt;

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (char c : std::string(text) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty()) words.insert(word);
    word.clear();
  }
  return words;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

class Keeper {
 public:
  Keeper(const std::string& text, const std::string& path, bool with_forward)
      : text_(text), with_forward_(with_forward) {
    file_ = sources_.add(path, text);
  }

  Result<KeptSource> run() {
    DiagnosticList diagnostics;
    module_ = syntax::parse(sources_, file_, diagnostics);
    if (!module_) return make_error(diagnostics.items().front());
    for (auto& stmt : module_->body) index(stmt);
    auto model = classes_.find("Model");
    if (model == classes_.end())
      return make_error(DiagnosticKind::unknown_name, {file_, 0, 0}, "the file defines no `Model`");
    KeptSource kept;
    keep_model(*model->second, kept);
    keep_helpers(kept);
    kept.words = std::move(needed_);
    return kept;
  }

 private:
  const std::string& text_;
  bool with_forward_;
  SourceMap sources_;
  int32_t file_;
  syntax::ModuleRef module_;
  std::map<std::string, const Stmt*> classes_statement_;
  std::map<std::string, const ClassDef*> classes_;
  std::map<std::string, const Stmt*> definitions_;  // functions and constants by name
  std::set<std::string> needed_;                    // identifiers in kept text

  void index(const Stmt& stmt) {
    if (auto* c = std::get_if<ClassDef>(&stmt.node)) {
      classes_[c->name.str()] = c;
      classes_statement_[c->name.str()] = &stmt;
    } else if (auto* f = std::get_if<FunctionDef>(&stmt.node)) {
      definitions_[f->name.str()] = &stmt;
    } else if (auto* a = std::get_if<syntax::AssignStmt>(&stmt.node)) {
      for (auto& target : a->targets)
        if (auto* name = std::get_if<syntax::NameExpr>(&target->node)) definitions_[name->name.str()] = &stmt;
    }
  }

  // Where the line of the first decorator begins.
  size_t begin_of(const Stmt& stmt) const {
    size_t begin = stmt.span.begin;
    if (auto* f = std::get_if<FunctionDef>(&stmt.node))
      for (auto& decorator : f->decorators) begin = std::min<size_t>(begin, decorator->span.begin);
    const size_t line = begin == 0 ? std::string::npos : text_.rfind('\n', begin - 1);
    return line == std::string::npos ? 0 : line + 1;
  }

  // Whole lines from there to the end of the statement.
  std::string lines_of(const Stmt& stmt) const {
    const size_t begin = begin_of(stmt);
    std::string text = text_.substr(begin, stmt.span.end - begin);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    return text + "\n";
  }

  void need(const std::string& text) {
    auto words = words_of(text);
    needed_.insert(words.begin(), words.end());
  }

  // The methods of a class that construction reaches, and its attributes; in the order of the source.
  std::vector<const Stmt*> reachable(const ClassDef& definition) const {
    std::map<std::string, const Stmt*> methods;
    std::set<std::string> reached;
    std::vector<std::string> open = {"__init__", "reset_parameters"};
    if (with_forward_) open.push_back("forward");
    for (auto& stmt : definition.body)
      if (auto* f = std::get_if<FunctionDef>(&stmt.node)) methods[f->name.str()] = &stmt;
    while (!open.empty()) {
      std::string name = open.back();
      open.pop_back();
      auto found = methods.find(name);
      if ((name == "forward" && !with_forward_) || found == methods.end() || !reached.insert(name).second) continue;
      for (auto& word : words_of(lines_of(*found->second))) open.push_back(word);
    }
    std::vector<const Stmt*> result;
    for (auto& stmt : definition.body) {
      auto* f = std::get_if<FunctionDef>(&stmt.node);
      if (f ? reached.count(f->name.str()) > 0 : std::holds_alternative<syntax::AssignStmt>(stmt.node))
        result.push_back(&stmt);
    }
    return result;
  }

  // A function's text. Lines are appended to its body, which may stand behind the colon.
  std::string with_body_below(std::string text, const Stmt& stmt, const FunctionDef& function) const {
    if (function.body.empty()) return text;
    const size_t body = function.body.front().span.begin - begin_of(stmt),
                 colon = text.find_last_not_of(" \t", body - 1);
    if (colon == std::string::npos || text[colon] != ':') return text;
    return text.substr(0, colon + 1) + "\n        " + text.substr(body);
  }

  void keep_model(const ClassDef& model, KeptSource& kept) {
    if (!model.bases.empty()) kept.bases = sources_.text(model.bases[0]->span);
    for (const Stmt* stmt : reachable(model)) {
      std::string text = lines_of(*stmt);
      replace_all(text, "super(Model, self)", "super()");
      need(text);
      auto* f = std::get_if<FunctionDef>(&stmt->node);
      bool is_init = f && f->name.text() == "__init__";
      if (is_init) text = with_body_below(text, *stmt, *f);
      if (f && f->name.text() == "forward")
        text.replace(text.find("def forward"), std::string_view("def forward").size(),
                     std::string("def ") + kForwardAsWritten);
      (is_init ? kept.init : kept.members) += is_init || kept.members.empty() ? text : "\n" + text;
    }
    if (kept.init.empty()) kept.init = "    def __init__(self):\n        super().__init__()\n";
    need(kept.bases);
  }

  std::string class_text(const Stmt& statement, const ClassDef& definition) const {
    std::string whole = lines_of(statement);
    std::vector<const Stmt*> members = reachable(definition);
    bool is_module = whole.find("forward") != std::string::npos;
    if (!is_module || with_forward_) return whole;
    std::string header = whole.substr(0, whole.find(definition.body.empty() ? '\n' : ':'));
    size_t body = definition.body.front().span.begin;
    size_t start = statement.span.begin;
    header = text_.substr(start, body - start);
    header = header.substr(0, header.find_last_of(':') + 1) + "\n";
    std::string text = header;
    for (const Stmt* member : members) text += (member == members.front() ? "" : "\n") + lines_of(*member);
    if (members.empty()) text += "    pass\n";
    return text;
  }

  // Until nothing new is named; then in the order of the source.
  void keep_helpers(KeptSource& kept) {
    std::map<const Stmt*, std::string> chosen;
    for (size_t before = 0, first = 1; first || before != chosen.size(); first = 0) {
      before = chosen.size();
      for (auto& [name, definition] : classes_) {
        const Stmt* stmt = classes_statement_[name];
        if (name != "Model" && needed_.count(name) && !chosen.count(stmt))
          chosen[stmt] = class_text(*stmt, *definition);
      }
      for (auto& [name, stmt] : definitions_)
        if (name != "get_inputs" && name != "get_init_inputs" && needed_.count(name) && !chosen.count(stmt))
          chosen[stmt] = lines_of(*stmt);
      for (auto& [stmt, text] : chosen) need(text);
    }
    for (auto& stmt : module_->body) {
      keep_import(stmt, kept);
      auto found = chosen.find(&stmt);
      if (found == chosen.end()) continue;
      bool constant = std::holds_alternative<syntax::AssignStmt>(stmt.node);
      if (!kept.helpers.empty()) kept.helpers += constant ? "" : "\n\n";
      kept.helpers += found->second;
    }
  }

  static bool is_standard(std::string_view name) {
    return name == "torch" || name == "torch.nn" || name == "torch.nn.functional";
  }

  // The program writer imports torch under its usual names; other bindings are kept if used.
  void keep_import(const Stmt& stmt, KeptSource& kept) {
    auto keep = [&](const syntax::ImportAlias& alias, const std::string& from) {
      std::string bound = alias.as.id() ? alias.as.str() : alias.name.substr(0, alias.name.find('.'));
      if (!needed_.count(bound)) return;
      bool usual = from.empty() && is_standard(alias.name) && (bound == "torch" || bound == "nn" || bound == "F");
      usual = usual || (from == "torch" && alias.name == "nn" && bound == "nn");
      if (usual) return;
      std::string renamed = alias.as.id() ? " as " + alias.as.str() : "";
      kept.imports.push_back((from.empty() ? "" : "from " + from + " ") + "import " + alias.name + renamed);
    };
    if (auto* plain = std::get_if<syntax::ImportStmt>(&stmt.node))
      for (auto& alias : plain->names) keep(alias, "");
    if (auto* from = std::get_if<syntax::ImportFromStmt>(&stmt.node))
      for (auto& alias : from->names) keep(alias, from->module);
  }
};

}  // namespace

Result<KeptSource> keep_source(const std::string& model_source, const std::string& path, bool with_forward) {
  return Keeper(model_source, path, with_forward).run();
}

}  // namespace tilepilot::agent::builtin
