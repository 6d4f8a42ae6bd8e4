#include "compiler/ir/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/verify/verify_rules.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

constexpr std::string_view kCompleteName = "complete";
constexpr std::string_view kCompleteSentence = "no part of a node is missing";

// Looks for null where a node must be: every other check relies on there being none.
class Completeness {
 public:
  bool has(const Expr& e) const {
    if (!e) return false;
    return std::visit(overloaded{
                          [](const IntImm&) { return true; },
                          [](const FloatImm&) { return true; },
                          [](const VarRef& n) { return n.var != nullptr; },
                          [&](const Load& n) { return has(n.buffer) && has(n.indices); },
                          [&](const Unary& n) { return has(n.operand); },
                          [&](const Binary& n) { return has(n.left) && has(n.right); },
                          [&](const Math& n) { return has(n.argument); },
                          [&](const Select& n) { return has(n.condition) && has(n.then) && has(n.otherwise); },
                          [&](const Cast& n) { return has(n.value); },
                          [&](const Reinterpret& n) { return has(n.value); },
                      },
                      e->node);
  }

  bool has(const Stmt& s) const {
    if (!s) return false;
    return std::visit(
        overloaded{
            [&](const For& n) { return has(n.vars) && has(n.extents) && has(n.body); },
            [&](const While& n) { return has(n.condition) && has(n.body); },
            [&](const If& n) { return has(n.condition) && has(n.then) && (!n.otherwise || has(n.otherwise)); },
            [&](const Let& n) { return n.var && has(n.value); },
            [&](const Store& n) { return has(n.buffer) && has(n.indices) && has(n.value); },
            [](const Break&) { return true; },
            [](const Continue&) { return true; },
            [](const Sync&) { return true; },
            [&](const Block& n) { return has(n.body); },
            [&](const Copy& n) { return has(n.source) && has(n.destination) && (!n.barrier || has(*n.barrier)); },
            [&](const Fill& n) { return has(n.destination) && has(n.value); },
            [&](const Gemm& n) { return has(n.a) && has(n.b) && has(n.c); },
            [&](const Reduce& n) { return has(n.source) && has(n.destination); },
            [&](const Scan& n) { return has(n.source) && has(n.destination); },
            [&](const Atomic& n) {
              return has(n.element) && (n.op == AtomicOp::load ? n.previous && !n.value : has(n.value));
            },
            [&](const AllReduce& n) { return has(n.value) && has(n.condition) && has(n.identity) && has(n.result); },
            [&](const Shuffle& n) { return has(n.value) && has(n.lane) && has(n.result); },
            [&](const LoadMatrix& n) { return has(n.row) && has(n.registers); },
            [&](const Mma& n) { return has(n.a) && has(n.b) && has(n.c); },
            [&](const Barrier& n) {
              const bool alone = n.op == BarrierOp::arrive || n.op == BarrierOp::arrive_copied;
              return has(n.barrier) && (alone ? !n.operand : has(n.operand));
            },
            [](const Async&) { return true; },
            [&](const Roles& n) { return has(n.body); },
            [&](const Concurrent& n) {
              return std::all_of(n.roles.begin(), n.roles.end(), [&](const auto& role) { return has(role.body); });
            },
            [&](const Check& n) { return has(n.condition); },
            [&](const Print& n) {
              return n.buffer.empty() == !n.index && (n.value || !n.index) && (!n.index || has(n.index)) &&
                     (!n.value || has(n.value)) && has(n.thread);
            },
            [&](const ExternCall& n) { return has(n.arguments); },
        },
        s->node);
  }

  bool has(const Program& p) const {
    for (const auto& parameter : p.parameters) {
      if (const auto* b = std::get_if<Buffer>(&parameter); b ? !has(*b) : !std::get<Var>(parameter)) return false;
    }
    for (const Kernel& k : p.kernels) {
      if (!has(k.block_vars) || !has(k.thread_vars) || !has(k.grid) || !has(k.allocations) || !has(k.body))
        return false;
    }
    return has(p.symbols) && has(p.workspaces);
  }

 private:
  bool has(const Var& v) const { return v != nullptr; }
  bool has(const Buffer& b) const {
    return b && has(b->shape) && has(b->strides) && (!b->base || has(b->base)) && (!b->address || has(b->address));
  }
  bool has(const Region& r) const { return has(r.buffer) && has(r.start); }
  bool has(const std::variant<Expr, Region>& argument) const {
    return std::visit([&](const auto& x) { return has(x); }, argument);
  }
  template <class T>
  bool has(const std::vector<T>& items) const {
    for (const T& item : items) {
      if (!has(item)) return false;
    }
    return true;
  }
};

// Visits everything with its surroundings and asks each rule.
class Verifier {
 public:
  explicit Verifier(DiagnosticList& diagnostics) : diagnostics_(diagnostics) {
    for (const auto* table : {&rules_of_programs(), &rules_of_statements(), &rules_of_expressions()}) {
      rules_.insert(rules_.end(), table->begin(), table->end());
    }
  }

  bool valid = true;

  void complain(const Rule& rule, Span span, const std::string& problem) {
    valid = false;
    diagnostics_.add(
        {DiagnosticKind::ir_invalid, span, fmt::format("{} (rule `{}`: {})", problem, rule.name, rule.sentence)});
  }

  void visit(const Program& p) {
    for (const Rule& rule : rules_) ask(rule, rule.on_program, p, p.span);
    for (const auto& parameter : p.parameters) {
      if (const auto* b = std::get_if<Buffer>(&parameter)) around_.buffers.insert(b->get());
      if (const auto* v = std::get_if<Var>(&parameter)) around_.vars.insert(v->get());
    }
    for (const Var& symbol : p.symbols) around_.vars.insert(symbol.get());
    for (const Buffer& b : p.workspaces) around_.buffers.insert(b.get());
    for (const Kernel& k : p.kernels) visit(k);
  }

