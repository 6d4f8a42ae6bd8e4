// GEMMs of an iteration that run beside other work: in which order they are started and waited for, where that may not
// be, and that the emulator finds no race and the interpreter's values. Sums that are added to tensors as vectors.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"
#include "compiler/targets/cuda/explain.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;
using ::testing::Not;

// The five GEMMs of attention's backward pass, with exact numbers in the place of exponentials. Keys own the block.
constexpr const char* kBackward =
    R"(program backward(q: float16[128, 32], k: float16[64, 32], v: float16[64, 32], g: float16[128, 32],
    dq: float32[128, 32], dk: float32[64, 32], dv: float32[64, 32]) {
  kernel bx in 1 threads 128 {
    shared k_tile: float16[64, 32]
    shared v_tile: float16[64, 32]
    shared q_tile: float16[64, 32]
    shared g_tile: float16[64, 32]
    shared ds_tile: float16[64, 64]
    fragment s: float32[64, 64]
    fragment p: float16[64, 64]
    fragment dp: float32[64, 64]
    fragment ds: float16[64, 64]
    fragment dk_sum: float32[64, 32]
    fragment dv_sum: float32[64, 32]
    fragment dq_sum: float32[64, 32]
    copy k -> k_tile
    copy v -> v_tile
    fill dk_sum = 0.0
    fill dv_sum = 0.0
    pipelined t in 2 stages 2 {
      copy q[t * 64 : +64, 0 : 32] -> q_tile
      fill s = 0.0
      gemm s += k_tile @ q_tile.T policy full_row
      parallel i, j in 64, 64 {
        s[i, j] = float32(int32(s[i, j]) & 3)
      }
      copy g[t * 64 : +64, 0 : 32] -> g_tile
      fill dp = 0.0
      gemm dp += v_tile @ g_tile.T policy full_row
      copy s -> p
      gemm dv_sum += p @ g_tile policy full_row
      parallel i, j in 64, 64 {
        ds[i, j] = float16(int32(s[i, j] * dp[i, j]) & 3)
      }
      gemm dk_sum += ds @ q_tile policy full_row
      copy ds -> ds_tile
      fill dq_sum = 0.0
      gemm dq_sum += ds_tile.T @ k_tile policy full_row
      parallel i, j in 64, 32 {
        atomic add dq[t * 64 + i, j], dq_sum[i, j]
      }
    }
    copy dk_sum -> dk
    copy dv_sum -> dv
  }
})";

std::string with_part(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The lines of the kernel that start GEMMs, wait for them, or use their sums, shortened to their first words.
std::vector<std::string> order_of(const std::string& source, const std::vector<std::string>& words) {
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& word : words)
    for (size_t at = source.find(word, source.find("extern \"C\"")); at != std::string::npos;
         at = source.find(word, at + 1))
      found.emplace_back(at, word);
  std::sort(found.begin(), found.end());
  std::vector<std::string> order;
  for (const auto& [at, word] : found) order.push_back(word);
  return order;
}

TEST(AsyncGemms, AreStartedEarlyAndWaitedForLate) {
  const std::string source = expect_interpreted(kBackward, {Architecture::sm_90a});
  EXPECT_THAT(order_of(source, {"(&s[0], ", "(&dp[0], ", "(&dv_sum[0], ", "(&dk_sum[0], ", "(&dq_sum[0], ",
                                "wgmma_wait<0>", "wgmma_wait<1>", "& 3)", "add_vector"}),
              ::testing::ElementsAre("(&s[0], ", "(&dp[0], ", "wgmma_wait<1>", "& 3)", "(&dv_sum[0], ", "wgmma_wait<1>",
                                     "& 3)", "(&dk_sum[0], ", "(&dq_sum[0], ", "wgmma_wait<0>", "add_vector"))
      << source;
}

// A GEMM clears its sums itself, where nothing else needs them cleared.
TEST(AsyncGemms, ClearTheirSums) {
  const auto clears = [](const std::string& text) {
    return order_of(expect_interpreted(text, {Architecture::sm_90a}), {" = 0.0f;"}).size();
  };
  EXPECT_EQ(clears(kBackward), 2U);  // those before the loop
  const std::string read = "parallel i, j in 64, 64 {\n        s[i, j] = s[i, j] + dp[i, j]\n      }\n";
  EXPECT_EQ(clears(with_part(kBackward, "fill dp = 0.0\n", "fill dp = 0.0\n      " + read)), 3U);
  EXPECT_EQ(clears(with_part(kBackward, "fill dp = 0.0\n", "fill dp = 1.0\n")), 2U);
}

