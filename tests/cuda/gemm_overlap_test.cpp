// Loops of two products, the second of which multiplies what becomes of the first one's sums: what runs beside what,
// and where that may not be. The emulator finds no race, and values are the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/interpreted.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;

struct Chain {
  std::string name, text;
  std::string explained;    // a part of it
  bool runs_beside = true;  // the second GEMM beside the work on the next one's sums
};

// Attention whose numbers are exact: the running maximum, what older sums shrink by, a mask.
constexpr const char* kOnline =
    R"(program online(q: float16[2, 384, 64], k: float16[2, 384, 64], v: float16[2, 384, 64],
    o: float32[2, 384, 64]) {
  kernel bx, by in 3, 2 threads 256 {
    shared q_tile: float16[128, 64]
    shared k_tile: float16[32, 64]
    shared v_tile: float16[32, 64]
    fragment s: float32[128, 32]
    fragment p: float16[128, 32]
    fragment sums: float32[128, 64]
    fragment top: float32[128]
    fragment before: float32[128]
    fragment shrink: float32[128]
    fragment row: float32[128]
    fragment total: float32[128]
    copy q[by, bx * 128 : +128, 0 : 64] -> q_tile
    fill sums = 0.0
    fill total = 0.0
    fill top = -inf
    let steps: int32 = (bx + 1) * 4
    pipelined t in steps stages 2 {
      copy k[by, t * 32 : +32, 0 : 64] -> k_tile
      parallel i, j in 128, 32 {
        s[i, j] = select(bx * 128 + i >= t * 32 + j, 0.0, -64.0)
      }
      gemm s += q_tile @ k_tile.T policy full_row
      copy top -> before
      reduce max s -> top axis 1 accumulate
      parallel i in 128 {
        shrink[i] = select(top[i] > before[i], 0.5, 1.0)
      }
      parallel i, j in 128, 32 {
        s[i, j] = float32(int32(top[i] - s[i, j]) % 4)
      }
      reduce sum s -> row axis 1
      parallel i in 128 {
        total[i] = total[i] * shrink[i] + row[i]
      }
      copy s -> p
      parallel i, j in 128, 64 {
        sums[i, j] = sums[i, j] * shrink[i]
      }
      copy v[by, t * 32 : +32, 0 : 64] -> v_tile
      gemm sums += p @ v_tile policy full_row
    }
    parallel i, j in 128, 64 {
      sums[i, j] = sums[i, j] + total[i]
    }
    copy sums -> o[by, bx * 128 : +128, 0 : 64]
  }
})";

// The first block has nothing to do; the work has a tile of its own. `WORK` gives p.
constexpr const char* kTwice = R"(program twice(q: float16[384, 64], k: float16[128, 64], v: float16[128, 64],
    w: float16[128, 64], o: float32[384, 64]) {
  kernel bx in 3 threads 256 {
    shared q_tile: float16[128, 64]
    shared k_tile: float16[32, 64]
    shared v_tile: float16[32, 64]
    shared w_tile: float16[32, 64]
    fragment s: float32[128, 32]
    fragment p: float16[128, 32]
    fragment kept: float32[128, 32]
    fragment sums: float32[128, 64]
    copy q[bx * 128 : +128, 0 : 64] -> q_tile
    fill sums = 0.0
    pipelined t in bx * 2 stages 3 {
      copy k[t * 32 : +32, 0 : 64] -> k_tile
      copy v[t * 32 : +32, 0 : 64] -> v_tile
      copy w[t * 32 : +32, 0 : 64] -> w_tile
      gemm s = q_tile @ k_tile.T policy full_row
      parallel i, j in 128, 32 {
        kept[i, j] = s[i, j] + float32(w_tile[j, 3])
      }
      parallel i, j in 128, 32 {
        p[i, j] = float16(int32(WORK) % 8)
      }
      gemm sums += p @ v_tile policy full_row
    }
    copy sums -> o[bx * 128 : +128, 0 : 64]
  }
})";

