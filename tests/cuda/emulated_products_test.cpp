// Matrix products of sm_90a: asynchronous products, pipelines that feed them, tails, transposed operands. The emulator
// computes what the interpreter does and finds nothing wrong; NVRTC has nothing to say against the code.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/targets/cuda/prelude.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/interpreted.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/ir/random_arguments.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct ProductCase {
  std::string name;
  int64_t m = 128, n = 128, k = 96;  // of the tensors
  int64_t tile_m = 128, tile_n = 64, tile_k = 32;
  int64_t threads = 128;
  int stages = 3;
  bool transpose_a = false, transpose_b = false;
  std::string type = "float16", sum = "float32";
  std::string body = "";  // of the loop, after the product
};

std::string program_text(const ProductCase& c) {
  const auto box = [](const std::string& rows, int64_t tall, const std::string& columns, int64_t wide, bool swaps) {
    return swaps ? fmt::format("[{} : +{}, {} : +{}]", columns, wide, rows, tall)
                 : fmt::format("[{} : +{}, {} : +{}]", rows, tall, columns, wide);
  };
  const auto shape = [](int64_t a, int64_t b, bool swaps) {
    return swaps ? fmt::format("[{}, {}]", b, a) : fmt::format("[{}, {}]", a, b);
  };
  const std::string loop = c.stages > 0
                               ? fmt::format("pipelined k in {} stages {}", (c.k + c.tile_k - 1) / c.tile_k, c.stages)
                               : fmt::format("serial k in {}", (c.k + c.tile_k - 1) / c.tile_k);
  return fmt::format(R"(program gemm(a: {type}{a}, b: {type}{b}, c: {sum}[{m}, {n}]) {{
  kernel bx, by in {gx}, {gy} threads {threads} {{
    shared a_tile: {type}{at}
    shared b_tile: {type}{bt}
    fragment c_tile: {sum}[{tm}, {tn}]
    fill c_tile = {zero}
    {loop} {{
      copy a{abox} -> a_tile
      copy b{bbox} -> b_tile
      gemm c_tile += {ax} @ {bx}
{body}
    }}
    copy c_tile -> c[by * {tm} : +{tm}, bx * {tn} : +{tn}]
  }}
}})",
                     fmt::arg("type", c.type), fmt::arg("sum", c.sum), fmt::arg("m", c.m), fmt::arg("n", c.n),
                     fmt::arg("a", shape(c.m, c.k, c.transpose_a)), fmt::arg("b", shape(c.k, c.n, c.transpose_b)),
                     fmt::arg("at", shape(c.tile_m, c.tile_k, c.transpose_a)),
                     fmt::arg("bt", shape(c.tile_k, c.tile_n, c.transpose_b)), fmt::arg("tm", c.tile_m),
                     fmt::arg("tn", c.tile_n), fmt::arg("gx", (c.n + c.tile_n - 1) / c.tile_n),
                     fmt::arg("gy", (c.m + c.tile_m - 1) / c.tile_m), fmt::arg("threads", c.threads),
                     fmt::arg("loop", loop), fmt::arg("zero", c.sum == "int32" ? "0" : "0.0"), fmt::arg("body", c.body),
                     fmt::arg("abox", box(fmt::format("by * {}", c.tile_m), c.tile_m, fmt::format("k * {}", c.tile_k),
                                          c.tile_k, c.transpose_a)),
                     fmt::arg("bbox", box(fmt::format("k * {}", c.tile_k), c.tile_k, fmt::format("bx * {}", c.tile_n),
                                          c.tile_n, c.transpose_b)),
                     fmt::arg("ax", c.transpose_a ? "a_tile.T" : "a_tile"),
                     fmt::arg("bx", c.transpose_b ? "b_tile.T" : "b_tile"));
}