TEST(AsyncGemms, WaitWhereOperandsAreOverwritten) {
  // p is written again while the GEMM that reads it may run; so is the tile of ds.
  const std::string again = with_part(kBackward, "gemm dk_sum += ds @",
                                      "parallel i, j in 64, 64 {\n        p[i, j] = ds[i, j]\n      }\n      gemm "
                                      "dk_sum += p @");
  expect_interpreted(again, {Architecture::sm_90a});
  const std::string twice = with_part(kBackward, "parallel i, j in 64, 32 {\n        atomic",
                                      "fill ds_tile = 1.0\n      gemm dq_sum += ds_tile.T @ k_tile policy full_row\n"
                                      "      parallel i, j in 64, 32 {\n        atomic");
  expect_interpreted(twice, {Architecture::sm_90a});
}

TEST(AsyncGemms, SayThatRegistersAreShort) {
  std::string wide = kBackward;  // heads of 128, and something beside
  for (size_t at = wide.find("32"); at != std::string::npos; at = wide.find("32", at + 3)) {
    const bool is_type = std::isalpha(static_cast<unsigned char>(wide[at - 1])) != 0;
    if (!is_type) wide.replace(at, 2, "128");
  }
  wide = with_part(wide, "fragment s:", "fragment more: float32[64, 16]\n    fragment s:");
  wide = with_part(wide, "fill dk_sum = 0.0", "fill dk_sum = 0.0\n    fill more = 0.0");
  wide = with_part(wide, "fill s = 0.0",
                   "parallel i, j in 64, 16 {\n        more[i, j] = more[i, j] + 1.0\n      }\n      fill s = 0.0");
  const std::string use = "copy s -> p\n      gemm dv_sum += p @ g_tile policy full_row\n      ";
  wide = with_part(with_part(wide, use, ""), "fill dp = 0.0", use + "fill dp = 0.0");
  SourceMap sources;
  DiagnosticList errors;
  const auto program = ir::read_text(sources, sources.add("program.ir", wide), errors);
  ASSERT_TRUE(program) << wide;
  const auto explained = targets::cuda::explanation(*program, Architecture::sm_90a, sources);
  ASSERT_TRUE(explained.ok()) << explained.error().message;
  EXPECT_THAT(*explained, HasSubstr("not beside other work: that takes"));
}

// Both GEMMs add to s, which the second one's warpgroups share otherwise: it goes through shared memory, after a wait.
TEST(AsyncGemms, WaitForSumsThatAreHeldOtherwise) {
  expect_interpreted(R"(program two(a: float16[128, 64], b: float16[64, 64], o: float32[128, 64]) {
  kernel bx in 1 threads 256 {
    shared a_tile: float16[128, 64]
    shared b_tile: float16[64, 64]
    fragment s: float32[128, 64]
    copy a -> a_tile
    copy b -> b_tile
    serial t in 2 {
      fill s = 0.0
      gemm s += a_tile @ b_tile.T policy full_col
      gemm s += a_tile @ b_tile policy full_col
    }
    copy s -> o
  }
})",
                     {Architecture::sm_90a});
}

// A tile that threads write is read by wgmma after no barrier but that inside of a reduction.
TEST(AsyncGemms, SeeWhatThreadsWroteBeforeAReduction) {
  const std::string source =
      expect_interpreted(R"(program late(a: float16[3, 64, 64], b: float16[64, 64], o: float32[64], m: int32[1]) {
  kernel bx in 1 threads 256 {
    shared a_tile: float16[64, 64]
    shared b_tile: float16[64, 64]
    fragment s: float32[64, 64]
    fragment sums: float32[64]
    fill a_tile = 1.0
    copy b -> b_tile
    fill s = 0.0
    serial t in (m[0] & 1) + 2 {
      gemm s += a_tile.T @ b_tile.T policy full_row
      copy a[t, 0 : 64, 0 : 64] -> a_tile
      reduce sum s -> sums axis 1
    }
    copy sums -> o
  }
})",
                         {Architecture::sm_90a});
  EXPECT_THAT(source, HasSubstr("wgmma_m64n32k16"));
}

