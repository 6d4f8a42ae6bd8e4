#include <fmt/format.h>

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/text/spelling.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

std::string as_identifier(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (digit && result.empty()) result += 'v';
    result += letter || digit ? c : '_';
  }
  return result.empty() ? "v" : result;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + "\"";
}

// Gives each variable and buffer in scope its own name: its own if free, else with a number (`i_1`).
class Names {
 public:
  size_t mark() const { return declared_.size(); }

  void leave(size_t mark) {
    while (declared_.size() > mark) {
      taken_.erase(names_.at(declared_.back()));
      names_.erase(declared_.back());
      declared_.pop_back();
    }
  }

  const std::string& declare(const void* what, const std::string& wanted) {
    declared_.push_back(what);
    return give(what, wanted);
  }

  // A free variable of a fragment of a program gets a name at its first use.
  const std::string& of(const void* what, const std::string& wanted) {
    const auto known = names_.find(what);
    return known != names_.end() ? known->second : give(what, wanted);
  }

 private:
  const std::string& give(const void* what, const std::string& wanted) {
    const std::string base = as_identifier(wanted);
    std::string name = base;
    for (int k = 1; is_reserved_word(name) || taken_.count(name) > 0; ++k) name = fmt::format("{}_{}", base, k);
    taken_.insert(name);
    return names_[what] = name;
  }

  std::unordered_map<const void*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::vector<const void*> declared_;
};

bool is_negative_literal(const Expr& expr) {
  if (const auto* i = std::get_if<IntImm>(&expr->node)) return i->value < 0;
  if (const auto* f = std::get_if<FloatImm>(&expr->node)) return std::signbit(f->value);
  return false;
}

class Printer {
 public:
  std::string out;

  void program(const Program& p);
  void stmt(const Stmt& s);
  // `place` is the type that the place expects: a literal of this type, or of the default type where there is none,
  // needs no suffix.
  std::string expr(const Expr& e, std::optional<DType> place = std::nullopt) {
    return expr(e, Precedence::lowest, place);
  }

 private:
  Names names_;
  int depth_ = 0;

  std::string name(const Var& v) { return names_.of(v.get(), v->name); }
  std::string name(const Buffer& b) { return names_.of(b.get(), b->name); }

  void line(std::string_view text) { out += fmt::format("{:{}}{}\n", "", depth_ * 2, text); }

  std::string join(const std::vector<Expr>& exprs) {
    std::string result;
    for (const Expr& e : exprs) result += (result.empty() ? "" : ", ") + expr(e);
    return result;
  }

  static std::string join(const std::vector<int64_t>& values) { return fmt::format("{}", fmt::join(values, ", ")); }

  std::string expr(const Expr& e, Precedence around, std::optional<DType> place);
  std::string literal(const IntImm& imm, DType type, std::optional<DType> place);
  std::string literal(const FloatImm& imm, DType type, std::optional<DType> place);
  std::string pair(const Expr& left, const Expr& right, Precedence left_around, Precedence right_around,
                   std::string_view between);
  std::string unary_expr(const Unary& u);
  std::string binary_expr(const Binary& b);
  static Precedence binds(const Expr& e);

  std::string declared_type(const Var& v) {
    return fmt::format("{}: {}", names_.declare(v.get(), v->name), to_string(v->type));
  }
  // Loop and block variables are int32 unless they say otherwise.
  std::string loop_var(const Var& v) { return v->type == kInt32 ? names_.declare(v.get(), v->name) : declared_type(v); }
  std::string loop_vars(const std::vector<Var>& vars) {
    std::string result;
    for (const Var& v : vars) result += (result.empty() ? "" : ", ") + loop_var(v);
    return result;
  }
  std::string declared_buffer(const Buffer& b) {
    std::string result =
        fmt::format("{}: {}[{}]", names_.declare(b.get(), b->name), to_string(b->type), join(b->shape));
    if (!b->strides.empty()) result += fmt::format(" strides [{}]", join(b->strides));
    if (b->alignment != kTensorAlignment) result += fmt::format(" aligned {}", b->alignment);
    if (b->row_alignment != 1) result += fmt::format(" row_aligned {}", b->row_alignment);
    if (b->few_elements) result += " few_elements";
    if (b->reducer) result += " reducer";
    if (b->base) result += " view " + name(b->base);
    if (b->address) result += " address " + name(b->address);
    if (!b->arrivals.empty()) result += fmt::format(" arrivals [{}]", join(b->arrivals));
    return result;
  }