const std::vector<ProductCase>& product_cases() {
  static const std::vector<ProductCase> cases{
      {.name = "plain"},
      {.name = "one_stage", .stages = 1},
      {.name = "serial", .stages = 0},
      {.name = "two_stages", .stages = 2},
      {.name = "four_stages", .k = 64 * 3, .tile_k = 64, .stages = 4},
      {.name = "two_groups", .n = 256, .tile_n = 128, .threads = 256},
      {.name = "wide", .n = 256, .k = 128, .tile_n = 256, .tile_k = 64, .threads = 256},
      {.name = "transposed_b", .tile_k = 32, .transpose_b = true},
      {.name = "transposed_a", .transpose_a = true},
      {.name = "transposed", .k = 128, .tile_k = 64, .transpose_a = true, .transpose_b = true},
      {.name = "tail_m", .m = 100},
      {.name = "tail_n", .n = 120},
      {.name = "tail_k", .k = 72},
      {.name = "tails", .m = 130, .n = 72, .k = 40, .transpose_b = true},
      {.name = "odd_tails", .m = 67, .n = 33, .k = 21},
      {.name = "panels_along_k", .k = 128, .tile_m = 64, .tile_k = 128, .transpose_b = true},
      {.name = "narrow", .m = 64, .n = 16, .tile_m = 64, .tile_n = 16, .tile_k = 16},
      {.name = "bands", .m = 1024, .n = 272, .k = 16, .tile_m = 64, .tile_n = 16, .tile_k = 16, .stages = 2},
      {.name = "several_blocks", .m = 384, .n = 128, .k = 160, .threads = 256},
      {.name = "several_tails", .m = 300, .n = 100, .k = 72, .threads = 256, .stages = 2, .transpose_b = true},
      {.name = "uneven_bands", .m = 128 * 18, .n = 32, .k = 48, .tile_n = 16, .tile_k = 16, .threads = 256},
      {.name = "three_groups", .m = 384, .n = 96, .k = 96, .tile_m = 192, .tile_n = 32, .threads = 384},
      {.name = "bfloat16", .transpose_b = true, .type = "bfloat16"},
      {.name = "half_sums", .k = 32, .sum = "float16"},
      {.name = "tensor_float", .k = 64, .transpose_b = true, .type = "tfloat32"},
      {.name = "float8", .k = 128, .tile_k = 64, .transpose_b = true, .type = "float8_e4m3fn"},
      {.name = "int8", .k = 128, .tile_k = 64, .transpose_b = true, .type = "int8", .sum = "int32"},
  };
  return cases;
}

