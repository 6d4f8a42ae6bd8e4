// Code for tensors of which other things are known than usual: no vector, and no box, that their addresses or rows
// forbid, and what 32 bits cannot count is counted in 64. With extents that are known at launch alone the code is that
// of constant ones wherever facts allow it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/runtime/arguments.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using targets::gpu::TensorFacts;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProductAndSum =
    R"(program product(a: float16[64, 96], b: float16[96, 64], c: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    shared b_tile: float16[32, 64]
    fragment c_tile: float32[64, 64]
    copy c -> c_tile
    pipelined k in 3 stages 2 {
      copy a[0 : 64, k * 32 : +32] -> a_tile
      copy b[k * 32 : +32, 0 : 64] -> b_tile
      gemm c_tile += a_tile @ b_tile
    }
    copy c_tile -> c
  }
}
program scaled(x: float16[64, 256], y: float16[64, 256]) {
  kernel bx in 64 threads 32 {
    parallel i in 256 {
      y[bx, i] = x[bx, i] * 2.0
    }
  }
})";

std::string text_of(size_t number) {
  const std::string all = kProductAndSum;
  const size_t second = all.find("program scaled");
  return number == 0 ? all.substr(0, second) : all.substr(second);
}

TEST(Alignment, IsWhatTheAddressIsAMultipleOf) {
  const auto of = [](uintptr_t address) { return targets::gpu::alignment_of(reinterpret_cast<const void*>(address)); };
  EXPECT_EQ(of(4096), 16);
  EXPECT_EQ(of(4096 + 16), 16);
  EXPECT_EQ(of(4096 + 24), 8);
  EXPECT_EQ(of(4096 + 2), 2);
  EXPECT_EQ(of(0), 16);
}

struct AlignmentCase {
  size_t program;
  std::vector<int64_t> alignments;
  std::vector<std::string> present, absent;
};

class Alignments : public ::testing::TestWithParam<Architecture> {};

TEST_P(Alignments, DecideWhatIsMovedAtOnce) {
  const bool is_hopper = GetParam() == Architecture::sm_90a;
  const std::string ahead = is_hopper ? "tma_load_2d(" : "async_copy<16>(";
  const std::vector<AlignmentCase> cases{
      {1, {16, 16}, {"copy_vector<16>(&x_v", "copy_vector<16>(y"}, {}},
      {1, {8, 16}, {"copy_vector<8>(&x_v", "copy_vector<8>(y"}, {"copy_vector<16>"}},
      {1, {2, 4}, {}, {"copy_vector<"}},
      {0, {16, 16, 16}, {ahead}, {}},
      {0, {4, 16, 16}, {"async_copy<4>("}, {"tma_load_2d("}},
      {0, {2, 2, 4}, {}, {"tma_load_2d(", "async_copy<", "copy_vector<8>(&c"}},
  };
  EmulatedBatch batch(GetParam());
  std::vector<ir::Program> programs;
  for (const AlignmentCase& c : cases) {
    std::vector<TensorFacts> facts;
    for (const int64_t alignment : c.alignments) facts.push_back({.alignment = alignment});
    programs.push_back(targets::gpu::with_facts(parse(text_of(c.program)), facts));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << added.error().message;
    for (const std::string& text : c.present) EXPECT_THAT(batch.source(*added), HasSubstr(text));
    for (const std::string& text : c.absent) EXPECT_THAT(batch.source(*added), Not(HasSubstr(text)));
  }
  batch.compile();
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

// Extents as they stand in a program's text.
struct Extents {
  std::string m, n, k;
};
Extents numbers(int64_t m, int64_t n, int64_t k) { return {std::to_string(m), std::to_string(n), std::to_string(k)}; }

std::string symbols_of(const Extents& extents) {
  std::string text;
  for (const std::string& extent : {extents.m, extents.n, extents.k})
    if (std::isalpha(extent[0]) != 0) text += (text.empty() ? "" : ", ") + extent + ": int32";
  return text.empty() ? "" : "<" + text + ">";
}

std::string product_text(const Extents& e, int64_t threads = 256) {
  return fmt::format(R"(program product{s}(a: float16[{m}, {k}], b: float16[{k}, {n}], c: float16[{m}, {n}]) {{
  kernel bx, by in ({n} + 63) // 64, ({m} + 127) // 128 threads {threads} {{
    shared a_tile: float16[128, 32]
    shared b_tile: float16[32, 64]
    fragment c_tile: float32[128, 64]
    fill c_tile = 0.0
    pipelined k_1 in ({k} + 31) // 32 stages 3 {{
      copy a[by * 128 : +128, k_1 * 32 : +32] -> a_tile
      copy b[k_1 * 32 : +32, bx * 64 : +64] -> b_tile
      gemm c_tile += a_tile @ b_tile
    }}
    copy c_tile -> c[by * 128 : +128, bx * 64 : +64]
  }}
}})",
                     fmt::arg("s", symbols_of(e)), fmt::arg("m", e.m), fmt::arg("n", e.n), fmt::arg("k", e.k),
                     fmt::arg("threads", threads));
}