std::string exchanged(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string twice(const std::string& work) { return exchanged(kTwice, "WORK", work); }

// With so many iterations in all blocks.
std::string of_steps(const std::string& steps) { return exchanged(twice("kept[i, j]"), "bx * 2", steps); }

const std::vector<Chain>& chains() {
  static const std::vector<Chain> all{
      {"online", kOnline, "gemm into s: beside the iteration's second GEMM"},
      {"twice", twice("kept[i, j]"), "gemm into s: beside the iteration's second GEMM"},
      {"tile_of_both", twice("kept[i, j] + float32(v_tile[j, 1])"),
       "not ahead: `v_tile` is used beside the second GEMM, too", false},
      {"two_steps", of_steps("2"), "gemm into s: beside the iteration's second GEMM"},
      {"tile_of_work", twice("kept[i, j] + float32(w_tile[j, 1])"), "gemm into s: beside the iteration's second GEMM"},
  };
  return all;
}

ir::Program parsed(const std::string& text, SourceMap& sources) {
  DiagnosticList errors;
  auto program = ir::read_text(sources, sources.add("program.ir", text), errors);
  EXPECT_TRUE(program) << text;
  return *program;
}

TEST(ProductChains, AgreeWithTheInterpreter) {
  EmulatedBatch batch(Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const Chain& chain : chains()) {
    SourceMap sources;
    programs.push_back(parsed(chain.text, sources));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << chain.name << ": " << added.error().message;
    const std::string& source = batch.source(*added);
    EXPECT_EQ(source.find("wgmma_wait<1>();") != std::string::npos, chain.runs_beside) << source;
    EXPECT_THAT(*targets::cuda::explanation(programs.back(), Architecture::sm_90a, sources),
                HasSubstr(chain.explained));
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) expect_agreement(batch, k, programs[k], chains()[k].name);
}

// Their numbers are those of the rows of `k`, which are known at launch alone.
TEST(ProductChains, OfAnyNumberOfIterations) {
  const auto rows = [](const std::string& n) {
    std::string text = exchanged(twice("kept[i, j]"), "bx * 2", "((" + n + " + 31) // 32)");
    for (const std::string tensor : {"k", "v", "w"})
      text = exchanged(text, " " + tensor + ": float16[128, 64]", " " + tensor + ": float16[" + n + ", 64]");
    return text;
  };
  EmulatedBatch batch(Architecture::sm_90a);
  const ir::Program program = parse(exchanged(rows("n"), "program twice(", "program twice<n: int32>("));
  const auto added = batch.add(targets::gpu::for_usual_tensors(program));
  ASSERT_TRUE(added.ok()) << added.error().message;
  EXPECT_THAT(batch.source(*added), HasSubstr("wgmma_wait<1>();"));
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (const int64_t n : {0, 24, 32, 64, 100, 160})
    expect_agreement(batch, *added, parse(rows(std::to_string(n))), fmt::format("{} rows", n));
}

// What may not be done, by what the second GEMM needs or the registers that there are.
TEST(ProductChains, StayInOrderWhereTheyMust) {
  const std::string plain = twice("kept[i, j]"), second = "gemm sums += p @ v_tile policy full_row\n";
  std::string wide = kOnline;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"128, 32", "128, 256"}, {"[32, 64]", "[256, 64]"}, {"t * 32", "t * 256"}, {"+32", "+256"}})
    wide = exchanged(wide, from, to);
  const std::string held = exchanged(plain, "fragment kept", "shared own: float16[32, 64]\n    fragment kept");
  const std::string pair = exchanged(held, "own: float16[", "own: float16[2, ");
  const std::vector<std::pair<std::string, std::string>> all{
      {exchanged(plain, "s[i, j] + float32(w_tile[j, 3])", "s[i, j] + sums[i, j] * float32(w_tile[j, 3])"),
       "all work between the GEMMs needs what the second one uses"},
      {wide, "registers of each thread, which has 240"},
      {exchanged(plain, second, second + "      gemm sums += p @ w_tile policy full_row\n"),
       "the iteration has 3 GEMMs"},
      {exchanged(plain, second,
                 second + "      parallel i, j in 128, 64 {\n        sums[i, j] = sums[i, j] * 0.5\n      }\n"),
       "more is computed after the second GEMM"},
      // Sixteen rows are too few for a warpgroup.
      {exchanged(plain, "gemm s = q_tile @ k_tile.T policy full_row",
                 "fill s = 0.0\n      serial part in 8 {\n        gemm s[part * 16 : +16, 0 : 32] = q_tile[part * 16 : "
                 "+16, 0 : 64] @ "
                 "k_tile.T\n      }"),
       "a GEMM is no wgmma that may be asynchronous"},
      {exchanged(exchanged(held, "copy w[t", "copy v_tile -> own\n      copy w[t"), "@ v_tile", "@ own"),
       "`own` is written by the iteration that multiplies it"},
      {exchanged(plain,
                 "gemm s =", "parallel i, j in 128, 32 {\n        s[i, j] = sums[i, j]\n      }\n      gemm s +="),
       "the first GEMM needs the second one of the iteration before"},
      {exchanged(exchanged(exchanged(exchanged(pair, "      copy v[t * 32 : +32, 0 : 64] -> v_tile\n", ""),
                                     "gemm s =", "let side: int32 = t % 2\n      gemm s ="),
                           "fill sums = 0.0", "fill sums = 0.0\n    fill own = 0.5"),
                 "@ v_tile", "@ own[side, 0 : 32, 0 : 64]"),
       "the second GEMM names values of its iteration"},
  };
  EmulatedBatch batch(Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const auto& [text, reason] : all) {
    SourceMap sources;
    const ir::Program program = parsed(text, sources);
    const auto explained = targets::cuda::explanation(program, Architecture::sm_90a, sources);
    ASSERT_TRUE(explained.ok()) << explained.error().message;
    EXPECT_THAT(*explained, HasSubstr(reason));
    if (text == wide) continue;  // takes long
    programs.push_back(program);
    const auto added = batch.add(program);
    ASSERT_TRUE(added.ok()) << reason << ": " << added.error().message;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) expect_agreement(batch, k, programs[k]);
}

}  // namespace
}  // namespace tilepilot::testing
