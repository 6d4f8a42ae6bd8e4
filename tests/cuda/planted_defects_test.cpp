// Defects planted in generated kernels: each kind is found, at the line of the program where it is. And whatever orders
// threads, copies and products is needed: without any one of these calls the emulator finds something wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using emulator::DefectKind;
using targets::gpu::Architecture;

// Copies that run ahead, and tensor cores.
constexpr const char* kPipelinedProduct =
    R"(program gemm(a: float16[64, 128], b: float16[128, 64], c: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    shared b_tile: float16[32, 64]
    fragment sums: float32[64, 64]
    fill sums = 0.0
    pipelined k in 4 stages 3 {
      copy a[0 : 64, k * 32 : +32] -> a_tile
      copy b[k * 32 : +32, 0 : 64] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    copy sums -> c
  }
})";

// A producer warpgroup loads tiles; persistent blocks store several tiles of the result by TMA.
constexpr const char* kPersistentProduct =
    R"(program gemm(a: float16[384, 160], b: float16[160, 128], c: float16[384, 128]) {
  kernel bx, by in 2, 3 threads 256 {
    shared a_tile: float16[128, 32]
    shared b_tile: float16[32, 64]
    fragment sums: float32[128, 64]
    fill sums = 0.0
    pipelined k in 5 stages 3 {
      copy a[by * 128 : +128, k * 32 : +32] -> a_tile
      copy b[k * 32 : +32, bx * 64 : +64] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    copy sums -> c[by * 128 : +128, bx * 64 : +64]
  }
})";

// GEMMs that run beside each other and beside work, over sums that one of them clears.
constexpr const char* kChain =
    R"(program chain(a: float16[64, 64], b: float16[192, 64], c: float32[64, 64], d: float32[192, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 64]
    shared b_tile: float16[64, 64]
    shared s_tile: float16[64, 64]
    fragment s: float32[64, 64]
    fragment u: float32[64, 64]
    fragment sums: float32[64, 64]
    copy a -> a_tile
    fill sums = 0.0
    pipelined t in 3 stages 2 {
      copy b[t * 64 : +64, 0 : 64] -> b_tile
      gemm s = a_tile @ b_tile.T policy full_row
      gemm sums += b_tile.T @ a_tile policy full_row
      parallel i, j in 64, 64 {
        s_tile[i, j] = float16(s[i, j])
      }
      gemm u = s_tile @ a_tile policy full_row
      parallel i, j in 64, 64 {
        atomic add d[t * 64 + i, j], u[i, j]
      }
    }
    copy sums -> c
  }
})";

// Sums over all threads, values that other threads wrote, tails, several blocks.
constexpr const char* kRows = R"(program rows(x: float32[6, 500], y: float32[6, 500], z: float32[6], n: int32[4]) {
  kernel bx in 6 threads 128 {
    shared tile: float32[512]
    fragment row: float32[1, 512]
    fragment total: float32[1]
    copy x[bx, 0 : +512] -> tile
    parallel i, j in 1, 512 {
      row[i, j] = tile[511 - j * 3 % 512] * 2.0
    }
    reduce sum row -> total axis 1
    parallel j in 500 {
      y[bx, j] = tile[j] + total[0]
    }
    parallel i in 1 {
      z[bx] = total[0]
    }
    parallel j in 64 {
      atomic add n[j % 4], 1
    }
  }
})";

constexpr const char* kBlocks = R"(program twice(x: float32[256], y: float32[256]) {
  kernel bx in 4 threads 64 {
    parallel i in 64 {
      y[bx * 64 + i] = x[bx * 64 + i] * 2.0
    }
  }
})";

struct Sown {
  std::string name;
  Architecture architecture;
  const char* program;
  std::string before, after;
  DefectKind kind;
  std::string line;  // of the program, that one of the defect's parts is at
};

