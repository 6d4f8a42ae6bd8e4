#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "compiler/ir/visit.h"
#include "tests/ir/random_program.h"
#include "tests/rounds.h"

namespace tilepilot::ir {
namespace {

std::optional<Program> read(const std::string& text, DiagnosticList& diagnostics) {
  SourceMap sources;
  return read_text(sources, sources.add("test.ir", text), diagnostics);
}

std::string first_message(const DiagnosticList& diagnostics) {
  return diagnostics.items().empty() ? "" : diagnostics.items().front().message;
}

// What random programs leave out: their meaning is more than what each thread and block computes.
constexpr const char* kHardware = R"(program g(x: float16[64, 64] aligned 2, y: float16[64, 64] row_aligned 16) {
  foreign "__device__ void f(half* x) { x[0] = \"a\\b\"[0]; }\n"
  workspace w: float32[4, 64] few_elements
  kernel bx in 4 threads tx in 256 cluster 2 panels 8 of_columns fast_math {
    shared a: float16[64, 64]
    shared bits: uint16[4096] view a
    fragment c: float32[64, 64]
    local held: float16[16]
    local sums: float32[4]
    barrier full: uint64[2] arrivals [128, 1]
    layout i, j in a at i * 64 + (j ^ i % 8 * 8)
    layout i, j, who in c replicas 2 by i % 64 * 2 + who at j
    on full[1] expect 8192
    copy x -> a mode bulk_load counting full[1]
    copy x -> a mode bulk_load counting full[1] into 3
    copy x -> a mode bulk_load counting full[1] in_line
    on full[1] arrive
    on full[1] arrive into bx % 2
    on full[1] wait bx % 2
    on full[0] arrive_expect 16
    on full[0] arrive_copied
    on full[0] arrive threads 64
    copy x -> a mode group
    async commit_copies
    async wait_copies 1
    async fence
    roles 0, 1 {
      gemm c += a @ a policy full_row precision fp32 asynchronous
      async wait_gemms
      async raise_registers 240
      async lower_registers 24
    }
    load_matrix 4 a[tx % 16, 0 : 8] -> held[0 : 8]
    load_matrix 2 a[tx % 16, 8 : 16] -> held[8 : 12] transposed
    mma held[0 : 8], held[8 : 12] -> sums
    copy a -> y mode bulk_store
    async commit_stores
    async wait_stores 3
    sync
    sync on 3 of 128
    sync grid
    sync warp
    sync cluster
    async arrive_cluster
    async arrive_cluster_relaxed
    sync cluster_wait
    copy a -> a into_block 1 - bx % 2
    copy a -> a mode bulk_load counting full[1] into_block 1
    extern "f"(&a[0, 8], tx) -> r: int32
    extern "ns::g"()
    atomic add w[bx, 0], 1.0 order release -> before: float32
    all_reduce w[bx, 1] = max (before) if tx < r else 0.0 over 0
    all_reduce w[bx, 2] = + (before) if true else 0.0 over lanes 32
    shuffle xor (before, tx) over 16 -> other: float32
    check other < 2.0, "too \"large\""
    print "here"
    print "v" = other over tx
    print "e" "a"[tx] = a[0, 0] over tx
    scan max c -> c axis 1 reverse
  }
  kernel bx in 1 threads 96 {
    concurrent {
      threads 64 {
        sync
      }
      threads 32 {
        sync
      }
    }
  }
}
)";

