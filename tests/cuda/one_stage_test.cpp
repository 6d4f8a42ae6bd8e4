// Pipelined loops of one stage: TMA fills each tile again once an iteration has read it.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

// Sums of 256 registers, so that there is no second stage. BEGIN and END stand around the loop, USE in it.
std::string program(std::string begin, std::string loop, std::string use = "", std::string end = "") {
  return "program one_stage(a: float16[128, 192], b: float16[192, 256], n: int32[4], o: float32[128, 256]) {\n"
         "  kernel bx in 1 threads 128 {\n    shared a_tile: float16[128, 64]\n    shared b_tile: float16[64, 256]\n"
         "    fragment sums: float32[128, 256]\n    fill sums = 0.0\n" +
         begin + loop +
         "      copy a[0 : +128, k * 64 : +64] -> a_tile\n      copy b[k * 64 : +64, 0 : +256] -> b_tile\n"
         "      gemm sums += a_tile @ b_tile\n" +
         use + "    }\n" + end + "    copy sums -> o\n  }\n}";
}

const std::string kRefilled = "copy a -> a_tile: by TMA, as soon as its tile is free";

TEST(OneStage, RefillsTilesThatHaveBeenRead) {
  const std::string loop = "    pipelined k in 3 stages 1 {\n";
  const std::string plain = program("", loop);
  EXPECT_THAT(explained(plain), HasSubstr(kRefilled));
  EXPECT_THAT(explained(plain, Architecture::sm_80), HasSubstr("not ahead: the loop has one stage"));
  expect_interpreted(plain);
  // A tile that is read once more, and only in some iterations.
  const std::string later = program("", loop,
                                    "      if k > 0 {\n        parallel i, j in 128, 64 {\n"
                                    "          sums[i, j] = sums[i, j] + float32(a_tile[i, j])\n        }\n      }\n");
  EXPECT_THAT(explained(later), HasSubstr(kRefilled));
  expect_interpreted(later);
}

TEST(OneStage, RunsAgainAndNotAtAll) {
  const std::string again = program("    serial r in 3 {\n", "    pipelined k in 1 + r stages 1 {\n", "", "    }\n");
  EXPECT_THAT(explained(again), HasSubstr(kRefilled));
  expect_interpreted(again);
  const std::string none = program("", "    pipelined k in max(min(n[0], 3), 0) stages 1 {\n");
  EXPECT_THAT(explained(none), HasSubstr(kRefilled));
  expect_interpreted(none);
}

TEST(OneStage, LeavesOtherLoopsAsTheyAre) {
  // Under a condition, and where the program asks for no stages at all.
  const std::string guarded =
      "program guarded(a: float16[128, 192], n: int32[4], o: float32[128, 64]) {\n"
      "  kernel bx in 1 threads 128 {\n    shared a_tile: float16[128, 64]\n"
      "    fragment sums: float32[128, 256]\n    fill sums = 0.0\n"
      "    pipelined k in 3 stages 1 {\n      if n[k] > 0 {\n"
      "        copy a[0 : +128, k * 64 : +64] -> a_tile\n"
      "        parallel i, j in 128, 256 {\n"
      "          sums[i, j] = sums[i, j] + float32(a_tile[i, j % 64])\n        }\n      }\n    }\n"
      "    copy sums[0 : +128, 64 : +64] -> o\n  }\n}";
  EXPECT_THAT(explained(guarded), Not(HasSubstr(kRefilled)));
  expect_interpreted(guarded);
  EXPECT_THAT(explained(program("", "    pipelined k in 3 stages 0 {\n")), Not(HasSubstr(kRefilled)));
}

}  // namespace
}  // namespace tilepilot::testing