// Loops in loops, products that feed products, tiles that other tiles take the place of.
const std::vector<std::pair<std::string, std::string>>& product_programs() {
  static const std::vector<std::pair<std::string, std::string>> programs{
      {"persistent", R"(program gemm(a: float16[256, 96], b: float16[96, 64], c: float32[256, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[128, 32]
    shared b_tile: float16[32, 64]
    shared c_tile: float32[128, 64]
    fragment c_held: float32[128, 64]
    serial t in 2 {
      fill c_held = 0.0
      pipelined k in 3 stages 3 {
        copy a[t * 128 : +128, k * 32 : +32] -> a_tile
        copy b[k * 32 : +32, 0 : 64] -> b_tile
        gemm c_held += a_tile @ b_tile
      }
      copy c_held -> c_tile
      copy c_tile -> c[t * 128 : +128, 0 : 64]
    }
  }
})"},
      {"persistent_one_slot", R"(program gemm(a: float16[256, 96], b: float16[96, 64], c: float32[256, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[128, 32]
    shared b_tile: float16[32, 64]
    fragment c_held: float32[128, 64]
    serial t in 3 {
      fill c_held = 0.0
      pipelined k in t + 1 stages 2 {
        copy a[128 : +128, k * 32 : +32] -> a_tile
        copy b[k * 32 : +32, 0 : 64] -> b_tile
        gemm c_held += a_tile @ b_tile
      }
      copy c_held -> c[128 : +128, 0 : 64]
    }
  }
})"},
      {"fed_from_no_step_on", R"(program gemm(a: float16[128, 96], b: float16[96, 64], c: float32[4, 128, 64]) {
  kernel bx in 1 threads 256 {
    shared a_tile: float16[128, 32]
    shared b_tile: float16[32, 64]
    fragment c_held: float32[128, 64]
    serial t in 4 {
      fill c_held = 0.0
      pipelined k in t stages 2 {
        copy a[0 : 128, k * 32 : +32] -> a_tile
        copy b[k * 32 : +32, 0 : 64] -> b_tile
        gemm c_held += a_tile @ b_tile
      }
      copy c_held -> c[t, 0 : 128, 0 : 64]
    }
  }
})"},
      {"attention", R"(program attend(q: float16[64, 64], k: float16[80, 64], v: float16[80, 64], o: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared q_tile: float16[64, 64]
    shared k_tile: float16[32, 64]
    shared v_tile: float16[32, 64]
    fragment s: float32[64, 32]
    fragment p: float16[64, 32]
    fragment sums: float32[64, 64]
    copy q -> q_tile
    fill sums = 0.0
    pipelined t in 3 stages 2 {
      copy k[t * 32 : +32, 0 : 64] -> k_tile
      gemm s = q_tile @ k_tile.T policy full_row
      parallel i, j in 64, 32 {
        p[i, j] = float16(int32(s[i, j]) % 16)
      }
      copy v[t * 32 : +32, 0 : 64] -> v_tile
      gemm sums += p @ v_tile policy full_row
    }
    copy sums -> o
  }
})"},
      {"attention_two_groups",
       R"(program attend(q: float16[256, 64], k: float16[96, 64], v: float16[96, 64], o: float16[256, 64]) {
  kernel bx in 2 threads 256 {
    shared q_tile: float16[128, 64]
    shared k_tile: float16[32, 64]
    shared v_tile: float16[32, 64]
    fragment s: float32[128, 32]
    fragment p: float16[128, 32]
    fragment top: float32[128]
    fragment sums: float32[128, 64]
    copy q[bx * 128 : +128, 0 : 64] -> q_tile
    fill sums = 0.0
    pipelined t in bx + 2 stages 2 {
      copy k[t * 32 : +32, 0 : 64] -> k_tile
      gemm s = q_tile @ k_tile.T policy full_row
      reduce max s -> top axis 1
      parallel i, j in 128, 32 {
        p[i, j] = float16(int32(s[i, j] - top[i]) % 4)
      }
      copy v[t * 32 : +32, 0 : 64] -> v_tile
      gemm sums += p @ v_tile policy full_row
    }
    parallel i, j in 128, 64 {
      sums[i, j] = float32(int32(sums[i, j]) % 512)
    }
    copy sums -> o[bx * 128 : +128, 0 : 64]
  }
})"},
      {"through_memory", R"(program twice(a: float16[128, 64], b: float16[64, 64], c: float32[128, 64]) {
  kernel bx in 1 threads 256 {
    shared a_tile: float16[128, 64]
    shared b_tile: float16[64, 64]
    shared s_tile: float16[128, 64]
    fragment s: float32[128, 64]
    fragment sums: float32[128, 64]
    copy a -> a_tile
    copy b -> b_tile
    gemm s = a_tile @ b_tile
    parallel i, j in 128, 64 {
      s_tile[i, j] = float16(int32(s[i, j]) % 16)
    }
    gemm sums = s_tile @ b_tile
    copy sums -> c
  }
})"},
      {"to_a_view", R"(program gemm(a: float16[128, 64], b: float16[64, 64], c: float32[2, 64, 64]) {
  kernel bx in 1 threads 128 {
    global rows: float32[128, 64] view c
    shared a_tile: float16[128, 32]
    shared b_tile: float16[32, 64]
    shared c_tile: float32[128, 64]
    fragment c_held: float32[128, 64]
    fill c_held = 0.0
    pipelined k in 2 stages 2 {
      copy a[0 : 128, k * 32 : +32] -> a_tile
      copy b[k * 32 : +32, 0 : 64] -> b_tile
      gemm c_held += a_tile @ b_tile
    }
    copy c_held -> c_tile
    copy c_tile -> rows
  }
})"},
      {"element_wise", R"(program scaled(a: float32[64, 128], c: float32[64, 128]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float32[16, 128]
    pipelined t in 4 stages 3 {
      copy a[t * 16 : +16, 0 : 128] -> a_tile
      parallel i, j in 16, 128 {
        c[t * 16 + i, j] = a_tile[i, j] * 2.0
      }
    }
  }
})"}};
  return programs;
}

