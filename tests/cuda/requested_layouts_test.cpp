// Layouts that programs ask for: the generated code, its values beside the interpreter's, and what is said where a
// request cannot be met.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> warnings_of(const std::string& text, Architecture architecture = Architecture::sm_90a) {
  std::vector<std::string> messages;
  const auto code = targets::cuda::generate(parse(text), architecture);
  EXPECT_TRUE(code.ok()) << text;
  if (code.ok())
    for (const Diagnostic& warning : code->warnings)
      if (warning.kind == DiagnosticKind::ignored_request) messages.push_back(warning.message);
  return messages;
}

// A tile of which warps read columns.
std::string columns(const std::string& layout) {
  return fmt::format(R"(program f(x: float32[64, 64], y: float32[64]) {{
  kernel bx in 1 threads 64 {{
    shared tile: float32[64, 64]
    {}
    copy x -> tile
    parallel i in 64 {{
      y[i] = tile[i, 3] + tile[i, 40]
    }}
  }}
}})",
                     layout);
}

int64_t conflicts_of(const std::string& text) {
  const ir::Program program = parse(text);
  EmulatedBatch batch(Architecture::sm_80);
  const auto number = batch.add(program);
  EXPECT_TRUE(number.ok());
  batch.compile();
  expect_agreement(batch, *number, program);
  return batch.counters().shared_reads.bank_conflicts;
}

TEST(RequestedLayouts, DecideWhereSharedTilesLie) {
  for (const char* layout : {"", "layout i, j in tile at i * 64 + j", "layout i, j in tile at i * 65 + j",
                             "layout i, j in tile at j // 32 * 2048 + i * 32 + (j % 32 ^ i % 8 * 4)"}) {
    expect_interpreted(columns(layout));
    EXPECT_THAT(warnings_of(columns(layout)), IsEmpty()) << layout;
  }
  // In rows of 64 words the 32 lanes of each of two warps find both columns in one bank each, in rows of 65 nowhere.
  EXPECT_EQ(conflicts_of(columns("layout i, j in tile at i * 64 + j")), 2 * 2 * 31);
  EXPECT_EQ(conflicts_of(columns("layout i, j in tile at i * 65 + j")), 0);
}

TEST(RequestedLayouts, OfUnknownFormAreAnnounced) {
  const std::string rotated = columns("layout i, j in tile at i * 64 + (j + i) % 64");
  EXPECT_THAT(warnings_of(rotated), ElementsAre("`tile` is not laid out as asked: tiles lie row by row, with padded "
                                                "rows, or swizzled within 32, 64 or 128 bytes"));
  expect_interpreted(rotated);
}

TEST(RequestedLayouts, ThatLeaveAllMemoryAreAnnounced) {
  for (const char* layout : {"i * 1152921504606846976 + j", "j - i", "(i - 9223372036854775807) // (j - 1)"})
    EXPECT_THAT(
        warnings_of(columns(fmt::format("layout i, j in tile at {}", layout))),
        ElementsAre("`tile` is not laid out as asked: some places that it gives are negative, or known to nobody"));
}

// Panels of one row begin 8 rows apart.
TEST(RequestedLayouts, OfOneRowAreNoSwizzles) {
  const std::string text = R"(program f(x: float16[64], y: float16[64]) {
  kernel bx in 1 threads 32 {
    shared tile: float16[64]
    layout i in tile at i // 32 * 256 + i % 32
    copy x -> tile
    copy tile -> y
  }
})";
  EXPECT_THAT(warnings_of(text), ElementsAre(HasSubstr("`tile` is not laid out as asked: tiles lie row by row")));
  expect_interpreted(text);
}

// Each thread hands on what it holds.
std::string held(const std::string& layout) {
  return fmt::format(R"(program f(x: float32[64, 64], y: float32[64, 64]) {{
  kernel bx in 1 threads 128 {{
    fragment tile: float32[64, 64]
    {}
    copy x -> tile
    parallel i, j in 64, 64 {{
      y[i, j] = tile[i, j] * 2.0
    }}
  }}
}})",
                     layout);
}

TEST(RequestedLayouts, DecideWhichThreadsHoldFragments) {
  // Half a row a thread: four neighbours are one access; a thread a column: each access is of one element.
  EXPECT_THAT(expect_interpreted(held("layout i, j in tile by i * 2 + j // 32 at j % 32")),
              HasSubstr("copy_vector<16>(y"));
  EXPECT_THAT(expect_interpreted(held("layout i, j in tile by i % 2 * 64 + j")), Not(HasSubstr("copy_vector<16>(y")));
  EXPECT_THAT(warnings_of(held("layout i, j in tile by i % 2 * 64 + j")), IsEmpty());
  // By two threads each.
  const std::string twice = held("layout i, j, who in tile replicas 2 by i + who * 64 at j");
  expect_interpreted(twice);
  EXPECT_THAT(warnings_of(twice), IsEmpty());
}

TEST(RequestedLayouts, OfFragmentsThatNobodyCouldHoldAreAnnounced) {
  const auto why = [](const std::string& layout) {
    const std::string text = held("layout i, j in tile " + layout);
    expect_interpreted(text);
    const auto warnings = warnings_of(text);
    return warnings.empty() ? "" : warnings.front();
  };
  EXPECT_THAT(why("by i"), HasSubstr("thread 0 has a register 32, where each holds 32 elements"));
  EXPECT_THAT(why("by i * 4 + j // 16"), HasSubstr("thread 128 is none of 128"));
  EXPECT_THAT(why("by i * 2 + j // 32 at 0"), HasSubstr("two elements have register 0 of thread 0"));
  EXPECT_THAT(why("by (i * 2 + j // 32) ^ j % 2"), HasSubstr("no sum of digits"));
}

std::string product(const std::string& layouts) {
  return fmt::format(R"(program f(x: float16[128, 128], w: float16[128, 128], y: float32[128, 128]) {{
  kernel bx in 1 threads 128 {{
    shared a: float16[128, 32]
    shared b: float16[32, 128]
    fragment c: float32[128, 128]
    {}
    fill c = 0.0
    pipelined k in 4 stages 3 {{
      copy x[0 : 128, k * 32 : +32] -> a
      copy w[k * 32 : +32, 0 : 128] -> b
      gemm c += a @ b
    }}
    copy c -> y
  }}
}})",
                     layouts);
}

// A ring of tiles has the layout of each; what instructions demand goes first.
TEST(RequestedLayouts, OfOperandsHoldInAllStages) {
  const std::string padded = product("layout i, j in b at i * 136 + j");
  expect_interpreted(padded);
  EXPECT_THAT(warnings_of(padded, Architecture::sm_80), IsEmpty());
  EXPECT_THAT(warnings_of(padded), ElementsAre(HasSubstr("`b` is not laid out as asked: wgmma reads swizzled tiles")));
  const std::string swizzled = product("layout i, j in a at i * 32 + (j ^ i % 8 // 2 * 8)");
  expect_interpreted(swizzled);
  EXPECT_THAT(warnings_of(swizzled), IsEmpty());
  const std::string sums = product("layout i, j in c by i at j");
  expect_interpreted(sums);
  EXPECT_THAT(
      warnings_of(sums),
      ElementsAre(HasSubstr("`c` is not laid out as asked: the instructions of its products hold it otherwise")));
}

}  // namespace
}  // namespace tilepilot::testing
