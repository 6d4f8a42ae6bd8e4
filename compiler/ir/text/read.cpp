#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text/expr_reader.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::ir {
namespace {

class Reader : public ExprReader {
 public:
  using ExprReader::ExprReader;

  Result<Program> program();

 private:
  Status symbols(Program& p);
  Status parameter(Program& p);
  Result<Buffer> buffer_of(const Token& name, DType type, Scope scope);  // at its `[`
  Result<Buffer> declared_buffer(Scope scope);
  Result<Kernel> kernel();
  Status allocations(Kernel& k);
  Result<RequestedLayout> layout();  // after `layout`

  // Statements; the readers of nodes start after their keyword.
  Result<Stmt> block();
  Result<std::vector<Stmt>> statements();  // up to `}`, which is taken
  Result<Stmt> statement();
  Result<StmtNode::Node> node();
  Result<StmtNode::Node> loop(LoopKind kind);
  Result<StmtNode::Node> while_loop();
  Result<StmtNode::Node> branch();
  Result<StmtNode::Node> let();
  Result<StmtNode::Node> store();
  Result<StmtNode::Node> copy();
  Result<StmtNode::Node> fill();
  Result<StmtNode::Node> gemm();
  Result<StmtNode::Node> reduce();
  Result<StmtNode::Node> scan();
  Result<StmtNode::Node> atomic();
  Result<StmtNode::Node> all_reduce();
  Result<StmtNode::Node> sync();
  Result<StmtNode::Node> shuffle();
  Result<StmtNode::Node> load_matrix();
  Result<StmtNode::Node> mma();
  Result<StmtNode::Node> barrier();
  Result<StmtNode::Node> concurrent();
  Result<StmtNode::Node> check();
  Result<StmtNode::Node> assume();
  Result<StmtNode::Node> print();
  Result<StmtNode::Node> async();
  Result<StmtNode::Node> roles();
  Result<StmtNode::Node> extern_call();
  Result<std::string> string();

