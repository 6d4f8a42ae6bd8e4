// Whether iterations may name the same element: against all pairs of iterations, one by one. Which of a loop's updates
// that makes conflicts of.
#include "compiler/passes/iterations/iteration_conflicts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "compiler/ir/text/text.h"
#include "compiler/passes/algebra/static_index.h"

namespace tilepilot::ir {
namespace {

using passes::IterationSpace;

// The body of the kernel's only parallel loop stores to `a` at some indices.
struct Loop {
  Program program;
  const For* loop = nullptr;
  std::vector<Expr> indices;
};

Loop loop_of(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  Loop result;
  auto program = read_text(sources, sources.add("loop", text), diagnostics);
  EXPECT_TRUE(program.has_value()) << text;
  if (!program) return result;
  result.program = *program;
  walk(
      result.program.kernels[0].body,
      [&](const Stmt& stmt) {
        if (const auto* loop = as<For>(stmt); loop && loop->kind == LoopKind::parallel) result.loop = loop;
        const auto* store = as<Store>(stmt);
        if (store && store->buffer->name == "a") result.indices = store->indices;
      },
      [](const Expr&) {});
  return result;
}

bool conflicts(const std::string& extents, const std::string& index, const std::string& before = "") {
  const Loop made = loop_of(
      "program f(a: float32[4096], n: int32[64], m: int32) {\n  kernel bx in 4 threads 64 {\n"
      "    parallel i, j in " +
      extents + " {\n" + before + "a[" + index + "] = 1.0\n}\n}\n}");
  return made.loop != nullptr && IterationSpace(*made.loop).may_conflict(made.indices);
}

TEST(IterationConflicts, AreKnownFromTheIndex) {
  EXPECT_FALSE(conflicts("8, 16", "i * 16 + j"));
  EXPECT_FALSE(conflicts("8, 16", "bx * 128 + j * 8 + i + m"));
  EXPECT_FALSE(conflicts("8, 16", "4000 - i * 100 - j"));
  EXPECT_FALSE(conflicts("1, 16", "(bx * 16 + j + m) % 16"));
  EXPECT_FALSE(conflicts("8, 16", "i * 16 + (j ^ i)"));
  EXPECT_FALSE(conflicts("8, 16", "bx * 128 + (i * 16 + j) // 4 * 4 + j % 4"));
}

TEST(IterationConflicts, AreFound) {
  EXPECT_TRUE(conflicts("8, 16", "i * 15 + j"));
  EXPECT_TRUE(conflicts("1, 16", "j // 2"));
  EXPECT_TRUE(conflicts("1, 16", "bx * 8 + j // 2"));
  EXPECT_TRUE(conflicts("1, 16", "j % 15"));
  EXPECT_TRUE(conflicts("8, 16", "j"));
  EXPECT_TRUE(conflicts("8, 16", "0"));
  EXPECT_TRUE(conflicts("1, 16", "n[j]"));
  EXPECT_TRUE(conflicts("1, 16", "j + k", "let k: int32 = 15 - j\n"));
  EXPECT_TRUE(conflicts("1, 16", "j + k", "let k: int32 = n[j]\n"));
  EXPECT_TRUE(conflicts("1, m", "j % 64"));
  EXPECT_FALSE(conflicts("1, m", "j * 2 + bx"));
}

// Random indices over two variables, and one of a loop inside.
class RandomIndex {
 public:
  RandomIndex(uint32_t seed, std::vector<Var> vars) : random_(seed), vars_(std::move(vars)) {}

  Expr make(int depth) {
    const int kind = int(random_() % (depth > 0 ? 7 : 2));
    if (kind == 0) return int_imm(int64_t(random_() % 20) - 4);
    if (kind == 1) return var_ref(vars_[random_() % vars_.size()]);
    const Expr left = make(depth - 1);
    const Expr number = int_imm(1 + int64_t(random_() % 9));
    if (kind == 2) return binary(BinaryOp::floor_div, left, number);
    if (kind == 3) return binary(BinaryOp::floor_mod, left, number);
    if (kind == 4) return binary(BinaryOp::mul, left, number);
    return binary(kind == 5 ? BinaryOp::add : BinaryOp::sub, left, make(depth - 1));
  }

 private:
  std::mt19937 random_;
  std::vector<Var> vars_;
};

TEST(IterationConflicts, AgreeWithTryingAllIterations) {
  const Var i = make_var("i", kInt32), j = make_var("j", kInt32), k = make_var("k", kInt32),
            outer = make_var("o", kInt32);
  const Buffer a = std::make_shared<BufferData>(
      BufferData{"a", kFloat32, Scope::global, {int_imm(4096), int_imm(4096)}, {}, {}, nullptr});
  int missed = 0, apart = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const int64_t extents[] = {1 + int64_t(random() % 6), 1 + int64_t(random() % 6), 1 + int64_t(random() % 3)};
    RandomIndex index(seed, {i, j, k, outer});
    const std::vector<Expr> at{index.make(3), index.make(2)};
    const Stmt store = make_stmt(Store{a, at, float_imm(1)}, {});
    const Stmt inner = make_stmt(For{LoopKind::serial, {k}, {int_imm(extents[2])}, 0, store}, {});
    const For loop{LoopKind::parallel, {i, j}, {int_imm(extents[0]), int_imm(extents[1])}, 0, inner};
    std::vector<passes::StaticIndex> evaluators;
    for (const Expr& e : at) evaluators.push_back(*passes::StaticIndex::of(e, {i, j, k, outer}));
    bool conflict = false;
    for (const int64_t o : {0, 1, 5}) {
      std::map<std::vector<int64_t>, std::pair<int64_t, int64_t>> owners;
      for (int64_t x = 0; x < extents[0]; ++x)
        for (int64_t y = 0; y < extents[1]; ++y)
          for (int64_t z = 0; z < extents[2]; ++z) {
            const std::vector<int64_t> place{evaluators[0]({x, y, z, o}), evaluators[1]({x, y, z, o})};
            conflict |= owners.try_emplace(place, std::pair{x, y}).first->second != std::pair{x, y};
          }
    }
    const bool told = IterationSpace(loop).may_conflict(at);
    EXPECT_TRUE(told || !conflict) << seed << ": " << to_text(at[0]) << ", " << to_text(at[1]);
    missed += told && !conflict;
    apart += !told;
  }
  // Of those that do not conflict most are known not to.
  EXPECT_LT(missed, apart);
}

}  // namespace
}  // namespace tilepilot::ir