TEST(RoundTripTest, HardwareProgramsAreReadAsWritten) {
  DiagnosticList diagnostics;
  const auto original = read(kHardware, diagnostics);
  ASSERT_TRUE(original) << first_message(diagnostics);
  EXPECT_TRUE(verify(*original, diagnostics)) << first_message(diagnostics);
  EXPECT_EQ(to_text(*original), kHardware);
  const std::pair<std::string, std::string> changes[] = {{"asynchronous", ""},
                                                         {"wait_copies 1", "wait_copies"},
                                                         {" transposed", ""},
                                                         {"load_matrix 2 a[tx % 16, 8", "load_matrix 2 a[tx % 16, 16"},
                                                         {"mma held[0 : 8]", "mma held[4 : 12]"},
                                                         {"panels 8", "panels 4"},
                                                         {" of_columns", ""},
                                                         {" fast_math", ""},
                                                         {"in a at i * 64", "in a at i * 32"},
                                                         {"in c replicas 2", "in c replicas 4"},
                                                         {" % 64 * 2 + who at j", " % 64 * 2 + who"},
                                                         {"by i % 64 * 2", "by i % 32 * 2"},
                                                         {"commit_stores", "commit_copies"},
                                                         {"[128, 1]", "[128, 2]"},
                                                         {"mode group", ""},
                                                         {"counting full[1]", "counting full[0]"},
                                                         {"wait bx % 2", "wait bx"},
                                                         {"on full[1] arrive\n", "on full[0] arrive\n"},
                                                         {"roles 0, 1", "roles 1"},
                                                         {"sync grid", "sync"},
                                                         {"on 3 of 128", "on 4 of 128"},
                                                         {"on 3 of 128", "on 3 of 64"},
                                                         {"\"f\"(&a[0, 8], tx)", "\"f\"(&a[0, 9], tx)"},
                                                         {"\"f\"(&a[0, 8], tx)", "\"h\"(&a[0, 8], tx)"},
                                                         {"foreign", "foreign \"\" foreign"},
                                                         {"view a", ""},
                                                         {"order release", ""},
                                                         {"else 0.0", "else 1.0"},
                                                         {"over 0", "over 1"},
                                                         {"over lanes 32", "over lanes 16"},
                                                         {"shuffle xor", "shuffle up"},
                                                         {"over 16", "over 8"},
                                                         {"too", "to"},
                                                         {"print \"here\"", "print \"there\""},
                                                         {"= other over tx", "= other"},
                                                         {"\"a\"[tx]", "\"a\"[0]"},
                                                         {"arrive threads 64", "arrive"},
                                                         {"sync warp", "sync"},
                                                         {"threads 64 {", "threads 63 {"},
                                                         {"reverse", ""}};
  for (const auto& [from, to] : changes) {
    std::string text = kHardware;
    text.replace(text.find(from), from.size(), to);
    const auto changed = read(text, diagnostics);
    ASSERT_TRUE(changed) << text << first_message(diagnostics);
    EXPECT_FALSE(structurally_equal(*original, *changed)) << from << " -> " << to;
  }
}

constexpr const char* kAddresses = R"(program by_address(table: int64[4]) {
  kernel bx in 4 threads 32 {
    local p: int64[1]
    global x: float32[8, 2] strides [4, 1] address p
    p[0] = table[bx]
    parallel i in 8 {
      x[i, 0] = ldexp(x[i, 1], 2.0)
    }
  }
}
)";

TEST(RoundTripTest, AddressesAreReadAsWritten) {
  DiagnosticList diagnostics;
  const auto original = read(kAddresses, diagnostics);
  ASSERT_TRUE(original) << first_message(diagnostics);
  EXPECT_TRUE(verify(*original, diagnostics)) << first_message(diagnostics);
  EXPECT_EQ(to_text(*original), kAddresses);
  std::string text = kAddresses;
  text.replace(text.find("    global"), 0, "    local q: int64[1]\n");
  const auto first = read(text, diagnostics);
  text.replace(text.find("address p"), 9, "address q");
  const auto second = read(text, diagnostics);
  ASSERT_TRUE(first && second) << first_message(diagnostics);
  EXPECT_FALSE(structurally_equal(*first, *second));
}