std::string rows_text(const Extents& e) {
  return fmt::format(R"(program rows{s}(x: float16[{m}, {n}], y: float16[{m}, {k}, {n}]) {{
  kernel bx, by in ({n} + 127) // 128, ({m} + 15) // 16 threads 64 {{
    shared t: float16[16, 128]
    copy x[by * 16 : +16, bx * 128 : +128] -> t
    serial k in {k} {{
      parallel i, j in 16, 128 {{
        y[by * 16 + i, k, bx * 128 + j] = t[i, j] * 2.0
      }}
    }}
  }}
}})",
                     fmt::arg("s", symbols_of(e)), fmt::arg("m", e.m), fmt::arg("n", e.n), fmt::arg("k", e.k));
}

// The version of a program that a launch with these arguments gets.
ir::Program version_for(const ir::Program& program, const ir::testing::RandomArguments& arguments) {
  const auto bound = runtime::bind_arguments(program, to_launch(arguments.values()), {});
  EXPECT_TRUE(bound.ok()) << bound.error().message;
  return targets::gpu::with_facts(program, targets::gpu::FactFinder(program).find(bound->buffers, bound->values));
}

TEST(TensorFacts, AreOfRowsAndOfHowManyElementsThereAre) {
  const ir::Program program = parse(R"(program f<m: int32, n: int32, s: int64>(a: float16[m, n], b: float32[m, 100],
    c: int8[4, n, 64], d: float16[m, n] strides [s, 1], e: float16[64, 64]) {
  workspace w: float32[m, n]
  kernel bx in 1 threads 32 {
    sync
  }
})");
  const auto facts = [&](int64_t m, int64_t n, int64_t s) {
    const auto is = [](int64_t value) { return ir::Bounds{value, value}; };
    const auto& symbols = program.symbols;
    return targets::gpu::FactFinder(program).find(
        std::vector<void*>(5, nullptr),
        {{symbols[0].get(), is(m)}, {symbols[1].get(), is(n)}, {symbols[2].get(), is(s)}});
  };
  const TensorFacts usual, rows{.row_alignment = 1}, many{.few_elements = false};
  EXPECT_EQ(facts(7, 24, 48), targets::gpu::usual_facts(program));
  EXPECT_EQ(facts(7, 20, 40), (std::vector<TensorFacts>{rows, usual, usual, rows, usual, usual}));
  EXPECT_EQ(facts(7, 24, 41), (std::vector<TensorFacts>{usual, usual, usual, rows, usual, usual}));
  EXPECT_EQ(facts(7, 24, 0), (std::vector<TensorFacts>{usual, usual, usual, rows, usual, usual}));
  EXPECT_EQ(facts(1 << 16, 1 << 15, 1 << 15), (std::vector<TensorFacts>{many, usual, usual, many, usual, many}));
  EXPECT_EQ(facts((1 << 16) - 1, 1 << 15, 1 << 15), targets::gpu::usual_facts(program));
  EXPECT_EQ(facts(3, 8, int64_t{1} << 32), (std::vector<TensorFacts>{usual, usual, usual, many, usual, usual}));
  EXPECT_EQ(facts(1, INT32_MAX - 7, 8), (std::vector<TensorFacts>{usual, usual, many, usual, usual, usual}));
}

// What is at the same place in texts that differ in how extents are named alone.
std::vector<std::string> calls_in(const std::string& source) {
  constexpr const char* kCalls[] = {
      "set_registers_up<", "set_registers_down<", "tma_load_2d(",    "tma_store_2d(",  "barrier_wait(",  "wgmma_",
      "commit_stores",     "grid_blocks",         "copy_vector<16>", "copy_vector<8>", "async_copy<16>("};
  std::vector<std::string> found;
  for (size_t at = 0; at < source.size(); ++at)
    for (const char* one : kCalls)
      if (source.compare(at, std::strlen(one), one) == 0) found.emplace_back(one);
  return found;
}

TEST_P(Alignments, GiveProductsOfUnknownExtentsTheCodeOfKnownOnes) {
  for (const int64_t threads : {128, 256}) {
    const auto usual = [&](const Extents& extents) {
      const auto code =
          targets::cuda::generate(targets::gpu::for_usual_tensors(parse(product_text(extents, threads))), GetParam());
      EXPECT_TRUE(code.ok()) << code.error().message;
      return code->source;
    };
    const std::string known = usual(numbers(200, 72, 200));
    for (const Extents& extents : {Extents{"m", "72", "200"}, Extents{"m", "n", "k"}}) {
      const std::string source = usual(extents);
      EXPECT_EQ(calls_in(source), calls_in(known)) << source << known;
      EXPECT_THAT(source, Not(HasSubstr("int64_t i")));
    }
    EXPECT_THAT(known, HasSubstr(GetParam() == Architecture::sm_80 ? "async_copy<16>(" : "tma_load_2d("));
  }
}

