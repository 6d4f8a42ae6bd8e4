#include <gtest/gtest.h>

#include "compiler/ir/text/text.h"

namespace tilepilot::ir {
namespace {

Expr var(const char* name, DType type = kInt32) { return var_ref(make_var(name, type)); }

TEST(PrintTest, PrecedenceAndAssociativity) {
  const Expr a = var("a"), b = var("b"), c = var("c");
  const auto op = [](BinaryOp o, Expr l, Expr r) { return binary(o, std::move(l), std::move(r)); };
  EXPECT_EQ(to_text(op(BinaryOp::mul, op(BinaryOp::add, a, b), c)), "(a + b) * c");
  EXPECT_EQ(to_text(op(BinaryOp::sub, op(BinaryOp::sub, a, b), c)), "a - b - c");
  EXPECT_EQ(to_text(op(BinaryOp::sub, a, op(BinaryOp::sub, b, c))), "a - (b - c)");
  EXPECT_EQ(to_text(op(BinaryOp::floor_div, op(BinaryOp::mul, a, b), c)), "a * b // c");
  EXPECT_EQ(to_text(op(BinaryOp::min, a, op(BinaryOp::max, b, c))), "min(a, max(b, c))");
  EXPECT_EQ(to_text(op(BinaryOp::logical_and, op(BinaryOp::lt, a, b), op(BinaryOp::ne, b, c))), "a < b and b != c");
  EXPECT_EQ(to_text(op(BinaryOp::lt, op(BinaryOp::lt, a, b), op(BinaryOp::lt, b, c))), "(a < b) < (b < c)");
  EXPECT_EQ(to_text(unary(UnaryOp::logical_not, op(BinaryOp::lt, a, b))), "not a < b");
  EXPECT_EQ(to_text(unary(UnaryOp::neg, op(BinaryOp::add, a, b))), "-(a + b)");
  EXPECT_EQ(to_text(op(BinaryOp::mul, unary(UnaryOp::neg, a), b)), "-a * b");
}

TEST(PrintTest, LiteralsCarryATypeOnlyWhereItIsNotClear) {
  EXPECT_EQ(to_text(int_imm(5)), "5");
  EXPECT_EQ(to_text(int_imm(5, kInt64)), "5i64");
  EXPECT_EQ(to_text(float_imm(2.0)), "2.0");
  EXPECT_EQ(to_text(float_imm(0.1, kFloat16)), "0.1f16");
  EXPECT_EQ(to_text(float_imm(-1.0 / 0.0)), "-inf");
  EXPECT_EQ(to_text(float_imm(1.0 / 0.0, kBFloat16)), "inf_bf16");
  EXPECT_EQ(to_text(bool_imm(true)), "true");
  const Expr x = var("x", kFloat16);
  EXPECT_EQ(to_text(binary(BinaryOp::add, x, float_imm(1.0, kFloat16))), "x + 1.0");
  EXPECT_EQ(to_text(binary(BinaryOp::add, x, float_imm(1.0))), "x + 1.0f32");
  EXPECT_EQ(to_text(unary(UnaryOp::neg, int_imm(5))), "-(5)");
}

TEST(PrintTest, NamesAreUniqueAndAvoidWords) {
  const Expr i = var("i"), other = var("i"), word = var("max");
  EXPECT_EQ(to_text(binary(BinaryOp::add, i, other)), "i + i_1");
  EXPECT_EQ(to_text(word), "max_1");
}

TEST(PrintTest, ASmallProgram) {
  const Var m = make_var("m", kInt32), bx = make_var("bx", kInt32);
  const Var i = make_var("i", kInt32), j = make_var("j", kInt32);
  const auto buffer = [](const char* name, Scope scope, std::vector<Expr> shape, DType type = kFloat32) {
    return std::make_shared<BufferData>(BufferData{name, type, scope, std::move(shape), {}, {}});
  };
  const Buffer x = buffer("x", Scope::global, {var_ref(m), int_imm(256)});
  const Buffer y = buffer("y", Scope::global, {var_ref(m), int_imm(256)}, kFloat16);
  const Buffer tile = buffer("tile", Scope::fragment, {int_imm(8), int_imm(256)});
  const Expr row = binary(BinaryOp::mul, var_ref(bx), int_imm(8));
  const Region whole{tile, {int_imm(0), int_imm(0)}, {8, 256}, {}};
  const auto global = [&](const Buffer& b) { return Region{b, {row, int_imm(0)}, {8, 256}, {}}; };
  const std::vector<Expr> at{var_ref(i), var_ref(j)};
  const Expr value = binary(BinaryOp::max, load(tile, at), float_imm(0));
  const Stmt relu = make_stmt(Block{{make_stmt(Store{tile, at, value}, {})}}, {});
  const Stmt loop = make_stmt(For{LoopKind::parallel, {i, j}, {int_imm(8), int_imm(256)}, 0, relu}, {});
  const Stmt body = make_stmt(
      Block{{make_stmt(Copy{global(x), whole, {}}, {}), loop, make_stmt(Copy{whole, global(y), {}}, {})}}, {});
  const Expr blocks = binary(BinaryOp::floor_div, binary(BinaryOp::add, var_ref(m), int_imm(7)), int_imm(8));
  const Program program{
      "relu", {x, y}, {m}, {}, {}, {Kernel{{bx}, {blocks}, {128}, {}, {}, false, {}, {tile}, {}, {}, body, {}}}, {}};
  EXPECT_EQ(to_text(program), R"(program relu<m: int32>(x: float32[m, 256], y: float16[m, 256]) {
  kernel bx in (m + 7) // 8 threads 128 {
    fragment tile: float32[8, 256]
    copy x[bx * 8 : +8, 0 : 256] -> tile
    parallel i, j in 8, 256 {
      tile[i, j] = max(tile[i, j], 0.0)
    }
    copy tile -> y[bx * 8 : +8, 0 : 256]
  }
}
)");
}

}  // namespace
}  // namespace tilepilot::ir