TEST(RoundTripTest, RandomPrograms) {
  std::set<size_t> stmt_kinds, expr_kinds;
  for (int seed = 0; seed < rounds(1000); ++seed) {
    const testing::RandomOptions options{5, 3, seed % 2 == 0};
    const Program program = testing::RandomProgram(seed, options).program();
    for (const Kernel& kernel : program.kernels) {
      walk(
          kernel.body, [&](const Stmt& s) { stmt_kinds.insert(s->node.index()); },
          [&](const Expr& e) { expr_kinds.insert(e->node.index()); });
    }
    const std::string text = to_text(program);
    DiagnosticList diagnostics;
    const auto again = read(text, diagnostics);
    ASSERT_TRUE(again) << "seed " << seed << ": " << first_message(diagnostics) << "\n" << text;
    ASSERT_TRUE(structurally_equal(program, *again)) << "seed " << seed << "\n" << text << to_text(*again);
    ASSERT_EQ(text, to_text(*again));
  }
  DiagnosticList diagnostics;
  const auto hardware = read(kHardware, diagnostics);
  ASSERT_TRUE(hardware) << first_message(diagnostics);
  for (const Kernel& kernel : hardware->kernels) {
    walk(
        kernel.body, [&](const Stmt& s) { stmt_kinds.insert(s->node.index()); }, [](const Expr&) {});
  }
  EXPECT_EQ(stmt_kinds.size(), std::variant_size_v<StmtNode::Node>);
  EXPECT_EQ(expr_kinds.size(), std::variant_size_v<ExprNode::Node>);
}

TEST(RoundTripTest, DifferentProgramsDiffer) {
  for (uint32_t seed = 0; seed < uint32_t(rounds(200)); ++seed) {
    const Program a = testing::RandomProgram(seed).program(), b = testing::RandomProgram(seed + 1000).program();
    EXPECT_TRUE(structurally_equal(a, a));
    EXPECT_FALSE(structurally_equal(a, b));
  }
}

constexpr const char* kSmall = R"(program f(x: float32[8, 8], y: float16[8, 8]) {
  kernel bx in 4 threads 128 {
    fragment t: float32[8, 8]
    copy x -> t
    reduce max t -> t[0 : 8, 0] axis 1
    serial i in 8 {
      t[i, 0] = t[i, 0] + 1.0
    }
    copy t -> y coalesced_width 4
  }
}
)";

TEST(RoundTripTest, EachSmallChangeOfTheTextMakesAnotherProgram) {
  DiagnosticList diagnostics;
  const auto original = read(kSmall, diagnostics);
  ASSERT_TRUE(original) << first_message(diagnostics);
  EXPECT_EQ(to_text(*original), kSmall);
  const std::pair<std::string, std::string> changes[] = {{"float16", "bfloat16"},
                                                         {"fragment", "shared"},
                                                         {"serial", "unrolled"},
                                                         {"threads 128", "threads 64"},
                                                         {"threads 128", "threads tx in 128"},
                                                         {"copy x -> t", "sync copy x -> t"},
                                                         {"reduce max", "reduce min"},
                                                         {"axis 1", "axis 0"},
                                                         {"+ 1.0", "- 1.0"},
                                                         {"+ 1.0", "+ 2.0"},
                                                         {"in 4", "in 5"},
                                                         {"t[0 : 8, 0]", "t[0 : 8, 1]"},
                                                         {"copy x", "copy y"},
                                                         {"t[i, 0] = t[i, 0]", "t[i, 0] = t[0, i]"},
                                                         {"coalesced_width 4", "disable_tma"},
                                                         {"axis 1", "axis 1 accumulate"},
                                                         {"y: float16[8, 8]", "y: float16[8, 8] strides [8, 1]"}};
  for (const auto& [from, to] : changes) {
    std::string text = kSmall;
    text.replace(text.find(from), from.size(), to);
    const auto changed = read(text, diagnostics);
    ASSERT_TRUE(changed) << text << first_message(diagnostics);
    EXPECT_FALSE(structurally_equal(*original, *changed)) << from << " -> " << to;
  }
}

TEST(RoundTripTest, NamesDoNotMatter) {
  DiagnosticList diagnostics;
  std::string renamed = kSmall;
  for (size_t at; (at = renamed.find("t[")) != std::string::npos;) renamed.replace(at, 2, "other[");
  for (size_t at; (at = renamed.find("fragment t:")) != std::string::npos;) renamed.replace(at, 11, "fragment other:");
  for (size_t at; (at = renamed.find(" t ")) != std::string::npos;) renamed.replace(at, 3, " other ");
  renamed.replace(renamed.find("x -> t\n"), 6, "x -> other");
  const auto a = read(kSmall, diagnostics), b = read(renamed, diagnostics);
  ASSERT_TRUE(a && b) << renamed << first_message(diagnostics);
  EXPECT_TRUE(structurally_equal(*a, *b));
}