std::vector<Sown> sown_in_rows() {
  const auto older = Architecture::sm_80;
  const std::string other = "other_2 = shuffle_xor(total_part[0], 2, 32);",
                    scratch = "total_scratch[thread] = total_part[0];";
  return {
      {"no barrier", older, kRows, "sync_threads();", "", DefectKind::uninitialised_read, "row[i, j] ="},
      {"blocks that write the same", older, kBlocks, "y[bx * 64", "y[bx * 32", DefectKind::data_race,
       "y[bx * 64 + i] ="},
      {"updates that are not atomic", older, kRows, "atomic_update<add_update>(n + t0 % 4, 1)", "n[t0 % 4] += 1",
       DefectKind::data_race, "atomic add"},
      {"beyond a buffer", older, kRows, "thread < 125", "thread < 127", DefectKind::out_of_bounds, "copy x["},
      {"beyond a tile", older, kRows, "tile[511 -", "tile[512 -", DefectKind::out_of_bounds, "row[i, j] ="},
      {"misaligned", older, kRows, "x + bx * 500 +", "x + bx * 500 + 1 +", DefectKind::misaligned, "copy x["},
      {"no start of a sum", older, kRows, "total_part[0] = 0.0f;", "", DefectKind::uninitialised_read, "reduce sum"},
      {"no value for others", older, kRows, scratch, "", DefectKind::uninitialised_read, "reduce sum"},
      {"threads that leave", older, kRows, scratch, "if (thread >= 96) return; " + scratch, DefectKind::barrier_misuse,
       "reduce sum"},
      {"half a warp", older, kRows, other,
       "other_2 = thread % 2 == 0 ? shuffle_xor(total_part[0], 2, 32) : total_part[0];", DefectKind::divergence,
       "reduce sum"},
  };
}

std::vector<Sown> sown_in_products() {
  const auto older = Architecture::sm_80, newer = Architecture::sm_90a;
  const std::string announced = "barrier_arrive_expect(full + 1, 8192);";
  return {
      {"no wait for copies", older, kPipelinedProduct, "wait_copies<1>();", "", DefectKind::pending_copy, "gemm sums"},
      {"a wait for too few", older, kPipelinedProduct, "wait_copies<1>();", "wait_copies<2>();",
       DefectKind::pending_copy, "gemm sums"},
      {"no wait for a tile", newer, kPipelinedProduct, "barrier_wait(full + k % 3, (k / 3) & 1);", "",
       DefectKind::pending_copy, "gemm sums"},
      {"the phase before", newer, kPipelinedProduct, "(k / 3) & 1", "(k / 3 + 1) & 1", DefectKind::deadlock,
       "pipelined k"},
      {"the phase before, by name", newer, kPipelinedProduct, "(k / 3) & 1", "(k / 3 + 1) & 1",
       DefectKind::barrier_misuse, "pipelined k"},
      {"no wait for a product", newer, kPipelinedProduct, "wgmma_wait<0>();", "", DefectKind::uninitialised_read,
       "copy sums -> c"},
      {"no fence for a store", newer, kPipelinedProduct, "fence_async();", "", DefectKind::missing_fence,
       "copy sums -> c"},
      {"no wait for a store", newer, kPipelinedProduct, "wait_stores_read<0>();", "", DefectKind::pending_copy,
       "copy sums -> c"},
      {"no fence for barriers", newer, kPipelinedProduct, "fence_barriers();", "", DefectKind::missing_fence,
       "copy a[0 : 64"},
      {"a barrier that nobody made", newer, kPipelinedProduct, "barrier_init(full + 1, 1);", "",
       DefectKind::barrier_misuse, "copy b[k * 32 : +32, 0 : 64]"},
      {"an arrival too many", newer, kPipelinedProduct, announced, announced + " barrier_arrive(full + 1);",
       DefectKind::barrier_misuse, "copy b[k * 32 : +32, 0 : 64]"},
      {"more bytes than come", newer, kPipelinedProduct, announced, "barrier_arrive_expect(full + 1, 8208);",
       DefectKind::deadlock, "pipelined k"},
      {"a box at no place for it", newer, kPipelinedProduct, "tma_load_2d(a_tile,", "tma_load_2d(a_tile + 8,",
       DefectKind::misaligned, "copy a[0 : 64"},
      {"a stage that is not given back", newer, kPersistentProduct, "barrier_arrive(empty + (k + 2) % 3);", "",
       DefectKind::deadlock, "pipelined k"},
      {"a barrier of too many", newer, kPersistentProduct, "sync_named(1, 256);", "sync_named(1, 288);",
       DefectKind::deadlock, "copy sums -> c"},
  };
}

int64_t line_of(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(at, text.size())), '\n') + 1;
}

