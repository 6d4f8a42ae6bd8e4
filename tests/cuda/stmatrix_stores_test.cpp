// What a warp writes to shared memory by stmatrix: sums of products, converted or not, row by row or transposed. The
// emulator computes what the interpreter does, finds nothing wrong and no bank conflict; what has no rows of 16 bytes,
// and sm_80, does without.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/interpreted.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

// A product of M x N in `threads`, of float16 or bfloat16, whose sums `s` go to a tile of shared memory.
struct Product {
  int64_t m = 64, n = 64, threads = 128;
  std::string type = "float16";
  std::string why = "";    // of --explain, where no stmatrix is chosen
  bool conflicts = false;  // of stores to shared memory, whatever is done
  bool by_words = true;    // sm_80 stores the same words with the same lanes
};
struct Epilogue {
  std::string name;
  std::string body;          // from `s` to `t` and to `c`
  std::string tile, result;  // shapes of `t` and `c`
  std::string has;           // instruction of the text for sm_90a; "": none of them
  Product product = {};
};

std::string text_of(const Epilogue& e) {
  return fmt::format(R"(program stored(a: {type}[{m}, 16], b: {type}[16, {n}], d: float32[{n}], c: {type}{result}) {{
  kernel bx in 1 threads {threads} {{
    shared a_tile: {type}[{m}, 16]
    shared b_tile: {type}[16, {n}]
    shared t: {type}{tile}
    fragment s: float32[{m}, {n}]
    fragment h: {type}[{m}, {n}]
    copy a -> a_tile
    copy b -> b_tile
    gemm s = a_tile @ b_tile
    {body}
  }}
}})",
                     fmt::arg("type", e.product.type), fmt::arg("m", e.product.m), fmt::arg("n", e.product.n),
                     fmt::arg("threads", e.product.threads), fmt::arg("result", e.result), fmt::arg("tile", e.tile),
                     fmt::arg("body", e.body));
}

// `t`, as it is, is stored by threads: its layout is not one that TMA supports.
constexpr const char* kByThreads = "parallel i, j in 64, 64 { c[i, j] = t[i, j] }";