struct DynamicCase {
  std::string (*text)(const Extents&);
  Extents extents;
  int64_t m, n, k;
  std::vector<std::string> present, absent;
};

TEST_P(Alignments, HoldForExtentsThatAreKnownAtLaunchAlone) {
  const bool is_hopper = GetParam() == Architecture::sm_90a;
  const auto product = [](const Extents& e) { return product_text(e); };
  const std::string ahead = is_hopper ? "tma_load_2d(" : "async_copy<16>(";
  const std::vector<std::string> fast{ahead}, slow{"tma_load", "async_copy<16>", "copy_vector<16>"};
  const Extents all{"m", "n", "k"};
  const std::vector<DynamicCase> cases{
      {product, {"m", "72", "64"}, 100, 72, 64, fast, {}},
      {product, all, 256, 128, 64, fast, {}},
      {product, all, 100, 72, 40, fast, {}},
      {product, all, 9, 8, 8, fast, {}},
      {product, all, 130, 67, 33, {}, slow},
      {product, all, 130, 64, 33, {}, {"tma_load"}},
      {product, all, 17, 72, 0, {}, {}},
      {rows_text, all, 33, 264, 3, {"copy_vector<16>(y"}, {}},
      {rows_text, all, 33, 260, 3, {}, {"copy_vector<16>(y"}},
      {rows_text, {"m", "264", "k"}, 33, 264, 3, {"copy_vector<16>(y"}, {}},
  };
  EmulatedBatch batch(GetParam());
  std::vector<std::unique_ptr<ir::testing::RandomArguments>> expected, actual;
  for (const DynamicCase& c : cases) {
    // Of constant extents: what arguments and results are.
    const ir::Program known = parse(c.text(numbers(c.m, c.n, c.k)));
    for (auto* arguments : {&expected, &actual})
      arguments->push_back(std::make_unique<ir::testing::RandomArguments>(known, 1));
    interpret::Options options;
    options.functions = &prelude_functions();
    ASSERT_FALSE(interpret::run(known, expected.back()->values(), options));
    const auto added = batch.add(version_for(parse(c.text(c.extents)), *actual.back()));
    ASSERT_TRUE(added.ok()) << added.error().message;
    for (const std::string& text : c.present) EXPECT_THAT(batch.source(*added), HasSubstr(text)) << c.m << " " << c.n;
    for (const std::string& text : c.absent) EXPECT_THAT(batch.source(*added), Not(HasSubstr(text)));
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < cases.size(); ++k) {
    EXPECT_EQ(batch.run(k, to_launch(actual[k]->values())), "") << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(*expected[k], *actual[k]), "") << batch.source(k);
  }
}

TEST_P(Alignments, CountInAsManyBitsAsElementsNeed) {
  const ir::Program program = parse(rows_text({"m", "n", "k"}));
  std::vector<TensorFacts> facts = targets::gpu::usual_facts(program);
  const auto source = [&] {
    return targets::cuda::generate(targets::gpu::with_facts(program, facts), GetParam())->source;
  };
  EXPECT_THAT(source(), HasSubstr("const int32_t bx"));
  EXPECT_THAT(targets::gpu::reliances(targets::gpu::with_facts(program, facts)),
              ::testing::ElementsAre("`x` has fewer than 2^31 elements and rows of multiples of 16 bytes",
                                     "`y` has fewer than 2^31 elements and rows of multiples of 16 bytes"));
  facts[1].few_elements = false;
  EXPECT_THAT(source(), HasSubstr("const int64_t bx"));
  EXPECT_THAT(source(), HasSubstr("copy_vector<16>(y"));
}

// What large tensors get, on small ones.
TEST_P(Alignments, CountInManyBitsAsInFew) {
  EmulatedBatch batch(GetParam());
  std::vector<ir::Program> known;
  for (const bool rows : {false, true}) {
    const auto text = [&](const Extents& e) { return rows ? rows_text(e) : product_text(e); };
    known.push_back(parse(text(numbers(130, 72, 40))));
    const ir::Program program = parse(text({"m", "n", "k"}));
    std::vector<TensorFacts> facts = targets::gpu::usual_facts(program);
    for (TensorFacts& fact : facts) fact.few_elements = false;
    const auto added = batch.add(targets::gpu::with_facts(program, facts));
    ASSERT_TRUE(added.ok()) << added.error().message;
    EXPECT_THAT(batch.source(*added), HasSubstr("const int64_t bx"));
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < known.size(); ++k) {
    const ir::testing::RandomArguments expected(known[k], 1), actual(known[k], 1);
    interpret::Options options;
    options.functions = &prelude_functions();
    ASSERT_FALSE(interpret::run(known[k], expected.values(), options));
    EXPECT_EQ(batch.run(k, to_launch(actual.values())), "") << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << batch.source(k);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Alignments, ::testing::Values(Architecture::sm_80, Architecture::sm_90a),
                         [](const auto& info) { return info.param == Architecture::sm_80 ? "sm_80" : "sm_90a"; });

}  // namespace
}  // namespace tilepilot::testing
