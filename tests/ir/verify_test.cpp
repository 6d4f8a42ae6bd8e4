// One program for each rule that breaks it and no other. Most are texts; what the text form cannot say is built by
// hand.
#include "compiler/ir/verify/verify.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/text/text.h"
#include "tests/ir/random_program.h"
#include "tests/rounds.h"

namespace tilepilot::ir {
namespace {

Program read(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto program = read_text(sources, sources.add("test.ir", text), diagnostics);
  EXPECT_TRUE(program) << text << "\n" << (program ? "" : diagnostics.items().front().message);
  return program ? *std::move(program) : Program{};
}

// A program with the statements between its tiles' declarations and its end.
Program with_body(const std::string& body) {
  return read(
      "program f<m: int32>(x: float32[m, 16], h: float16[8, 16], n: int32) { kernel bx, by in 4, m threads 128 {\n"
      "shared s: float32[8, 16] fragment t: float32[8, 16] fragment r: float32[8] local i: int32[4]\n"
      "shared a: float16[8, 16] shared b: float16[16, 8] fragment c: float32[8, 8] local e: float32[2, 3, 4]\n" +
      body + "\n}}");
}

std::string messages(const DiagnosticList& diagnostics) {
  std::string result;
  for (const Diagnostic& d : diagnostics.items()) result += d.message + "\n";
  return result;
}

std::set<std::string>& covered() {
  static std::set<std::string> rules{};
  return rules;
}

// The program breaks exactly this rule.
void expect_broken(const std::string& rule, const Program& program) {
  covered().insert(rule);
  DiagnosticList diagnostics;
  EXPECT_FALSE(verify(program, diagnostics)) << "rule " << rule << "\n" << to_text(program);
  for (const Diagnostic& d : diagnostics.items()) {
    EXPECT_EQ(d.kind, DiagnosticKind::ir_invalid);
    EXPECT_NE(d.message.find("(rule `" + rule + "`"), std::string::npos) << "rule " << rule << ": " << d.message;
  }
}

void expect_valid(const Program& program) {
  DiagnosticList diagnostics;
  EXPECT_TRUE(verify(program, diagnostics)) << messages(diagnostics) << to_text(program);
}

struct Case {
  const char* rule;
  const char* body;
};

constexpr Case kBodies[] = {
    {"index_count", "t[0] = 1.0"},
    {"index_count", "t[0, 0] = x[0]"},
    {"region_rank", "copy s[0 : 8] -> r"},
    {"index_type", "t[0, 0.5] = 1.0"},
    {"index_type", "t[0, 0] = x[0, 1.0]"},
    {"index_type", "fill t[0, 0.0 : +4] = 0.0"},
    {"operands_agree", "t[0, 0] = x[0, 0] + h[0, 0]"},
    {"operands_agree", "let v: bool = n < 3i64"},
    {"operator_type", "t[0, 0] = x[0, 0] // 2.0"},
    {"operator_type", "let v: int32 = n / 2"},
    {"operator_type", "let v: bool = true < false"},
    {"operator_type", "let v: float32 = ~x[0, 0]"},
    {"operator_type", "let v: bool = -true"},
    {"math_argument", "let v: int32 = exp(n)"},
    {"math_argument", "let v: bool = abs(true)"},
    {"math_argument", "let v: float32 = popcount(x[0, 0])"},
    {"math_argument", "let v: int8 = leading_zeros(int8(n))"},
    {"operator_type", "let v: float16 = nextafter(h[0, 0], h[0, 0])"},
    {"operator_type", "let v: int32 = atan2(n, n)"},
    {"literal", "let v: int8 = 128"},
    {"literal", "let v: uint32 = -1"},
    {"condition", "if n { i[0] = 1 }"},
    {"condition", "while 1 { }"},
    {"condition", "t[0, 0] = select(n, 1.0, 2.0)"},
    {"sides_agree", "t[0, 0] = select(n < 1, x[0, 0], h[0, 0])"},
    {"same_bits", "let v: int16 = reinterpret(n, int16)"},
    {"stored_type", "t[0, 0] = h[0, 0]"},
    {"stored_type", "fill t = 1"},
    {"let_type", "let v: int64 = n"},
    {"region_rank", "fill t[0 : 8] = 0.0"},
    {"region_extent", "fill t[0, 4 : 4] = 0.0"},
    {"region_extent", "copy x[0 : +-3, 0 : +-4] -> t[0 : +-3, 0 : +-4]"},
    {"region_inside", "fill t[0 : 8, 1 : 17] = 0.0"},
    {"region_inside", "fill t[-1, 0] = 0.0"},
    {"region_inside", "fill t[0, n : +17] = 0.0"},
    {"copy_extents", "copy x[0 : 4, 0 : 8] -> t[0 : 8, 0 : 4]"},
    {"copy_extents", "copy x[0 : 4, 0 : 8] -> t[0 : 4, 0 : 9]"},
    {"gemm_shapes", "gemm c += a @ a"},
    {"gemm_shapes", "gemm c += a[0 : 8, 0 : 8] @ b"},
    {"gemm_shapes", "gemm c[0 : 4, 0 : 8] = a @ b"},
    {"gemm_shapes", "gemm e[0 : 2, 0 : 3, 0 : 4] += e @ e"},
    {"gemm_types", "gemm c += a @ s.T"},
    {"gemm_types", "gemm c[0, 0] += s[0, 0] @ a[0, 0]"},
    {"gemm_scopes", "gemm c += h @ a.T"},
    {"reduce_axis", "reduce sum t -> r axis 2"},
    {"reduce_axis", "reduce sum t -> r axis -1"},
    {"reduce_shapes", "reduce sum t -> r axis 0"},
    {"reduce_types", "reduce max t[0, 0 : 4] -> i[0] axis 1"},
    {"reduce_types", "reduce bit_or t[0, 0 : 4] -> r[0] axis 1"},
    {"scan_shapes", "scan sum t -> t axis 2"},
    {"scan_shapes", "scan sum t[0, 0 : 4] -> t[0, 0 : 5] axis 0"},
    {"scan_types", "scan max c -> h[0 : 8, 0 : 8] axis 0"},
    {"element_regions", "atomic add t[0, 0 : 4], 1.0"},
    {"atomic_types", "atomic add t[0, 0], 1.0 -> old: int32"},
    {"atomic_types", "atomic bit_or t[0, 0], 1.0"},
    {"stored_type", "atomic add t[0, 0], 1"},
    {"complete", "atomic add t[0, 0]"},
    {"complete", "atomic load t[0, 0], 1.0"},
    {"all_reduce_threads", "all_reduce t[0, 0] = + 1.0 if true else 0.0 over 0"},
    {"shuffle_types", "shuffle up (1.0, 1) over 12 -> v: float32"},
    {"shuffle_types", "shuffle up (1.0, 1.0) over 8 -> v: float32"},
    {"shuffle_types", "shuffle up (1.0, 1) over 8 -> v: int32"},
    {"matrix_loads", "load_matrix 3 t[0, 0 : +4] -> t[0, 0 : +3]"},
    {"matrix_loads", "load_matrix 4 t[0, 0 : +4] -> t[0, 0 : +3]"},
    {"matrix_loads", "load_matrix 4 t[0, 0 : +4] -> t[0, 0 : +4] transposed"},
    {"mma_operands", "mma t[0, 0 : +4], t[0, 4 : +4] -> t[0, 8 : +4]"},
    {"mma_operands", "mma t[0, 0 : +4], t[0, 4 : +2] -> t[0, 8 : +2]"},
    {"condition_checked", "check 1, \"\""},
    {"complete", "print \"\" \"t\"[0]"},
    {"concurrent_roles", "concurrent { }"},
    {"concurrent_roles", "concurrent { threads 0 { } }"},
    {"concurrent_roles", "serial i0 in 2 { concurrent { threads 1 { } } }"},
    {"copy_block", "copy x[0 : 8, 0 : 16] -> t into_block 1"},
    {"copy_block", "copy t -> t into_block 1.0"},
    {"copy_block", "copy t -> t mode group into_block 1"},
    {"barrier_place", "on t[0, 0] arrive"},
    {"barrier_place", "copy x[0 : 8, 0 : 16] -> t mode bulk_load"},
    {"barrier_place", "copy x[0 : 8, 0 : 16] -> t counting i[0]"},
    {"async_count", "async fence 1"},
    {"async_count", "async commit_copies 2"},
    {"role_groups", "roles 1, 0 { }"},
    {"role_groups", "roles 1, 1 { }"},
    {"role_groups", "parallel i0 in 2 { roles 0 { } }"},
    {"loop_vars", "serial i0, j0 in 2, 3 { }"},
    {"loop_vars", "parallel i0, j0 in 2 { }"},
    {"loop_extent", "serial i0: int64 in 2i32 { }"},
    {"loop_extent", "serial i0: float32 in 2.0 { }"},
    {"stages", "serial i0 in 2 stages 2 { }"},
    {"stages", "pipelined i0 in 2 stages -1 { }"},
    {"jump", "break"},
    {"tile_operator_place", "parallel i0 in 2 { sync }"},
    {"tile_operator_place", "parallel i0 in 2 { shuffle up (1.0, 1) over 8 -> v: float32 }"},
    {"jump", "parallel i0 in 2 { continue }"},
    {"jump", "serial j0 in 2 { parallel i0 in 2 { break } }"},
    {"tile_operator_place", "parallel i0 in 2 { fill t = 0.0 }"},
    {"tile_operator_place", "vectorized i0 in 2 { serial j0 in 2 { copy x[0 : 8, 0 : 16] -> t } }"},
};

void break_bodies() {
  for (const Case& c : kBodies) { expect_broken(c.rule, with_body(c.body)); }
}

TEST(VerifyTest, ValidBodies) {
  for (const char* body : {
           "copy x[by * 8 : +8, 0 : 16] -> t",
           "copy x[-3 : +8, bx * 100 : +16] -> t",
           "copy x[0 : 8, 0] -> r",
           "gemm c += a @ b",
           "gemm c = a @ a.T",
           "reduce sum t -> r axis 1 accumulate",
           "reduce max t -> s[0, 0 : 16] axis 0",
           "serial k in n { if k > 3 { break } else { continue } }",
           "while i[0] < 3 { i[0] = i[0] + 1 break }",
           "{ let v: int32 = n } { let v: int32 = n + 1 i[v] = v }",
           "let v: bool = h[0, 0] < 1.0 and isnan(x[0, 0]) == true",
       }) {
    expect_valid(with_body(body));
  }
}

struct Head {
  const char* rule;
  const char* text;
};

constexpr Head kPrograms[] = {
    {"threads", "program f() { kernel b in 1 threads 0 {} }"},
    {"threads", "program f() { kernel b in 1 threads 1025 {} }"},
    {"threads", "program f() { kernel b in 1 threads 64, 32 {} }"},
    {"threads", "program f() { kernel b in 1 threads 1, 1, 1, 1 {} }"},
    {"cluster", "program f() { kernel b in 2 threads 1 cluster 2, 1 {} }"},
    {"cluster", "program f() { kernel b in 2 threads 1 cluster 0 {} }"},
    {"thread_vars", "program f() { kernel b in 1 threads t, u in 4 {} }"},
    {"thread_vars", "program f() { kernel b in 1 threads t: float32 in 4 {} }"},
    {"grid", "program f() { kernel b, c in 1 threads 1 {} }"},
    {"grid", "program f() { kernel a, b, c, d in 1, 1, 1, 1 threads 1 {} }"},
    {"grid", "program f() { kernel b in 1.0 threads 1 {} }"},
    {"allocation", "program f() { kernel b in 1 threads 1 { global t: int32[3] } }"},
    {"allocation", "program f<m: int32>(x: int32[m]) { kernel b in 1 threads 1 { shared t: int32[m] } }"},
    {"allocation", "program f() { kernel b in 1 threads 1 { shared t: int32[0] } }"},
    {"allocation", "program f() { kernel b in 1 threads 1 { shared t: int32[4] strides [2] } }"},
    {"all_reduce_axes",
     "program f() { kernel b in 1 threads t in 4 { local r: int32[1] all_reduce r[0] = + 1 if true else 0 over 0, 0 } "
     "}"},
    {"all_reduce_axes",
     "program f() { kernel b in 1 threads t in 4 { local r: int32[1] all_reduce r[0] = + 1 if 1 else 0 over 0 } }"},
    {"arrivals", "program f() { kernel b in 1 threads 1 { barrier m: uint64[2] arrivals [1] } }"},
    {"arrivals", "program f() { kernel b in 1 threads 1 { barrier m: int32[1] arrivals [1] } }"},
    {"arrivals", "program f() { kernel b in 1 threads 1 { barrier m: uint64[1] arrivals [0] } }"},
    {"arrivals", "program f() { kernel b in 1 threads 1 { shared m: uint64[1] arrivals [1] } }"},
    {"barrier_place", "program f() { kernel b in 1 threads 1 { barrier m: uint64[1] arrivals [1] fill m = 0 } }"},
    {"barrier_place", "program f() { kernel b in 1 threads 1 { barrier m: uint64[1] arrivals [1] m[0] = 0 } }"},
    {"barrier_operand",
     "program f() { kernel b in 1 threads 1 { barrier m: uint64[1] arrivals [1] on m[0] wait 1.0 } }"},
    {"views", "program f() { kernel b in 1 threads 1 { shared t: int32[4] shared u: int8[15] view t } }"},
    {"views", "program f() { kernel b in 1 threads 1 { shared t: int32[4] fragment u: int32[4] view t } }"},
    {"views",
     "program f() { kernel b in 1 threads 1 { shared t: int32[4] shared u: int32[4] view t shared v: int32[4] view u } "
     "}"},
    {"nibbles", "program f(x: int4[4, 3]) {}"},
    {"nibbles", "program f(x: float4_e2m1fn[4, 4] strides [4, 2]) {}"},
    {"nibbles", "program f(x: uint4[4, 4] strides [5, 1]) {}"},
    {"nibbles", "program f() { workspace w: int4[3] }"},
    {"nibbles", "program f() { kernel b in 1 threads 1 { shared t: int4[2, 3] shared u: int8[3] view t } }"},
    {"whole_bytes", "program f() { kernel b in 1 threads 1 { local t: int4[2] atomic add t[0], 1i4 } }"},
    {"whole_bytes", "program f() { kernel b in 1 threads 1 { local t: int4[2] atomic load t[0] -> v: int4 } }"},
    {"whole_bytes",
     "program f() { kernel b in 1 threads 1 { shared t: int4[2, 4] shared u: int4[2] reduce sum t -> u axis 1 } }"},
    {"addresses", "program f() { kernel b in 1 threads 1 { shared p: int64[1] global x: int32[4] address p } }"},
    {"addresses", "program f() { kernel b in 1 threads 1 { local p: int32[1] global x: int32[4] address p } }"},
    {"addresses", "program f() { kernel b in 1 threads 1 { local p: int64[1] shared x: int32[4] address p } }"},
    {"addresses", "program f() { kernel b in 1 threads 1 { local p: int64[1] global x: int4[4] address p } }"},
    {"parameters", "program f() { workspace w: int32[4] strides [2] }"},
    {"parameter_shape", "program f(n: int32, x: int32[n]) {}"},
    {"parameter_shape", "program f(x: int32[2.0]) {}"},
    {"parameter_shape", "program f(x: int32[2, 3] strides [1]) {}"},
    {"symbol_bound", "program f<m: int32>() {}"},
    {"symbol_bound", "program f<m: int32>(x: int32[m * m]) {}"},
};

void break_programs() {
  for (const Head& head : kPrograms) expect_broken(head.rule, read(head.text));
}

TEST(VerifyTest, ValidPrograms) {
  expect_valid(read("program f<m: int32>(x: int32[m]) { workspace w: int32[m * 2] kernel b in 1 threads 1 {} }"));
  expect_valid(read(
      "program f(x: int32[4]) { kernel b in 1 threads 1 { global y: int8[2, 8] view x shared t: int32[4] shared u: "
      "float16[8] view t } }"));
  expect_valid(read(
      "program f(x: int32[4]) { kernel b in 1 threads t, u in 4, 2 { local r: int32[1] all_reduce r[0] = max x[t] if "
      "t < 3 else 0 over 0, 1 } }"));
  expect_valid(read("program f() {}"));
  expect_valid(read("program f() { kernel b in 1 threads t, u: int64 in 4, 2 { sync } }"));
  expect_valid(read("program f<m: int32, k: int64>(x: int32[m * 2 + 1, 3], y: int32[m] strides [k]) {}"));
  expect_valid(read("program f() { kernel a, b, c in 1, 2, 3 threads 32, 32, 1 {} }"));
}

Stmt block(std::vector<Stmt> body) { return make_stmt(Block{std::move(body)}, {}); }

Program with_statement(Stmt s) {
  Program p = with_body("");
  p.kernels[0].body = block({std::move(s)});
  return p;
}

void break_what_the_text_form_cannot_say() {
  const Var v = make_var("v", kInt32);
  const auto let = [&] { return make_stmt(Let{v, int_imm(1)}, {}); };
  const Stmt use = make_stmt(Let{make_var("w", kInt32), var_ref(v)}, {});
  expect_broken("var_in_scope", with_statement(use));
  expect_broken("var_in_scope", with_statement(block({block({let()}), use})));
  expect_broken("defined_once", with_statement(block({let(), let()})));
  expect_broken("defined_once",
                with_statement(make_stmt(For{LoopKind::parallel, {v, v}, {int_imm(1), int_imm(1)}, 0, block({})}, {})));
  expect_valid(with_statement(block({block({let()}), block({let(), use})})));

  const Buffer stranger = std::make_shared<BufferData>(BufferData{"q", kInt32, Scope::local, {int_imm(1)}, {}, {}});
  expect_broken("buffer_declared", with_statement(make_stmt(Store{stranger, {int_imm(0)}, int_imm(1)}, {})));
  expect_broken("buffer_declared", with_statement(make_stmt(Fill{{stranger, {int_imm(0)}, {1}, {}}, int_imm(1)}, {})));
  expect_broken("buffer_declared", with_statement(make_stmt(Let{v, load(stranger, {int_imm(0)})}, {})));

  const Expr lie = std::make_shared<ExprNode>(ExprNode{Binary{BinaryOp::lt, int_imm(1), int_imm(2)}, kInt32, {}});
  expect_broken("result_type", with_statement(make_stmt(Let{v, lie}, {})));
  const Expr odd = std::make_shared<ExprNode>(ExprNode{FloatImm{1.0}, kInt32, {}});
  expect_broken("literal", with_statement(make_stmt(Let{v, odd}, {})));

  expect_broken("complete", with_statement(nullptr));
  expect_broken("complete", with_statement(make_stmt(Let{v, nullptr}, {})));
  expect_broken("complete", with_statement(make_stmt(If{bool_imm(true), nullptr, nullptr}, {})));
  expect_broken("complete",
                with_statement(make_stmt(Let{v, unary(UnaryOp::neg, binary(BinaryOp::add, int_imm(1), nullptr))}, {})));

  Program p = with_body("");
  p.kernels[0].order.panel = -1;
  expect_broken("block_order", p);
  for (const char* layout : {"layout i, j in s at i * n", "layout i, j, k in s at i * 16", "layout i, j in s",
                             "layout i, j in s at i layout i, j in s at j", "layout i, j in t by j at int32(r[i])"})
    expect_broken("layouts", with_body(layout));
  p = with_body("");
  p.kernels[0].body = let();
  expect_broken("body", p);
  p = with_body("");
  p.kernels.push_back(p.kernels[0]);
  expect_broken("allocated_once", p);
  p = with_body("");
  p.parameters.push_back(p.parameters[0]);
  expect_broken("parameters", p);
  p = with_body("");
  p.parameters.push_back(p.kernels[0].allocations[0]);
  expect_broken("parameters", p);
}

TEST(VerifyTest, fail_EveryRuleIsBroken) {
  break_bodies();
  break_programs();
  break_what_the_text_form_cannot_say();
  for (const VerifierRule& rule : verifier_rules()) {
    EXPECT_EQ(covered().count(std::string(rule.name)), 1u) << "no test breaks rule " << rule.name;
  }
}

TEST(VerifyTest, RandomProgramsAreValid) {
  for (int seed = 0; seed < rounds(500); ++seed) {
    const Program program = testing::RandomProgram(seed, {5, 3, seed % 2 == 0}).program();
    DiagnosticList diagnostics;
    ASSERT_TRUE(verify(program, diagnostics)) << "seed " << seed << "\n" << messages(diagnostics) << to_text(program);
  }
}

TEST(VerifyTest, EveryViolationIsReportedWithItsSpan) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const std::string text = "program f(x: float32[4], y: int32[4]) { kernel b in 1 threads 1 { x[0] = 1 y[0, 1] = 2 } }";
  const auto program = read_text(sources, sources.add("test.ir", text), diagnostics);
  ASSERT_TRUE(program);
  EXPECT_FALSE(verify(*program, diagnostics));
  ASSERT_EQ(diagnostics.items().size(), 2u) << messages(diagnostics);
  EXPECT_EQ(sources.text(diagnostics.items()[0].span), "x[0] = 1");
  EXPECT_EQ(sources.text(diagnostics.items()[1].span), "y[0, 1] = 2");
}

}  // namespace
}  // namespace tilepilot::ir