const std::vector<Epilogue>& epilogues() {
  static const std::vector<Epilogue> all{
      {"converted", "copy s -> t\n copy t -> c", "[64, 64]", "[64, 64]", "stmatrix<4>("},
      {"bfloat16", "copy s -> t\n copy t -> c", "[64, 64]", "[64, 64]", "stmatrix<4>(", {.type = "bfloat16"}},
      {"by_threads", fmt::format("copy s -> t\n {}", kByThreads), "[64, 64]", "[64, 64]", "stmatrix<4>("},
      {"two_groups",
       "copy s -> t\n copy t -> c",
       "[128, 128]",
       "[128, 128]",
       "stmatrix<4>(",
       {.m = 128, .n = 128, .threads = 256}},
      {"halves", R"(parallel i, j in 64, 64 { h[i, j] = float16(int32(s[i, j]) % 16) }
    copy h -> t
    copy t -> c)",
       "[64, 64]", "[64, 64]", "stmatrix<4>("},
      {"computed", R"(parallel i, j in 64, 64 { t[i, j] = float16(max(s[i, j] + d[j], 0.0)) }
    copy t -> c)",
       "[64, 64]", "[64, 64]", "stmatrix<4>("},
      {"direct", "copy s -> c", "[8, 8]", "[64, 64]", "stmatrix<4>("},
      {"transposed", R"(parallel i, j in 64, 64 { t[j, i] = float16(s[i, j]) }
    copy t -> c)",
       "[64, 64]", "[64, 64]", "stmatrix_transposed<4>("},
      {"transposed_loop", R"(parallel j, i in 64, 64 { t[j, i] = float16(s[i, j]) }
    copy t -> c)",
       "[64, 64]", "[64, 64]", "stmatrix_transposed<4>("},
      {"both_ways", R"(parallel i, j in 64, 64 {
      t[0, i, j] = float16(s[i, j])
      c[1, i, j] = float16(s[i, j])
    }
    parallel i, j in 64, 64 { t[1, j, i] = float16(s[i, j]) }
    parallel i, j in 64, 64 { c[0, i, j] = t[1, i, j] + t[0, i, j] })",
       "[2, 64, 64]", "[2, 64, 64]", "stmatrix_transposed<4>("},
      {"warp", "copy s -> t\n copy t -> c", "[16, 16]", "[16, 16]", "stmatrix<4>(", {.m = 16, .n = 16, .threads = 32}},
      {"warps", "copy s -> t\n copy t -> c", "[32, 64]", "[32, 64]", "stmatrix<4>(", {.m = 32, .n = 64}},
      {"two_matrices",
       "copy s -> t\n parallel i, j in 16, 8 { c[i, j] = t[i, j] }",
       "[16, 8]",
       "[16, 8]",
       "stmatrix<2>(",
       {.m = 16, .n = 8, .threads = 32}},
      {"one_matrix",
       R"(parallel i, j in 8, 8 { t[i, j] = float16(s[i + 8, j]) }
    parallel i, j in 8, 8 { c[i, j] = t[i, j] })",
       "[8, 8]",
       "[8, 8]",
       "stmatrix<1>(",
       {.m = 16, .n = 8, .threads = 32}},
      {"one_transposed",
       R"(parallel i, j in 8, 8 { t[j, i] = float16(s[i, j]) }
    parallel i, j in 8, 8 { c[i, j] = t[i, j] })",
       "[8, 8]",
       "[8, 8]",
       "stmatrix_transposed<1>(",
       {.m = 16, .n = 8, .threads = 32}},
      {"three_columns", "copy s -> t\n copy t -> c", "[64, 24]", "[64, 24]", "stmatrix<2>(", {.n = 24}},
      {"part_of_tile", R"(fill t = 0.0
    copy s -> t[0 : 64, 8 : +64]
    parallel i, j in 64, 128 { c[i, j] = t[i, j] })",
       "[64, 128]", "[64, 128]", "stmatrix<4>("},
      {"padded_rows",
       R"(copy s -> t[0 : 64, 8 : +64]
    parallel i, j in 64, 64 { c[i, j] = t[i, j + 8] })",
       "[64, 80]", "[64, 64]", "stmatrix<4>("},
      {"part_of_sums",
       R"(copy s[0 : 64, 32 : +32] -> t
    parallel i, j in 64, 32 { c[i, j] = t[i, j] })",
       "[64, 32]",
       "[64, 32]",
       "stmatrix<4>(",
       {.by_words = false}},
      {"slots", R"(serial k in 2 {
      parallel i, j in 64, 64 { t[k, i, j] = float16(s[i, j] + float32(k)) }
    }
    parallel k, i, j in 2, 64, 64 { c[k, i, j] = t[k, i, j] })",
       "[2, 64, 64]", "[2, 64, 64]", "stmatrix<4>("},
      {"odd_rows",
       "copy s -> t[0 : 64, 0 : 64]\n parallel i, j in 64, 64 { c[i, j] = t[i, j] }",
       "[64, 68]",
       "[64, 64]",
       "",
       {.why = "rows of `t` have 68 elements, no multiple of 8", .conflicts = true}},
      {"odd_start",
       "copy s -> t[0 : 64, 4 : +64]\n parallel i, j in 64, 64 { c[i, j] = t[i, j + 4] }",
       "[64, 72]",
       "[64, 64]",
       "",
       {.why = "rows of matrices may start at no multiple of 8 elements of `t`", .conflicts = true}},
      {"viewed",
       R"(copy s -> t
    parallel i, j in 64, 64 { c[i, j] = float16(bits[i, j] % 7) })",
       "[64, 64]\n    shared bits: uint16[64, 64] view t",
       "[64, 64]",
       "stmatrix<4>(",
       {.conflicts = true}},
      {"a_view",
       R"(copy s -> other
    parallel i, j in 64, 64 { c[i, j] = t[i, j] })",
       "[64, 64]\n    shared other: float16[64, 64] view t",
       "[64, 64]",
       "",
       {.why = "`other` is a view or named by its address", .conflicts = true}},
      {"read_too",
       R"(fill t = 1.0
    parallel i, j in 64, 64 { t[i, j] = t[i, j] + float16(s[i, j]) }
    copy t -> c)",
       "[64, 64]",
       "[64, 64]",
       "",
       {.why = "the loop accesses `t` more than once", .conflicts = true}},
      {"now_and_then",
       R"(fill t = 1.0
    parallel i, j in 64, 64 {
      if s[i, j] > 0.0 { t[i, j] = float16(s[i, j]) }
    }
    copy t -> c)",
       "[64, 64]",
       "[64, 64]",
       "",
       {.why = "the loop does more than compute and store", .conflicts = true}},
      {"shuffled",
       R"(parallel i, j in 64, 64 { t[i, j ^ 1] = float16(s[i, j]) }
    copy t -> c)",
       "[64, 64]",
       "[64, 64]",
       "",
       {.why = "rows of matrices may start at no multiple of 8 elements of `t`", .conflicts = true}},
  };
  return all;
}