 private:
  DiagnosticList& diagnostics_;
  std::vector<Rule> rules_;
  Surroundings around_;

  template <class Check, class Node>
  void ask(const Rule& rule, Check check, const Node& node, Span span) {
    const std::string problem = check ? check(node, around_) : std::string();
    if (!problem.empty()) complain(rule, span, problem);
  }

  void visit(const Kernel& k) {
    for (const Rule& rule : rules_) ask(rule, rule.on_kernel, k, k.span);
    visit(k.grid);
    const Surroundings outside = around_;
    for (const Var& v : k.block_vars) around_.vars.insert(v.get());
    for (const Var& v : k.thread_vars) around_.vars.insert(v.get());
    for (const Buffer& b : k.allocations) around_.buffers.insert(b.get());
    visit(k.body);
    around_ = outside;
  }

  void visit(const Stmt& s) {
    for (const Rule& rule : rules_) ask(rule, rule.on_stmt, s, s->span);
    std::visit(overloaded{
                   [&](const For& n) { loop(n); },
                   [&](const While& n) {
                     visit(n.condition);
                     body_of_loop(LoopKind::serial, n.body);
                   },
                   [&](const If& n) {
                     visit(n.condition), scoped(n.then);
                     if (n.otherwise) scoped(n.otherwise);
                   },
                   [&](const Let& n) {
                     visit(n.value);
                     around_.vars.insert(n.var.get());
                   },
                   [&](const Store& n) { visit(n.indices), visit(n.value); },
                   [](const Break&) {},
                   [](const Continue&) {},
                   [](const Sync&) {},
                   [&](const Block& n) { block(n); },
                   [&](const Copy& n) {
                     visit(n.source.start), visit(n.destination.start);
                     if (n.barrier) visit(n.barrier->start);
                     if (n.peer) visit(n.peer);
                   },
                   [&](const Fill& n) { visit(n.destination.start), visit(n.value); },
                   [&](const Gemm& n) { visit(n.a.start), visit(n.b.start), visit(n.c.start); },
                   [&](const Reduce& n) { visit(n.source.start), visit(n.destination.start); },
                   [&](const Scan& n) { visit(n.source.start), visit(n.destination.start); },
                   [&](const Atomic& n) {
                     visit(n.element.start);
                     if (n.value) visit(n.value);
                     if (n.previous) around_.vars.insert(n.previous.get());
                   },
                   [&](const AllReduce& n) {
                     visit(n.value), visit(n.condition), visit(n.identity);
                     visit(n.result.start);
                   },
                   [&](const Shuffle& n) {
                     visit(n.value), visit(n.lane);
                     around_.vars.insert(n.result.get());
                   },
                   [&](const LoadMatrix& n) { visit(n.row.start), visit(n.registers.start); },
                   [&](const Mma& n) { visit(n.a.start), visit(n.b.start), visit(n.c.start); },
                   [&](const Barrier& n) {
                     visit(n.barrier.start);
                     if (n.operand) visit(n.operand);
                     if (n.peer) visit(n.peer);
                   },
                   [](const Async&) {},
                   [&](const Roles& n) { scoped(n.body); },
                   [&](const Concurrent& n) {
                     for (const Concurrent::Role& role : n.roles) scoped(role.body);
                   },
                   [&](const Check& n) { visit(n.condition); },
                   [&](const Print& n) {
                     if (n.index) visit(n.index);
                     if (n.value) visit(n.value);
                     visit(n.thread);
                   },
                   [&](const ExternCall& n) {
                     for (const auto& argument : n.arguments) {
                       const auto* region = std::get_if<Region>(&argument);
                       region ? visit(region->start) : visit(std::get<Expr>(argument));
                     }
                     if (n.result) around_.vars.insert(n.result.get());
                   },
               },
               s->node);
  }

  void block(const Block& n) {
    const auto vars = around_.vars;
    for (const Stmt& child : n.body) visit(child);
    around_.vars = vars;
  }

  void scoped(const Stmt& s) {
    const auto vars = around_.vars;
    visit(s);
    around_.vars = vars;
  }

  void loop(const For& n) {
    visit(n.extents);
    const auto vars = around_.vars;
    for (const Var& v : n.vars) around_.vars.insert(v.get());
    body_of_loop(n.kind, n.body);
    around_.vars = vars;
  }

  void body_of_loop(LoopKind kind, const Stmt& s) {
    around_.loops.push_back(kind);
    scoped(s);
    around_.loops.pop_back();
  }

  void visit(const std::vector<Expr>& exprs) {
    for (const Expr& e : exprs) visit(e);
  }

  void visit(const Expr& e) {
    walk(e, [&](const Expr& part) {
      for (const Rule& rule : rules_) ask(rule, rule.on_expr, part, part->span);
    });
  }
};

}  // namespace

bool verify(const Program& program, DiagnosticList& diagnostics) {
  Verifier verifier(diagnostics);
  if (!Completeness().has(program)) {
    verifier.complain({kCompleteName, kCompleteSentence}, program.span, "a node is null");
    return false;
  }
  verifier.visit(program);
  return verifier.valid;
}

std::vector<VerifierRule> verifier_rules() {
  std::vector<VerifierRule> result{{kCompleteName, kCompleteSentence}};
  for (const auto* table : {&rules_of_programs(), &rules_of_statements(), &rules_of_expressions()}) {
    for (const Rule& rule : *table) result.push_back({rule.name, rule.sentence});
  }
  return result;
}

}  // namespace tilepilot::ir