TEST(Products, StandAmongOtherStatements) {
  EmulatedBatch batch(targets::gpu::Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const auto& [name, text] : product_programs()) {
    programs.push_back(parse(text));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << name << ": " << added.error().message;
    if (name != "through_memory") { EXPECT_THAT(batch.source(*added), HasSubstr("tma_load_2d")) << name; }
    if (name != "element_wise") { EXPECT_THAT(batch.source(*added), HasSubstr("wgmma_m64")) << name; }
    if (name.starts_with("fed")) { EXPECT_THAT(batch.source(*added), HasSubstr("set_registers_down")) << name; }
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) expect_agreement(batch, k, programs[k], product_programs()[k].first);
}

TEST(Products, AgreeWithTheInterpreter) {
  EmulatedBatch batch(targets::gpu::Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const ProductCase& c : product_cases()) {
    programs.push_back(parse(program_text(c)));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << c.name << ": " << added.error().message;
    EXPECT_THAT(batch.source(*added), HasSubstr("wgmma_m64")) << c.name;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  constexpr size_t kEvery = 8 / rounds(8);
  for (size_t k = 0; k < programs.size(); k += kEvery) {
    const ProductCase& c = product_cases()[k];
    const ir::testing::RandomArguments expected(programs[k], 1), actual(programs[k], 1);
    if (c.sum == "float16") {  // else rounded after each product, or at the end
      make_whole(expected);
      make_whole(actual);
    }
    interpret::Options options;
    options.functions = &prelude_functions();
    const auto fault = interpret::run(programs[k], expected.values(), options);
    ASSERT_FALSE(fault) << c.name << ": " << fault->message;
    const std::string wrong = batch.run(k, to_launch(actual.values()));
    EXPECT_EQ(wrong, "") << c.name << "\n" << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << c.name << "\n" << batch.source(k);
  }
}

// Two teams that each multiply parts of tiles, whose places the loops tell, by asynchronous products of their own.
constexpr const char* kParts = R"(program parts(a: float16[64, 256], b: float16[64, 256], c: float32[2, 64, 64]) {
  kernel bx in 1 threads tx in 256 {
    shared a_tile: float16[64, 256]
    shared b_tile: float16[64, 256]
    fragment left: float32[64, 64]
    fragment right: float32[64, 64]
    copy a -> a_tile
    copy b -> b_tile
    sync
    if tx < 128 {
      fill left = 0.0
      unrolled j in 4 {
        gemm left += a_tile[0 : 64, j * 64 : +64] @ b_tile[0 : 64, j * 64 : +64].T asynchronous
      }
      async wait_gemms
      copy left -> c[0, 0 : 64, 0 : 64]
    } else {
      fill right = 0.0
      serial j in 2 {
        gemm right += a_tile[0 : 64, j * 128 + 64 : +64] @ b_tile[0 : 64, j * 64 : +64] asynchronous
        async wait_gemms 1
      }
      async wait_gemms
      copy right -> c[1, 0 : 64, 0 : 64]
    }
  }
})";

TEST(Products, TakePartsThatLoopsTell) {
  EmulatedBatch batch(targets::gpu::Architecture::sm_90a);
  const ir::Program program = parse(kParts);
  const auto added = batch.add(program);
  ASSERT_TRUE(added.ok()) << added.error().message;
  const std::string& source = batch.source(*added);
  EXPECT_THAT(source, HasSubstr("    wgmma_m64n64k16_f32_f16_f16("));
  EXPECT_THAT(source, HasSubstr("    wgmma_m64n64k16_f32_f16_f16_tb("));
  EXPECT_THAT(source, Not(HasSubstr("mma_m16n8k16")));
  // A result is used when its product has been waited for, by whomever.
  EXPECT_THAT(source.substr(source.find("    wgmma_m64n64k16_f32_f16_f16_tb(")), HasSubstr("wgmma_wait<0>();"));
  EXPECT_THAT(source.substr(0, source.find("    wgmma_m64n64k16_f32_f16_f16_tb(")), HasSubstr("wgmma_wait<0>();"));
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  const ir::testing::RandomArguments expected(program, 1), actual(program, 1);
  interpret::Options options;
  options.functions = &prelude_functions();
  ASSERT_FALSE(interpret::run(program, expected.values(), options));
  EXPECT_EQ(batch.run(0, to_launch(actual.values())), "") << source;
  EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << source;
}