TEST(MatrixStores, AgreeWithTheInterpreterWithoutConflicts) {
  EmulatedBatch batch(Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const Epilogue& e : epilogues()) {
    programs.push_back(parse(text_of(e)));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << e.name << ": " << added.error().message;
    const std::string& source = batch.source(*added);
    EXPECT_EQ(source.find("stmatrix") != std::string::npos, !e.has.empty()) << e.name << "\n" << source;
    EXPECT_THAT(source, HasSubstr(e.has)) << e.name;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) {
    const Epilogue& e = epilogues()[k];
    expect_agreement(batch, k, programs[k], e.name);
    EXPECT_EQ(batch.counters().stmatrix > 0, !e.has.empty()) << e.name;
    if (e.product.conflicts) continue;
    EXPECT_EQ(batch.counters().shared_writes.bank_conflicts, 0) << e.name << "\n" << batch.source(k);
  }
}

// The same tiles are written word by word there, with no more conflicts.
TEST(MatrixStores, AreNoneOnOlderMachines) {
  EmulatedBatch batch(Architecture::sm_80);
  std::vector<ir::Program> programs;
  for (const Epilogue& e : epilogues()) {
    programs.push_back(parse(text_of(e)));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << e.name << ": " << added.error().message;
    EXPECT_THAT(batch.source(*added), Not(HasSubstr("stmatrix"))) << e.name;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) {
    const Epilogue& e = epilogues()[k];
    expect_agreement(batch, k, programs[k], e.name);
    if (e.product.conflicts || !e.product.by_words || e.has.find("transposed") != std::string::npos) continue;
    EXPECT_EQ(batch.counters().shared_writes.bank_conflicts, 0) << e.name << "\n" << batch.source(k);
  }
}

// One instruction for four that store a word of each lane, and as many wavefronts.
TEST(MatrixStores, TakeFewerInstructions) {
  const auto counted = [](Architecture architecture) {
    EmulatedBatch batch(architecture);
    const ir::Program program = parse(text_of(epilogues()[2]));
    EXPECT_TRUE(batch.add(program).ok());
    batch.compile();
    const ir::testing::RandomArguments arguments(program, 1);
    EXPECT_EQ(batch.run(0, to_launch(arguments.values())), "");
    return batch.counters();
  };
  const auto now = counted(Architecture::sm_90a), before = counted(Architecture::sm_80);
  EXPECT_EQ(now.stmatrix, 64 * 64 / (4 * 64));
  EXPECT_EQ(before.stmatrix, 0);
  EXPECT_LT(now.shared_writes.instructions, before.shared_writes.instructions);
}