// What a block does once, it does once behind warp roles, too.
TEST(AsyncGemms, LeaveSingleUpdatesSingle) {
  expect_interpreted(R"(program once(a: float16[512, 32], w: float16[128, 32], n: int32[4], o: float32[128, 32]) {
  kernel bx in 4 threads 256 {
    shared a_tile: float16[128, 32]
    shared w_tile: float16[32, 32]
    fragment s: float32[128, 32]
    fill s = 0.0
    pipelined k in 4 stages 2 {
      copy a[k * 128 : +128, 0 : 32] -> a_tile
      copy w[k * 32 : +32, 0 : 32] -> w_tile
      gemm s += a_tile @ w_tile
    }
    parallel i in 1 {
      atomic add n[bx], 1
    }
    if bx == 0 {
      copy s -> o
    }
  }
})",
                     {Architecture::sm_90a});
}

constexpr const char* kSums = R"(program sums(x: TYPE[64, 64], y: TYPE[100, 70], n: int32[1]) {
  kernel bx in 2 threads 128 {
    shared tile: TYPE[64, 64]
    fragment held: TYPE[64, 64]
    copy x -> tile
    copy tile -> held
    parallel i, j in 64, 64 {
      atomic add y[i + START, j + COLUMN], held[i, j]
    }
  }
})";

std::string sums(const std::string& type, const std::string& start, const std::string& column) {
  std::string text = kSums;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"TYPE", type}, {"TYPE", type}, {"TYPE", type}, {"TYPE", type}, {"START", start}, {"COLUMN", column}})
    text = with_part(text, from, to);
  return text;
}

TEST(VectorSums, AddNeighboursTogether) {
  for (const auto& [type, width] : {std::pair{"float32", "<8>"}, {"float16", "<4>"}, {"bfloat16", "<4>"}}) {
    const std::string source = expect_interpreted(sums(type, "0", "0"), {Architecture::sm_80, Architecture::sm_90a});
    EXPECT_THAT(source, HasSubstr(std::string("add_vector") + width)) << source;
    EXPECT_THAT(expect_interpreted(sums(type, "0", "0"), {Architecture::sm_80}), Not(HasSubstr("add_vector<")));
  }
}

// What lies outside is dropped; where vectors would not be aligned, elements are added one by one.
TEST(VectorSums, StayWithinTheTensorAndAligned) {
  EXPECT_THAT(expect_interpreted(sums("float32", "n[0] + 50", "8"), {Architecture::sm_90a}),
              HasSubstr("add_vector<8>"));
  EXPECT_THAT(expect_interpreted(sums("float32", "0", "5"), {Architecture::sm_90a}), Not(HasSubstr("add_vector<")));
  EXPECT_THAT(expect_interpreted(sums("int32", "0", "0"), {Architecture::sm_90a}), Not(HasSubstr("add_vector<")));
}

// What `T.atomic_addx4` is: lanes of one thread.
TEST(VectorSums, OfLanesAreNeighboursOfTheLoop) {
  const std::string loop = "parallel i, j in 64, 64 {\n      atomic add y[i + 0, j + 0], held[i, j]\n    }";
  const auto of = [&](const std::string& body) {
    const std::string text = with_part(sums("float32", "0", "0"), loop, "parallel i, j in 64, 16 {\n" + body + "\n}");
    return expect_interpreted(text, {Architecture::sm_80, Architecture::sm_90a});
  };
  const std::string four = "vectorized c in 4 {\n atomic add y[n[0] + i, j * 4 + c], tile[i, j * 4 + c]\n}";
  EXPECT_THAT(of(with_part(four, "n[0] + i", "i")), HasSubstr("add_vector<8>"));  // rows of 280 bytes
  EXPECT_THAT(of("if n[0] < 2 {\n" + with_part(four, "n[0] + i", "i") + "\n}"), HasSubstr("add_vector<8>"));
  EXPECT_THAT(of(four + "\n" + with_part(four, "n[0] + i", "i")), Not(HasSubstr("add_vector<")));
}

}  // namespace
}  // namespace tilepilot::testing