// Results of blocks that stay leave through two small tiles where one of their size does not fit beside the ring.
struct PartsCase {
  int64_t tile_n, tile_k;
  int stages;
  std::string type;  // of the result
  int64_t stores;
};

TEST(Products, LeaveByPartsWhereSharedMemoryIsShort) {
  const std::vector<PartsCase> cases{
      {256, 64, 4, "float16", 4}, {192, 32, 9, "float16", 3}, {128, 64, 6, "float32", 4}, {256, 64, 3, "float16", 1}};
  EmulatedBatch batch(targets::gpu::Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const PartsCase& c : cases) {
    programs.push_back(
        parse(fmt::format(R"(program gemm(a: float16[256, 128], b: float16[{n}, 128], c: {type}[256, {n}]) {{
  kernel bx, by in 2, 2 threads 256 {{
    shared a_tile: float16[128, {k}]
    shared b_tile: float16[{tn}, {k}]
    fragment c_tile: float32[128, {tn}]
    fill c_tile = 0.0
    pipelined k in {steps} stages {stages} {{
      copy a[by * 128 : +128, k * {k} : +{k}] -> a_tile
      copy b[bx * {tn} : +{tn}, k * {k} : +{k}] -> b_tile
      gemm c_tile += a_tile @ b_tile.T
    }}
    copy c_tile -> c[by * 128 : +128, bx * {tn} : +{tn}]
  }}
}})",
                          fmt::arg("n", c.tile_n + 40), fmt::arg("tn", c.tile_n), fmt::arg("k", c.tile_k),
                          fmt::arg("steps", 128 / c.tile_k), fmt::arg("stages", c.stages), fmt::arg("type", c.type))));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << added.error().message;
    const std::string& source = batch.source(*added);
    EXPECT_THAT(source, HasSubstr("set_registers_up<"));
    EXPECT_THAT(source, HasSubstr("grid_blocks()"));
    EXPECT_EQ(source.find("wait_stores_read<1>()") != std::string::npos, c.stores > 1) << source;
    EXPECT_THAT(source, Not(HasSubstr("wait_stores<")));
    int64_t commits = 0;
    for (size_t at = source.find("commit_stores()"); at != std::string::npos;
         at = source.find("commit_stores()", at + 1))
      ++commits;
    EXPECT_EQ(commits, c.stores) << source;
  }
  batch.compile(true);
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) {
    const ir::testing::RandomArguments expected(programs[k], 1), actual(programs[k], 1);
    interpret::Options options;
    options.functions = &prelude_functions();
    ASSERT_FALSE(interpret::run(programs[k], expected.values(), options));
    EXPECT_EQ(batch.run(k, to_launch(actual.values())), "") << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << batch.source(k);
  }
}

TEST(Products, Compile) {
  SKIP_WITHOUT_NVRTC();
  for (const ProductCase& c : product_cases()) {
    const auto code = targets::cuda::generate(parse(program_text(c)), targets::gpu::Architecture::sm_90a);
    ASSERT_TRUE(code.ok()) << c.name << ": " << code.error().message;
    DiagnosticList warnings;
    const auto made = nvrtc().compile(targets::cuda::prelude() + code->source, "sm_90a", warnings);
    ASSERT_TRUE(made.ok()) << c.name << ": " << made.error().message << "\n" << code->source;
    EXPECT_THAT(made->log, Not(HasSubstr("C75"))) << c.name;  // products that the assembler runs one by one
  }
}

}  // namespace
}  // namespace tilepilot::testing
