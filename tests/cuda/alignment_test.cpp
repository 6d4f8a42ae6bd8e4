// Code for tensors that do not begin at a multiple of 16 bytes: no vector, and no box, that their addresses forbid.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/targets/cuda/alignment.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::cuda::Architecture;
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
  const auto of = [](uintptr_t address) { return targets::cuda::alignment_of(reinterpret_cast<const void*>(address)); };
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
      {1, {8, 16}, {"copy_vector<8>(&x_v", "copy_vector<16>(y"}, {"copy_vector<16>(&x_v"}},
      {1, {2, 4}, {"copy_vector<4>(y"}, {"copy_vector<16>", "copy_vector<8>", "(&x_v"}},
      {0, {16, 16, 16}, {ahead}, {}},
      {0, {4, 16, 16}, {"async_copy<4>("}, {"tma_load_2d("}},
      {0, {2, 2, 4}, {}, {"tma_load_2d(", "async_copy<", "copy_vector<8>(&c"}},
  };
  EmulatedBatch batch(GetParam());
  std::vector<ir::Program> programs;
  for (const AlignmentCase& c : cases) {
    programs.push_back(targets::cuda::with_alignments(parse(text_of(c.program)), c.alignments));
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

INSTANTIATE_TEST_SUITE_P(Architectures, Alignments, ::testing::Values(Architecture::sm_80, Architecture::sm_90a),
                         [](const auto& info) { return info.param == Architecture::sm_80 ? "sm_80" : "sm_90a"; });

}  // namespace
}  // namespace tilepilot::testing