TEST(PlantedInGeneratedCode, IsFoundAtItsLine) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    EmulatedBatch batch(architecture);
    std::vector<ir::Program> programs;
    std::vector<Sown> all = sown_in_rows();
    for (Sown& one : sown_in_products()) all.push_back(std::move(one));
    std::erase_if(all, [&](const Sown& one) { return one.architecture != architecture; });
    for (const Sown& one : all) {
      SourceMap sources;
      DiagnosticList errors;
      programs.push_back(*ir::read_text(sources, sources.add("program.ir", one.program), errors));
      const auto added = batch.add(programs.back(), &sources);
      ASSERT_TRUE(added.ok()) << added.error().message;
      batch.plant(*added, one.before, one.after);
    }
    batch.compile();
    if (HasFatalFailure()) return;
    for (size_t k = 0; k < all.size(); ++k) {
      const ir::testing::RandomArguments given(programs[k], 1);
      const std::string wrong = batch.run(k, to_launch(given.values()));
      const int64_t line = line_of(all[k].program, all[k].line);
      const auto& defects = batch.defects();
      EXPECT_TRUE(std::any_of(defects.begin(), defects.end(),
                              [&](const emulator::Defect& defect) {
                                return defect.kind == all[k].kind &&
                                       (defect.first.line == line || defect.second.line == line);
                              }))
          << all[k].name << ", line " << line << ": " << wrong << (defects.empty() ? "" : spelled(defects[0].second));
    }
  }
}

// Has no registers for a second stage: each tile is filled again once it has been read.
constexpr const char* kOneStage =
    R"(program one_stage(a: float16[128, 192], b: float16[192, 256], o: float16[128, 256]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[128, 64]
    shared b_tile: float16[64, 256]
    fragment sums: float32[128, 256]
    fill sums = 0.0
    pipelined k in 3 stages 1 {
      copy a[0 : +128, k * 64 : +64] -> a_tile
      copy b[k * 64 : +64, 0 : +256] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    copy sums -> o
  }
})";

// What makes others wait or know, as it is called in generated text.
using Calls = std::vector<std::string>;
const Calls kOrdering{"sync_threads();",  "wait_copies<",   "sync_named(",    "barrier_wait(",
                      "wgmma_wait<",      "wgmma_fence()",  "fence_async();", "barrier_init(",
                      "fence_barriers()", "barrier_arrive", "wait_stores"};

// The places of such calls: of each line that has one, where it begins and ends.
std::vector<std::pair<size_t, size_t>> places_of(const Calls& calls, const std::string& source) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t begin = source.find("extern \"C\""); begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const std::string line = source.substr(begin, end - begin);
    if (std::any_of(calls.begin(), calls.end(),
                    [&](const std::string& call) { return line.find(call) != std::string::npos; }))
      places.emplace_back(begin, end);
    begin = end + 1;
  }
  return places;
}

void expect_all_needed(const char* text, Architecture architecture, const Calls& calls = kOrdering) {
  const ir::Program program = parse(text);
  EmulatedBatch batch(architecture);
  const auto whole = batch.add(program);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const size_t count = places_of(calls, batch.source(*whole)).size();
  std::vector<std::string> lines;
  while (lines.size() < count) {
    const auto without = batch.add(program);
    ASSERT_TRUE(without.ok());
    const std::string source = batch.source(*without);
    const auto place = places_of(calls, source)[lines.size()];
    lines.push_back(source.substr(place.first, place.second - place.first));
    batch.plant(*without, source, source.substr(0, place.first) + source.substr(place.second));
  }
  EXPECT_GT(lines.size(), 1U);
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  const ir::testing::RandomArguments right(program, 1);
  EXPECT_EQ(batch.run(*whole, to_launch(right.values())), "");
  for (size_t k = 0; k < lines.size(); ++k) {
    const ir::testing::RandomArguments given(program, 1);
    EXPECT_NE(batch.run(k + 1, to_launch(given.values())), "")
        << "nothing is missed without number " << k << ", " << lines[k] << "\n"
        << batch.source(*whole);
  }
}

TEST(PlantedInGeneratedCode, NoWaitOrFenceIsTooMany) {
  expect_all_needed(kRows, Architecture::sm_80);
  expect_all_needed(kPipelinedProduct, Architecture::sm_80);
  expect_all_needed(kPipelinedProduct, Architecture::sm_90a);
  expect_all_needed(kPersistentProduct, Architecture::sm_90a);
  expect_all_needed(kOneStage, Architecture::sm_90a, {"sync_threads();", "barrier_wait(", "wgmma_wait<"});
  expect_all_needed(kChain, Architecture::sm_90a, {"wgmma_wait<"});
}

}  // namespace
}  // namespace tilepilot::testing
