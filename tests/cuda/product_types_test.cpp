// Products of every type that tensor cores multiply: by warps on both targets, and by warpgroups with A in registers.
// The text calls the instruction, and the emulator computes with it what the interpreter does.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/interpreted.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;

struct ProductOfType {
  std::string a, b, sum, instruction;
};

// A of `rows` rows, stored along k as B is.
std::string text_of_types(const ProductOfType& p, int64_t rows, bool held) {
  return fmt::format(R"(program product(a: {a}[{m}, 64], b: {b}[32, 64], c: {sum}[{m}, 32]) {{
  kernel bx in 1 threads 128 {{
    shared a_tile: {a}[{m}, 32]
    shared b_tile: {b}[32, 32]
    {scope} a_own: {a}[{m}, 32]
    fragment sums: {sum}[{m}, 32]
    fill sums = {zero}
    serial k in 2 {{
      copy a[0 : {m}, k * 32 : +32] -> a_tile
      copy b[0 : 32, k * 32 : +32] -> b_tile
      {copy}
      gemm sums += {own} @ b_tile.T
    }}
    copy sums -> c
  }}
}})",
                     fmt::arg("a", p.a), fmt::arg("b", p.b), fmt::arg("sum", p.sum), fmt::arg("m", rows),
                     fmt::arg("zero", p.sum == "int32" ? "0" : "0.0"), fmt::arg("scope", held ? "fragment" : "shared"),
                     fmt::arg("copy", held ? "copy a_tile -> a_own" : ""), fmt::arg("own", held ? "a_own" : "a_tile"));
}

void expect_products(const std::vector<ProductOfType>& products, Architecture architecture, int64_t rows, bool held) {
  EmulatedBatch batch(architecture);
  std::vector<ir::Program> programs;
  for (const ProductOfType& product : products) {
    programs.push_back(parse(text_of_types(product, rows, held)));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << product.a << ": " << added.error().message;
    const std::string& source = batch.source(*added);
    EXPECT_THAT(source.substr(source.find("extern \"C\"")), HasSubstr(product.instruction + "(")) << product.a;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) {
    const ir::testing::RandomArguments expected(programs[k], 1), actual(programs[k], 1);
    if (products[k].sum == "float16") {  // else rounded after each product, or at the end
      make_whole(expected);
      make_whole(actual);
    }
    interpret::Options options;
    options.functions = &prelude_functions();
    const auto fault = interpret::run(programs[k], expected.values(), options);
    ASSERT_FALSE(fault) << fault->message;
    EXPECT_EQ(batch.run(k, to_launch(actual.values())), "") << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << batch.source(k);
  }
}

const std::vector<ProductOfType>& products_by_warps() {
  static const std::vector<ProductOfType> products{
      {"float16", "float16", "float32", "mma_m16n8k16"},   {"float16", "float16", "float16", "mma_m16n8k16"},
      {"bfloat16", "bfloat16", "float32", "mma_m16n8k16"}, {"tfloat32", "tfloat32", "float32", "mma_m16n8k8"},
      {"int8", "int8", "int32", "mma_m16n8k32"},           {"uint8", "uint8", "int32", "mma_m16n8k32"},
      {"float64", "float64", "float64", "mma_m8n8k4"},
  };
  return products;
}

TEST(ProductTypes, ByWarps) {
  expect_products(products_by_warps(), Architecture::sm_80, 32, false);
  std::vector<ProductOfType> newer = products_by_warps();
  newer.push_back({"float8_e4m3fn", "float8_e4m3fn", "float32", "mma_m16n8k32"});
  newer.push_back({"float8_e5m2", "float8_e5m2", "float32", "mma_m16n8k32"});
  expect_products(newer, Architecture::sm_90a, 32, false);
}

TEST(ProductTypes, ByWarpsWithAInRegisters) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a})
    expect_products(products_by_warps(), architecture, 32, true);
}

const std::vector<std::array<std::string, 4>>& products_by_groups() {
  static const std::vector<std::array<std::string, 4>> products{
      {"float16", "float16", "float32", "wgmma_m64n32k16_f32_f16_f16"},
      {"float16", "float16", "float16", "wgmma_m64n32k16_f16_f16_f16"},
      {"bfloat16", "bfloat16", "float32", "wgmma_m64n32k16_f32_bf16_bf16"},
      {"tfloat32", "tfloat32", "float32", "wgmma_m64n32k8_f32_tf32_tf32"},
      {"float8_e4m3fn", "float8_e4m3fn", "float32", "wgmma_m64n32k32_f32_e4m3_e4m3"},
      {"float8_e5m2", "float8_e5m2", "float32", "wgmma_m64n32k32_f32_e5m2_e5m2"},
      {"int8", "int8", "int32", "wgmma_m64n32k32_s32_s8_s8"},
      {"uint8", "uint8", "int32", "wgmma_m64n32k32_s32_u8_u8"},
  };
  return products;
}

TEST(ProductTypes, ByWarpGroups) {
  for (const bool held : {false, true}) {
    std::vector<ProductOfType> products;
    for (const auto& [a, b, sum, instruction] : products_by_groups())
      products.push_back({a, b, sum, instruction + (held ? "_ra" : "")});
    expect_products(products, Architecture::sm_90a, 64, held);
  }
}

}  // namespace
}  // namespace tilepilot::testing