TEST(MatrixStores, AreExplained) {
  for (const Epilogue& e : epilogues()) {
    SourceMap sources;
    DiagnosticList errors;
    const auto program = ir::read_text(sources, sources.add("program.ir", text_of(e)), errors);
    ASSERT_TRUE(program) << e.name;
    const auto here = targets::cuda::explanation(*program, Architecture::sm_90a, sources);
    const auto there = targets::cuda::explanation(*program, Architecture::sm_80, sources);
    ASSERT_TRUE(here.ok() && there.ok()) << e.name;
    if (e.has.empty()) {
      EXPECT_THAT(*here, HasSubstr("    not stmatrix: " + e.product.why + "\n")) << e.name;
    } else {
      const bool across = e.has.find("transposed") != std::string::npos;
      EXPECT_THAT(*here,
                  HasSubstr(fmt::format(" by {}stmatrix x{}", across ? "transposed " : "", e.has[e.has.find('<') + 1])))
          << e.name;
      if (e.name == "direct" || !e.product.by_words) continue;  // other tiles there, or none
      EXPECT_THAT(*there, HasSubstr("    not stmatrix: sm_80 has none\n")) << e.name;
    }
  }
}

TEST(MatrixStores, Compile) {
  SKIP_WITHOUT_NVRTC();
  for (const Epilogue& e : epilogues()) {
    const auto code = targets::cuda::generate(parse(text_of(e)), Architecture::sm_90a);
    ASSERT_TRUE(code.ok()) << e.name << ": " << code.error().message;
    DiagnosticList warnings;
    const auto made = nvrtc().compile(targets::cuda::prelude() + code->source, "sm_90a", warnings);
    ASSERT_TRUE(made.ok()) << e.name << ": " << made.error().message << "\n" << code->source;
  }
}

// A tile that leaves as consecutive bytes, because no box of the tensor is as tall, stays in order.
TEST(MatrixStores, LeaveTilesInOrderThatNeedIt) {
  EmulatedBatch batch(Architecture::sm_90a);
  const ir::Program program = parse(R"(program stored(a: float16[512, 16], b: float16[16, 64], c: float16[512, 64]) {
  kernel bx in 1 threads 512 {
    shared a_tile: float16[512, 16]
    shared b_tile: float16[16, 64]
    shared t: float16[512, 64]
    fragment s: float32[512, 64]
    copy a -> a_tile
    copy b -> b_tile
    gemm s = a_tile @ b_tile
    copy s -> t
    copy t -> c mode bulk_store
    async commit_stores
    async wait_stores
  }
})");
  const auto added = batch.add(program);
  ASSERT_TRUE(added.ok()) << added.error().message;
  EXPECT_THAT(batch.source(*added), HasSubstr("  bulk_store("));
  EXPECT_THAT(batch.source(*added), HasSubstr("  stmatrix<4>("));
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  expect_agreement(batch, 0, program, "in order");
}

// Rows of 192 bytes, which are padded where the threads alone know of it.
TEST(MatrixStores, LeaveTilesOfTheCopyEngineWithoutPadding) {
  const std::string source = expect_interpreted(
      R"(program both(x: float16[64, 96], a: float16[64, 16], b: float16[16, 96], y: float16[64, 96], z: float16[64, 96]) {
  kernel bx in 1 threads 128 {
    shared t: float16[64, 96]
    shared a_tile: float16[64, 16]
    shared b_tile: float16[16, 96]
    fragment s: float32[64, 96]
    barrier full: uint64[1] arrivals [128]
    copy a -> a_tile
    copy b -> b_tile
    copy x -> t mode bulk_load counting full
    on full arrive
    on full wait 0
    parallel i, j in 64, 96 {
      y[i, j] = t[63 - i, j]
    }
    gemm s = a_tile @ b_tile
    copy s -> t
    parallel i, j in 64, 96 {
      z[i, j] = t[i, 95 - j]
    }
  }
})",
      {Architecture::sm_90a});
  EXPECT_NE(source.find("tma_load_2d(t"), std::string::npos) << source;
}

}  // namespace
}  // namespace tilepilot::testing