  std::string layout(const RequestedLayout& request);
  void kernel(const Kernel& k);
  void parameters(const Program& p);
  std::string region(const Region& r);
  static bool is_whole(const Region& r);
  void body(const Stmt& s);
  void block(std::string_view head, const Stmt& s, std::string_view tail = "}");
  void loop(const For& f);
  void branch(const If& i);
  std::string gemm(const Gemm& g);
  std::string copy(const Copy& c);
  std::string atomic(const Atomic& a);
  std::string all_reduce(const AllReduce& r);
  std::string shuffle(const Shuffle& s);
  std::string barrier(const Barrier& b);
  std::string print(const Print& p);
  void concurrent(const Concurrent& c);
  std::string extern_call(const ExternCall& c);
};

std::string Printer::literal(const IntImm& imm, DType type, std::optional<DType> place) {
  if (type == kBool) return imm.value ? "true" : "false";
  const DType clear = place && place->is_int() ? *place : kInt32;
  return fmt::format("{}{}", imm.value, type == clear ? "" : literal_suffix(type));
}

std::string Printer::literal(const FloatImm& imm, DType type, std::optional<DType> place) {
  const DType clear = place && place->is_float() ? *place : kFloat32;
  const std::string_view suffix = type == clear ? "" : literal_suffix(type);
  const std::string_view bar = suffix.empty() ? "" : "_";
  if (std::isnan(imm.value)) return fmt::format("nan{}{}", bar, suffix);
  if (std::isinf(imm.value)) return fmt::format("{}inf{}{}", imm.value < 0 ? "-" : "", bar, suffix);
  std::string digits = fmt::format("{}", imm.value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + std::string(suffix);
}

// Two operands of one type: a literal on one side has the type of the other.
std::string Printer::pair(const Expr& left, const Expr& right, Precedence left_around, Precedence right_around,
                          std::string_view between) {
  const std::optional<DType> none;
  const auto left_place = is_literal(right) ? none : right->type;
  const auto right_place = is_literal(left) ? none : left->type;
  std::string text = expr(left, left_around, left_place);
  text += between;
  return text + expr(right, right_around, right_place);
}

std::string Printer::unary_expr(const Unary& u) {
  if (u.op == UnaryOp::logical_not) return "not " + expr(u.operand, Precedence::logical_not, {});
  const bool apart = is_literal(u.operand) || std::holds_alternative<Unary>(u.operand->node);
  if (apart) return fmt::format("{}({})", to_string(u.op), expr(u.operand));
  return fmt::format("{}{}", to_string(u.op), expr(u.operand, Precedence::prefix, {}));
}

std::string Printer::binary_expr(const Binary& b) {
  if (is_call(b.op)) {
    return fmt::format("{}({})", to_string(b.op), pair(b.left, b.right, Precedence::lowest, Precedence::lowest, ", "));
  }
  const Precedence own = precedence(b.op);
  const auto tighter = Precedence(int(own) + 1);
  return pair(b.left, b.right, own == Precedence::compare ? tighter : own, tighter,
              fmt::format(" {} ", to_string(b.op)));
}

Precedence Printer::binds(const Expr& e) {
  if (const auto* b = std::get_if<Binary>(&e->node)) return precedence(b->op);
  if (const auto* u = std::get_if<Unary>(&e->node)) {
    return u->op == UnaryOp::logical_not ? Precedence::logical_not : Precedence::prefix;
  }
  return is_negative_literal(e) ? Precedence::prefix : Precedence::primary;
}

std::string Printer::expr(const Expr& e, Precedence around, std::optional<DType> place) {
  if (!e) return "<null>";
  std::string text = std::visit(
      overloaded{
          [&](const IntImm& n) { return literal(n, e->type, place); },
          [&](const FloatImm& n) { return literal(n, e->type, place); },
          [&](const VarRef& n) { return name(n.var); },
          [&](const Load& n) { return fmt::format("{}[{}]", name(n.buffer), join(n.indices)); },
          [&](const Unary& n) { return unary_expr(n); },
          [&](const Binary& n) { return binary_expr(n); },
          [&](const Math& n) { return fmt::format("{}({})", to_string(n.function), expr(n.argument)); },
          [&](const Select& n) {
            return fmt::format("select({}, {})", expr(n.condition),
                               pair(n.then, n.otherwise, Precedence::lowest, Precedence::lowest, ", "));
          },
          [&](const Cast& n) { return fmt::format("{}({})", to_string(e->type), expr(n.value)); },
          [&](const Reinterpret& n) { return fmt::format("reinterpret({}, {})", expr(n.value), to_string(e->type)); },
      },
      e->node);
  return binds(e) < around ? "(" + text + ")" : text;
}

// A region that is the whole buffer is written as the bare name.
bool Printer::is_whole(const Region& r) {
  if (r.start.size() != r.buffer->rank() || r.extent.size() != r.buffer->rank() || r.extent.empty()) return false;
  for (size_t k = 0; k < r.extent.size(); ++k) {
    if (constant_int(r.buffer->shape[k]) != r.extent[k]) return false;
    if (constant_int(r.start[k]) != 0 || r.start[k]->type != kInt32) return false;
  }
  return true;
}

std::string Printer::region(const Region& r) {
  if (is_whole(r)) return name(r.buffer);
  std::string axes;
  for (size_t k = 0; k < r.start.size() && k < r.extent.size(); ++k) {
    if (k > 0) axes += ", ";
    axes += expr(r.start[k]);
    const auto start = r.start[k]->type == kInt32 ? constant_int(r.start[k]) : std::nullopt;
    if (r.extent[k] == 1) continue;
    axes += start && *start >= 0 && r.extent[k] > 0 ? fmt::format(" : {}", *start + r.extent[k])
                                                    : fmt::format(" : +{}", r.extent[k]);
  }
  return fmt::format("{}[{}]", name(r.buffer), axes);
}

void Printer::body(const Stmt& s) {
  const size_t mark = names_.mark();
  ++depth_;
  if (const auto* b = s ? std::get_if<Block>(&s->node) : nullptr) {
    for (const Stmt& child : b->body) stmt(child);
  } else {
    stmt(s);
  }
  --depth_;
  names_.leave(mark);
}

void Printer::block(std::string_view head, const Stmt& s, std::string_view tail) {
  line(head.empty() ? "{" : fmt::format("{} {{", head));
  body(s);
  if (!tail.empty()) line(tail);
}

void Printer::loop(const For& f) {
  const std::string extents = join(f.extents);  // before the variables are in scope
  const size_t mark = names_.mark();
  std::string head = fmt::format("{} {} in {}", to_string(f.kind), loop_vars(f.vars), extents);
  if (f.num_stages != 0) head += fmt::format(" stages {}", f.num_stages);
  block(head, f.body);
  names_.leave(mark);
}

void Printer::branch(const If& i) {
  block("if " + expr(i.condition), i.then, i.otherwise ? "" : "}");
  if (i.otherwise) block("} else", i.otherwise);
}

std::string Printer::gemm(const Gemm& g) {
  std::string text = fmt::format("gemm {} {} {}{} @ {}{}", region(g.c), g.clear_accumulator ? "=" : "+=", region(g.a),
                                 g.transpose_a ? ".T" : "", region(g.b), g.transpose_b ? ".T" : "");
  if (g.policy != WarpPolicy::square) text += fmt::format(" policy {}", to_string(g.policy));
  if (g.precision != Precision::ieee) text += fmt::format(" precision {}", to_string(g.precision));
  if (g.asynchronous) text += " asynchronous";
  return text;
}

std::string Printer::copy(const Copy& c) {
  std::string text = fmt::format("copy {} -> {}", region(c.source), region(c.destination));
  if (c.options.disable_tma) text += " disable_tma";
  if (c.options.coalesced_width != 0) text += fmt::format(" coalesced_width {}", c.options.coalesced_width);
  if (c.mode != CopyMode::complete) text += fmt::format(" mode {}", to_string(c.mode));
  if (c.barrier) text += " counting " + region(*c.barrier);
  if (c.multicast != 0) text += fmt::format(" into {}", c.multicast);
  if (c.peer) text += " into_block " + expr(c.peer);
  if (c.in_line) text += " in_line";
  return text;
}

std::string Printer::atomic(const Atomic& a) {
  std::string text = fmt::format("atomic {} {}", to_string(a.op), region(a.element));
  if (a.value) text += ", " + expr(a.value, a.element.buffer->type);
  if (a.order != MemoryOrder::relaxed) text += fmt::format(" order {}", to_string(a.order));
  if (a.previous) text += " -> " + declared_type(a.previous);
  return text;
}

std::string Printer::all_reduce(const AllReduce& r) {
  const DType type = r.result.buffer->type;
  const std::string over = r.lanes > 0 ? fmt::format("lanes {}", r.lanes) : fmt::format("{}", fmt::join(r.axes, ", "));
  return fmt::format("all_reduce {} = {} ({}) if {} else {} over {}", region(r.result), to_string(r.op),
                     expr(r.value, type), expr(r.condition), expr(r.identity, type), over);
}

std::string Printer::shuffle(const Shuffle& s) {
  const std::string operands = fmt::format("{}, {}", expr(s.value), expr(s.lane));
  return fmt::format("shuffle {} ({}) over {} -> {}", to_string(s.op), operands, s.width, declared_type(s.result));
}

std::string Printer::print(const Print& p) {
  std::string text = "print " + quoted(p.message);
  if (!p.buffer.empty()) text += fmt::format(" {}[{}]", quoted(p.buffer), expr(p.index));
  if (p.value) text += " = " + expr(p.value);
  return p.thread.empty() ? text : text + " over " + join(p.thread);
}

void Printer::concurrent(const Concurrent& c) {
  line("concurrent {");
  ++depth_;
  for (const Concurrent::Role& role : c.roles) block(fmt::format("threads {}", role.threads), role.body);
  --depth_;
  line("}");
}

std::string Printer::barrier(const Barrier& b) {
  std::string text = fmt::format("on {} {}", region(b.barrier), to_string(b.op));
  if (b.operand) text += " " + expr(b.operand);
  if (b.peer) text += " into " + expr(b.peer);
  if (b.after_reads) text += " after_reads";
  return b.threads > 0 ? text + fmt::format(" threads {}", b.threads) : text;
}

std::string Printer::extern_call(const ExternCall& c) {
  std::string arguments;
  for (const auto& argument : c.arguments) {
    const auto* address = std::get_if<Region>(&argument);
    arguments += (arguments.empty() ? "" : ", ") + (address ? "&" + region(*address) : expr(std::get<Expr>(argument)));
  }
  std::string text = fmt::format("extern {}({})", quoted(c.function), arguments);
  return c.result ? text + " -> " + declared_type(c.result) : text;
}

void Printer::stmt(const Stmt& s) {
  if (!s) return line("<null>");
  std::visit(
      overloaded{
          [&](const For& n) { loop(n); },
          [&](const While& n) { block("while " + expr(n.condition), n.body); },
          [&](const If& n) { branch(n); },
          [&](const Let& n) {
            const std::string value = expr(n.value, n.var->type);
            line(fmt::format("let {} = {}", declared_type(n.var), value));
          },
          [&](const Store& n) {
            line(fmt::format("{}[{}] = {}", name(n.buffer), join(n.indices), expr(n.value, n.buffer->type)));
          },
          [&](const Break&) { line("break"); },
          [&](const Continue&) { line("continue"); },
          [&](const Sync& n) {
            const std::string some = n.threads == 0 ? "" : fmt::format(" on {} of {}", n.barrier, n.threads);
            line(fmt::format("sync{}{}", n.scope == SyncScope::block ? "" : fmt::format(" {}", to_string(n.scope)),
                             some));
          },
          [&](const Block&) { block("", s); },
          [&](const Copy& n) { line(copy(n)); },
          [&](const Fill& n) {
            line(fmt::format("fill {} = {}", region(n.destination), expr(n.value, n.destination.buffer->type)));
          },
          [&](const Gemm& n) { line(gemm(n)); },
          [&](const Reduce& n) {
            line(fmt::format("reduce {} {} -> {} axis {}{}{}", to_string(n.op), region(n.source), region(n.destination),
                             n.axis, n.clear ? "" : " accumulate", n.nan_propagate ? " nan_propagate" : ""));
          },
          [&](const Scan& n) {
            line(fmt::format("scan {} {} -> {} axis {}{}", to_string(n.op), region(n.source), region(n.destination),
                             n.axis, n.reverse ? " reverse" : ""));
          },
          [&](const Atomic& n) { line(atomic(n)); },
          [&](const AllReduce& n) { line(all_reduce(n)); },
          [&](const Shuffle& n) { line(shuffle(n)); },
          [&](const LoadMatrix& n) {
            line(fmt::format("load_matrix {} {} -> {}{}", n.count, region(n.row), region(n.registers),
                             n.transposed ? " transposed" : ""));
          },
          [&](const Mma& n) { line(fmt::format("mma {}, {} -> {}", region(n.a), region(n.b), region(n.c))); },
          [&](const Barrier& n) { line(barrier(n)); },
          [&](const Async& n) {
            line(n.count == 0 ? fmt::format("async {}", to_string(n.op))
                              : fmt::format("async {} {}", to_string(n.op), n.count));
          },
          [&](const Roles& n) { block(fmt::format("roles {}", fmt::join(n.groups, ", ")), n.body); },
          [&](const Concurrent& n) { concurrent(n); },
          [&](const Check& n) {
            line(fmt::format("{} {}, {}", n.assumed ? "assume" : "check", expr(n.condition), quoted(n.message)));
          },
          [&](const Print& n) { line(print(n)); },
          [&](const ExternCall& n) { line(extern_call(n)); },
      },
      s->node);
}

void Printer::parameters(const Program& p) {
  constexpr size_t kWidth = 100;
  std::vector<std::string> texts;
  size_t width = 0;
  for (const auto& parameter : p.parameters) {
    texts.push_back(std::visit(
        overloaded{[&](const Buffer& b) { return declared_buffer(b); }, [&](const Var& v) { return declared_type(v); }},
        parameter));
    width += texts.back().size() + 2;
  }
  if (out.size() + width <= kWidth) {
    out += fmt::format("({}) {{\n", fmt::join(texts, ", "));
  } else {
    out += fmt::format("(\n    {}) {{\n", fmt::join(texts, ",\n    "));
  }
}

// `layout i, j in tile at i * 64 + j`, `layout i, who in sums replicas 2 by i + who * 16`
std::string Printer::layout(const RequestedLayout& request) {
  const size_t mark = names_.mark();
  std::string text = fmt::format("layout {} in {}", loop_vars(request.vars), name(request.buffer));
  if (request.replicas != 1) text += fmt::format(" replicas {}", request.replicas);
  if (request.thread) text += " by " + expr(request.thread);
  if (request.position) text += " at " + expr(request.position);
  names_.leave(mark);
  return text;
}

void Printer::kernel(const Kernel& k) {
  const std::string grid = join(k.grid);
  const size_t mark = names_.mark();
  const std::string blocks = loop_vars(k.block_vars);
  const std::string threads = k.thread_vars.empty() ? "" : loop_vars(k.thread_vars) + " in ";
  const std::string cluster = k.cluster.empty() ? "" : " cluster " + join(k.cluster);
  const std::string order =
      k.order.panel == 0 ? "" : fmt::format(" panels {}{}", k.order.panel, k.order.of_columns ? " of_columns" : "");
  line(fmt::format("kernel {} in {} threads {}{}{}{}{} {{", blocks, grid, threads, join(k.threads), cluster, order,
                   k.fast_math ? " fast_math" : ""));
  ++depth_;
  for (const Buffer& b : k.allocations) line(fmt::format("{} {}", to_string(b->scope), declared_buffer(b)));
  for (const RequestedLayout& request : k.layouts) line(layout(request));
  --depth_;
  body(k.body);
  line("}");
  names_.leave(mark);
}

void Printer::program(const Program& p) {
  out += "program " + as_identifier(p.name);
  std::string symbols;
  for (const Var& v : p.symbols) symbols += (symbols.empty() ? "" : ", ") + declared_type(v);
  if (!symbols.empty()) out += fmt::format("<{}>", symbols);
  parameters(p);
  ++depth_;
  for (const std::string& source : p.sources) line("foreign " + quoted(source));
  for (const Buffer& b : p.workspaces) line("workspace " + declared_buffer(b));
  for (const Kernel& k : p.kernels) kernel(k);
  --depth_;
  out += "}\n";
}

}  // namespace

std::string to_text(const Program& program) {
  Printer printer;
  printer.program(program);
  return std::move(printer.out);
}

std::string to_text(const Expr& expr) { return Printer().expr(expr); }

std::string to_text(const Stmt& stmt) {
  Printer printer;
  printer.stmt(stmt);
  return std::move(printer.out);
}

}  // namespace tilepilot::ir