  template <class Enum>
  std::optional<Enum> accept_one(Enum last) {
    for (int k = 0; k <= int(last); ++k) {
      if (accept(to_string(Enum(k)))) return Enum(k);
    }
    return std::nullopt;
  }
};

Result<Program> Reader::program() {
  const size_t first = position();
  Program p;
  TRY(expect("program"));
  if (peek().kind != TokenKind::word) return wrong("the program's name");
  p.name = std::string(take().text);
  if (accept("<")) TRY(symbols(p));
  TRY(expect("("));
  while (!accept(")")) {
    if (!p.parameters.empty()) TRY(expect(","));
    TRY(parameter(p));
  }
  TRY(expect("{"));
  while (accept("foreign")) p.sources.push_back(TRY(string()));
  while (accept("workspace")) p.workspaces.push_back(TRY(declared_buffer(Scope::global)));
  while (!accept("}")) p.kernels.push_back(TRY(kernel()));
  p.span = since(first);
  if (peek().kind != TokenKind::end) return wrong("the end of the text");
  return p;
}

Status Reader::symbols(Program& p) {
  do {
    const Token name = TRY(new_name());
    TRY(expect(":"));
    const DType type = TRY(dtype());
    p.symbols.push_back(make_var(std::string(name.text), type));
    TRY(declare(name, p.symbols.back()));
  } while (accept(","));
  return expect(">");
}

Status Reader::parameter(Program& p) {
  const Token name = TRY(new_name());
  TRY(expect(":"));
  const DType type = TRY(dtype());
  if (peek().is("[")) {
    const Buffer buffer = TRY(buffer_of(name, type, Scope::global));
    p.parameters.emplace_back(buffer);
    return declare(name, buffer);
  }
  const Var var = make_var(std::string(name.text), type);
  p.parameters.emplace_back(var);
  return declare(name, var);
}

Result<Buffer> Reader::buffer_of(const Token& name, DType type, Scope scope) {
  BufferData data{std::string(name.text), type, scope, {}, {}, name.span};
  TRY(expect("["));
  data.shape = TRY(exprs_until("]"));
  if (accept("strides")) {
    TRY(expect("["));
    data.strides = TRY(exprs_until("]"));
  }
  if (accept("aligned")) data.alignment = TRY(integer());
  if (accept("row_aligned")) data.row_alignment = TRY(integer());
  data.few_elements = accept("few_elements");
  data.reducer = accept("reducer");
  if (accept("view")) data.base = TRY(buffer());
  if (accept("address")) data.address = TRY(buffer());
  if (accept("arrivals")) {
    TRY(expect("["));
    do { data.arrivals.push_back(TRY(integer())); } while (accept(","));
    TRY(expect("]"));
  }
  return std::make_shared<BufferData>(std::move(data));
}

Result<Kernel> Reader::kernel() {
  const size_t first = position();
  Kernel k;
  TRY(expect("kernel"));
  const NewVars fresh = TRY(new_vars());
  k.block_vars = fresh.vars;
  k.grid = TRY(exprs());
  TRY(expect("threads"));
  NewVars of_threads;
  if (peek().kind == TokenKind::word) of_threads = TRY(new_vars());
  k.thread_vars = of_threads.vars;
  k.threads.clear();
  do { k.threads.push_back(TRY(integer())); } while (accept(","));
  if (accept("cluster")) do {
      k.cluster.push_back(TRY(integer()));
    } while (accept(","));
  if (accept("panels")) {
    k.order.panel = TRY(integer());
    k.order.of_columns = accept("of_columns");
  }
  k.fast_math = accept("fast_math");
  const size_t body_at = position();
  TRY(expect("{"));
  enter();
  TRY(declare_all(fresh));
  TRY(declare_all(of_threads));
  TRY(allocations(k));
  while (accept("layout")) k.layouts.push_back(TRY(layout()));
  auto body = TRY(statements());
  leave();
  k.body = make_stmt(Block{std::move(body)}, since(body_at));
  k.span = since(first);
  return k;
}

Status Reader::allocations(Kernel& k) {
  while (const auto scope = accept_one(Scope::barrier)) k.allocations.push_back(TRY(declared_buffer(*scope)));
  return {};
}

Result<RequestedLayout> Reader::layout() {
  const size_t first = position();
  RequestedLayout request;
  const NewVars fresh = TRY(new_vars());
  request.vars = fresh.vars;
  request.buffer = TRY(buffer());
  enter();
  TRY(declare_all(fresh));
  if (accept("replicas")) request.replicas = TRY(integer());
  if (accept("by")) request.thread = TRY(expr());
  if (accept("at")) request.position = TRY(expr());
  leave();
  request.span = since(first);
  return request;
}

Result<Buffer> Reader::declared_buffer(Scope scope) {
  const Token name = TRY(new_name());
  TRY(expect(":"));
  const DType type = TRY(dtype());
  const Buffer buffer = TRY(buffer_of(name, type, scope));
  TRY(declare(name, buffer));
  return buffer;
}

// statements ----------------------------------------------------------------------------------------------------------

Result<std::vector<Stmt>> Reader::statements() {
  std::vector<Stmt> result;
  while (!accept("}")) result.push_back(TRY(statement()));
  return result;
}

Result<Stmt> Reader::block() {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return too_deep();
  const size_t first = position();
  TRY(expect("{"));
  enter();
  auto body = TRY(statements());
  leave();
  return make_stmt(Block{std::move(body)}, since(first));
}

Result<Stmt> Reader::statement() {
  if (peek().is("{")) return block();
  const size_t first = position();
  auto read = TRY(node());
  return std::make_shared<StmtNode>(StmtNode{std::move(read), since(first)});
}

Result<StmtNode::Node> Reader::node() {
  struct Keyword {
    std::string_view word;
    Result<StmtNode::Node> (Reader::*read)();
  };
  static constexpr Keyword kKeywords[] = {
      {"while", &Reader::while_loop}, {"if", &Reader::branch},
      {"let", &Reader::let},          {"copy", &Reader::copy},
      {"fill", &Reader::fill},        {"gemm", &Reader::gemm},
      {"reduce", &Reader::reduce},    {"scan", &Reader::scan},
      {"atomic", &Reader::atomic},    {"all_reduce", &Reader::all_reduce},
      {"on", &Reader::barrier},       {"async", &Reader::async},
      {"roles", &Reader::roles},      {"extern", &Reader::extern_call},
      {"shuffle", &Reader::shuffle},  {"concurrent", &Reader::concurrent},
      {"check", &Reader::check},      {"assume", &Reader::assume},
      {"print", &Reader::print},      {"load_matrix", &Reader::load_matrix},
      {"mma", &Reader::mma},
  };
  for (const Keyword& keyword : kKeywords) {
    if (accept(keyword.word)) return (this->*keyword.read)();
  }
  if (const auto kind = accept_one(LoopKind::vectorized)) return loop(*kind);
  if (accept("break")) return StmtNode::Node(Break{});
  if (accept("continue")) return StmtNode::Node(Continue{});
  if (accept("sync")) return sync();
  if (peek().kind == TokenKind::word && !is_reserved_word(peek().text)) return store();
  return wrong("a statement");
}

Result<StmtNode::Node> Reader::loop(LoopKind kind) {
  const NewVars fresh = TRY(new_vars());
  For f{kind, fresh.vars, {}, 0, nullptr};
  f.extents = TRY(exprs());
  if (accept("stages")) f.num_stages = int(TRY(integer()));
  enter();
  TRY(declare_all(fresh));
  f.body = TRY(block());
  leave();
  return StmtNode::Node(std::move(f));
}

Result<StmtNode::Node> Reader::while_loop() {
  const Expr condition = TRY(expr());
  const Stmt body = TRY(block());
  return StmtNode::Node(While{condition, body});
}

Result<StmtNode::Node> Reader::branch() {
  If i;
  i.condition = TRY(expr());
  i.then = TRY(block());
  if (accept("else")) i.otherwise = TRY(block());
  return StmtNode::Node(std::move(i));
}

Result<StmtNode::Node> Reader::let() {
  const Token name = TRY(new_name());
  TRY(expect(":"));
  const DType type = TRY(dtype());
  const Var var = make_var(std::string(name.text), type);
  TRY(expect("="));
  const Expr value = TRY(expr(var->type));
  TRY(declare(name, var));
  return StmtNode::Node(Let{var, value});
}

Result<StmtNode::Node> Reader::store() {
  const Buffer target = TRY(buffer());
  TRY(expect("["));
  auto indices = TRY(exprs_until("]"));
  TRY(expect("="));
  const Expr value = TRY(expr(target->type));
  return StmtNode::Node(Store{target, std::move(indices), value});
}

Result<StmtNode::Node> Reader::copy() {
  Copy c;
  c.source = TRY(region());
  TRY(expect("->"));
  c.destination = TRY(region());
  c.options.disable_tma = accept("disable_tma");
  if (accept("coalesced_width")) c.options.coalesced_width = int(TRY(integer()));
  if (accept("mode")) {
    const auto mode = accept_one(CopyMode::bulk_store);
    if (!mode) return wrong("how the copy completes");
    c.mode = *mode;
  }
  if (accept("counting")) c.barrier = TRY(region());
  if (accept("into")) c.multicast = TRY(integer());
  if (accept("into_block")) c.peer = TRY(expr());
  c.in_line = accept("in_line");
  return StmtNode::Node(std::move(c));
}

Result<StmtNode::Node> Reader::fill() {
  Fill f;
  f.destination = TRY(region());
  TRY(expect("="));
  f.value = TRY(expr(f.destination.buffer->type));
  return StmtNode::Node(std::move(f));
}

Result<StmtNode::Node> Reader::gemm() {
  Gemm g;
  g.c = TRY(region());
  g.clear_accumulator = accept("=");
  if (!g.clear_accumulator) TRY(expect("+="));
  g.a = TRY(region());
  g.transpose_a = accept(".T");
  TRY(expect("@"));
  g.b = TRY(region());
  g.transpose_b = accept(".T");
  if (accept("policy")) {
    const auto policy = accept_one(WarpPolicy::full_col);
    if (!policy) return wrong("a warp policy");
    g.policy = *policy;
  }
  if (accept("precision")) {
    const auto precision = accept_one(Precision::fp32);
    if (!precision) return wrong("a precision");
    g.precision = *precision;
  }
  g.asynchronous = accept("asynchronous");
  return StmtNode::Node(std::move(g));
}

Result<StmtNode::Node> Reader::reduce() {
  const auto op = accept_one(ReduceOp::bit_xor);
  if (!op) return wrong("a reduction");
  Reduce r;
  r.op = *op;
  r.source = TRY(region());
  TRY(expect("->"));
  r.destination = TRY(region());
  TRY(expect("axis"));
  r.axis = int(TRY(integer()));
  r.clear = !accept("accumulate");
  r.nan_propagate = accept("nan_propagate");
  return StmtNode::Node(std::move(r));
}

Result<StmtNode::Node> Reader::scan() {
  const auto op = accept_one(ScanOp::max);
  if (!op) return wrong("a scan");
  Scan s;
  s.op = *op;
  s.source = TRY(region());
  TRY(expect("->"));
  s.destination = TRY(region());
  TRY(expect("axis"));
  s.axis = int(TRY(integer()));
  s.reverse = accept("reverse");
  return StmtNode::Node(std::move(s));
}

Result<StmtNode::Node> Reader::atomic() {
  const auto op = accept_one(AtomicOp::bit_or);
  if (!op) return wrong("an atomic operation");
  Atomic a;
  a.op = *op;
  a.element = TRY(region());
  if (accept(",")) a.value = TRY(expr(a.element.buffer->type));
  if (accept("order")) {
    const auto order = accept_one(MemoryOrder::seq_cst);
    if (!order) return wrong("a memory order");
    a.order = *order;
  }
  if (!accept("->")) return StmtNode::Node(std::move(a));
  const Token name = TRY(new_name());
  TRY(expect(":"));
  const DType type = TRY(dtype());
  a.previous = make_var(std::string(name.text), type);
  TRY(declare(name, a.previous));
  return StmtNode::Node(std::move(a));
}

Result<StmtNode::Node> Reader::all_reduce() {
  static constexpr BinaryOp kCombiners[] = {BinaryOp::add,     BinaryOp::mul,    BinaryOp::min,    BinaryOp::max,
                                            BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};
  AllReduce r;
  r.result = TRY(region());
  TRY(expect("="));
  const auto* op = std::find_if(std::begin(kCombiners), std::end(kCombiners),
                                [&](BinaryOp combiner) { return accept(to_string(combiner)); });
  if (op == std::end(kCombiners)) return wrong("how values are combined");
  r.op = *op;
  const DType type = r.result.buffer->type;
  r.value = TRY(expr(type));
  TRY(expect("if"));
  r.condition = TRY(expr());
  TRY(expect("else"));
  r.identity = TRY(expr(type));
  TRY(expect("over"));
  if (accept("lanes")) {
    r.lanes = TRY(integer());
    return StmtNode::Node(std::move(r));
  }
  do { r.axes.push_back(int(TRY(integer()))); } while (accept(","));
  return StmtNode::Node(std::move(r));
}

Result<StmtNode::Node> Reader::shuffle() {
  Shuffle s;
  const auto op = accept_one(ShuffleOp::down);
  if (!op) return wrong("which lane is meant");
  s.op = *op;
  TRY(expect("("));
  s.value = TRY(expr());
  TRY(expect(","));
  s.lane = TRY(expr());
  TRY(expect(")"));
  TRY(expect("over"));
  s.width = TRY(integer());
  TRY(expect("->"));
  const Token name = TRY(new_name());
  TRY(expect(":"));
  const DType type = TRY(dtype());
  s.result = make_var(std::string(name.text), type);
  TRY(declare(name, s.result));
  return StmtNode::Node(std::move(s));
}

Result<StmtNode::Node> Reader::load_matrix() {
  LoadMatrix n{TRY(integer())};
  n.row = TRY(region());
  TRY(expect("->"));
  n.registers = TRY(region());
  n.transposed = accept("transposed");
  return StmtNode::Node(std::move(n));
}

Result<StmtNode::Node> Reader::mma() {
  Mma n{TRY(region()), {}, {}};
  TRY(expect(","));
  n.b = TRY(region());
  TRY(expect("->"));
  n.c = TRY(region());
  return StmtNode::Node(std::move(n));
}

Result<StmtNode::Node> Reader::sync() {
  Sync s;
  if (accept("grid")) s.scope = SyncScope::grid;
  if (accept("warp")) s.scope = SyncScope::warp;
  if (accept("cluster")) s.scope = SyncScope::cluster;
  if (accept("cluster_wait")) s.scope = SyncScope::cluster_wait;
  if (!peek().is("on") || peek(1).kind != TokenKind::integer) return StmtNode::Node(s);
  TRY(expect("on"));
  s.barrier = TRY(integer());
  TRY(expect("of"));
  s.threads = TRY(integer());
  return StmtNode::Node(s);
}

Result<StmtNode::Node> Reader::barrier() {
  Barrier b{BarrierOp::arrive, TRY(region()), nullptr};
  // `arrive_expect` and `arrive_copied` are words of their own.
  const auto op = accept_one(BarrierOp::arrive_copied);
  if (!op) return wrong("an operation on a barrier");
  b.op = *op;
  if (b.op != BarrierOp::arrive && b.op != BarrierOp::arrive_copied) b.operand = TRY(expr());
  if (accept("into")) b.peer = TRY(expr());
  b.after_reads = accept("after_reads");
  if (accept("threads")) b.threads = TRY(integer());
  return StmtNode::Node(std::move(b));
}

Result<StmtNode::Node> Reader::async() {
  const auto op = accept_one(AsyncOp::arrive_cluster_relaxed);
  if (!op) return wrong("what asynchronous operations are told");
  Async a{*op};
  if (peek().kind == TokenKind::integer) a.count = TRY(integer());
  return StmtNode::Node(a);
}

Result<StmtNode::Node> Reader::roles() {
  Roles r;
  do { r.groups.push_back(int(TRY(integer()))); } while (accept(","));
  r.body = TRY(block());
  return StmtNode::Node(std::move(r));
}

Result<StmtNode::Node> Reader::concurrent() {
  Concurrent c;
  TRY(expect("{"));
  while (!accept("}")) {
    TRY(expect("threads"));
    const int64_t threads = TRY(integer());
    c.roles.push_back({threads, TRY(block())});
  }
  return StmtNode::Node(std::move(c));
}

Result<StmtNode::Node> Reader::check() {
  Check c;
  c.condition = TRY(expr());
  TRY(expect(","));
  c.message = TRY(string());
  return StmtNode::Node(std::move(c));
}

Result<StmtNode::Node> Reader::assume() {
  StmtNode::Node node = TRY(check());
  std::get<Check>(node).assumed = true;
  return node;
}

Result<StmtNode::Node> Reader::print() {
  Print p;
  p.message = TRY(string());
  if (peek().kind == TokenKind::string) {
    p.buffer = TRY(string());
    TRY(expect("["));
    p.index = TRY(expr());
    TRY(expect("]"));
  }
  if (accept("=")) p.value = TRY(expr());
  if (accept("over")) p.thread = TRY(exprs());
  return StmtNode::Node(std::move(p));
}

Result<std::string> Reader::string() {
  if (peek().kind != TokenKind::string) return wrong("a text in quotes");
  const std::string_view text = take().text;
  std::string result;
  for (size_t k = 1; k + 1 < text.size(); ++k) {
    if (text[k] != '\\') {
      result += text[k];
      continue;
    }
    ++k;
    result += text[k] == 'n' ? '\n' : text[k];
  }
  return result;
}

Result<StmtNode::Node> Reader::extern_call() {
  ExternCall c;
  c.function = TRY(string());
  TRY(expect("("));
  while (!accept(")")) {
    if (!c.arguments.empty()) TRY(expect(","));
    if (accept("&")) {
      c.arguments.emplace_back(TRY(region()));
    } else {
      c.arguments.emplace_back(TRY(expr()));
    }
  }
  if (!accept("->")) return StmtNode::Node(std::move(c));
  const Token name = TRY(new_name());
  TRY(expect(":"));
  const DType type = TRY(dtype());
  c.result = make_var(std::string(name.text), type);
  TRY(declare(name, c.result));
  return StmtNode::Node(std::move(c));
}

Result<Program> read(const SourceMap& sources, int32_t file) { return Reader(TRY(lex(sources, file))).program(); }

}  // namespace

std::optional<Program> read_text(const SourceMap& sources, int32_t file, DiagnosticList& diagnostics) {
  auto program = read(sources, file);
  if (program.ok()) return *std::move(program);
  diagnostics.add(program.error());
  return std::nullopt;
}

}  // namespace tilepilot::ir