TEST(RoundTripTest, ABlockOfOneStatementStandsForIt) {
  DiagnosticList diagnostics;
  const auto original = read(kSmall, diagnostics);
  ASSERT_TRUE(original);
  Program unwrapped = *original;
  Block body = std::get<Block>(unwrapped.kernels[0].body->node);
  For loop = std::get<For>(body.body[2]->node);
  loop.body = std::get<Block>(loop.body->node).body.front();
  body.body[2] = make_stmt(loop, {});
  unwrapped.kernels[0].body = make_stmt(body, {});
  EXPECT_EQ(to_text(unwrapped), kSmall);
  EXPECT_TRUE(structurally_equal(*original, unwrapped));
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(RoundTripTest, fail_BadTextsAreRefusedWhereTheyAreWrong) {
  const BadText cases[] = {
      {"", "expected `program`, found the end of the text"},
      {"program f(", "expected a new name, found the end of the text"},
      {"program f() { kernel b in 1 threads 1 { x[0] = 1 } }", "expected the name of a buffer, found `x`"},
      {"program f(x: float33[1]) {}", "expected an element type, found `float33`"},
      {"program f(x: int32[1], x: int32[1]) {}", "`x` is already declared here"},
      {"program f(x: int32[1]) { kernel b in 1 threads 1 { x[0] = y } }", "`y` is not declared"},
      {"program f(x: int32[1]) { kernel b in 1 threads 1 { x[0] = 1 < 2 < 3 } }",
       "expected parentheses around a comparison, found `<`"},
      {"program f(x: int32[1]) { kernel b in 1 threads 1 { x[0] = 1q7 } }", "`1` has no type `q7`"},
      {"program f(x: int32[1]) { kernel b in 1 threads 1 { x[0] = 99999999999999999999 } }",
       "`99999999999999999999` does not fit 64 bits"},
      {"program f(max: int32[1]) {}", "expected a new name, found `max`"},
      {"program f() {} $", "a character that the IR's text form does not use"},
      {"program f() {} extra", "expected the end of the text, found `extra`"},
      {"program f<m: int32>(x: int32[m]) { kernel b in 1 threads 1 { fill x = 0 } }",
       "a buffer of symbolic shape needs its region written out"},
  };
  for (const BadText& bad : cases) {
    DiagnosticList diagnostics;
    EXPECT_FALSE(read(bad.text, diagnostics)) << bad.text;
    ASSERT_EQ(diagnostics.items().size(), 1u) << bad.text;
    EXPECT_EQ(diagnostics.items()[0].kind, DiagnosticKind::ir_syntax_error);
    EXPECT_EQ(first_message(diagnostics), bad.message);
  }
}

TEST(RoundTripTest, fail_DeepNestingIsRefused) {
  const std::string expr = std::string(100000, '(') + "1" + std::string(100000, ')');
  DiagnosticList diagnostics;
  EXPECT_FALSE(read("program f(x: int32[1]) { kernel b in 1 threads 1 { x[0] = " + expr + " } }", diagnostics));
  EXPECT_EQ(first_message(diagnostics), "nesting is too deep");
  DiagnosticList more;
  EXPECT_FALSE(read("program f() { kernel b in 1 threads 1 {" + std::string(100000, '{'), more));
  EXPECT_EQ(first_message(more), "nesting is too deep");
}

// Any cut of a valid text is an error, never a crash.
TEST(RoundTripTest, fail_EveryPrefixIsRefused) {
  const std::string text = kSmall;
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    DiagnosticList diagnostics;
    EXPECT_FALSE(read(text.substr(0, length), diagnostics));
    EXPECT_TRUE(diagnostics.has_errors());
  }
}

}  // namespace
}  // namespace tilepilot::ir
