// Programs that make copies and products asynchronous themselves: the text has the machine's instructions for them, the
// emulator computes what the interpreter does and finds nothing wrong; where a wait, an announcement or a phase is
// missing it does, at the program's line.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/passes/pipeline.h"
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
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct ManualProgram {
  std::string name, text;
  std::vector<std::string> has, lacks;  // of the text for sm_90a
};

// One warpgroup asks for tiles, the other one multiplies and keeps one product under way.
const ManualProgram kRing{"ring",
                          R"(program gemm(a: float16[128, 296], b: float16[296, 64], c: float32[128, 64]) {
  kernel bx in 1 threads 256 {
    shared a_ring: float16[3, 128, 64]
    shared b_ring: float16[3, 64, 64]
    fragment sums: float32[128, 64]
    barrier full: uint64[3] arrivals [128, 128, 128]
    barrier empty: uint64[3] arrivals [128, 128, 128]
    roles 0 {
      async raise_registers 240
      fill sums = 0.0
      serial k in 5 {
        on full[k % 3] wait k // 3 % 2
        gemm sums += a_ring[k % 3, 0 : 128, 0 : 64] @ b_ring[k % 3, 0 : 64, 0 : 64] asynchronous
        async wait_gemms 1
        if k > 0 {
          on empty[(k + 2) % 3] arrive
        }
      }
      async wait_gemms
      copy sums -> c
    }
    roles 1 {
      async lower_registers 24
      serial k in 5 {
        on empty[k % 3] wait (k // 3 + 1) % 2
        copy a[0 : 128, k * 64 : +64] -> a_ring[k % 3, 0 : 128, 0 : 64] mode bulk_load counting full[k % 3]
        copy b[k * 64 : +64, 0 : 64] -> b_ring[k % 3, 0 : 64, 0 : 64] mode bulk_load counting full[k % 3]
        on full[k % 3] arrive
      }
    }
  }
})",
                          {"tma_load_2d(a_ring", "tma_load_2d(b_ring", "barrier_expect(full + k", "wgmma_wait<1>",
                           "wgmma_wait<0>", "set_registers_up<240>", "set_registers_down<24>"},
                          {"copy_vector<16>(a_ring"}};

// Two products that run beside the threads' own work: scores of the next keys, and sums of the values before.
const ManualProgram kAttention{
    "attention",
    R"(program attend(q: float16[64, 64], k: float16[256, 64], v: float16[256, 64], o: float32[64, 64]) {
  kernel bx in 1 threads 256 {
    shared q_tile: float16[64, 64]
    shared k_ring: float16[2, 64, 64]
    shared v_ring: float16[2, 64, 64]
    fragment s: float32[64, 64]
    fragment p: float16[64, 64]
    fragment p_next: float16[64, 64]
    fragment sums: float32[64, 64]
    barrier q_full: uint64[1] arrivals [128]
    barrier k_full: uint64[2] arrivals [128, 128]
    barrier k_empty: uint64[2] arrivals [128, 128]
    barrier v_full: uint64[2] arrivals [128, 128]
    barrier v_empty: uint64[2] arrivals [128, 128]
    roles 1 {
      copy q -> q_tile mode bulk_load counting q_full
      on q_full arrive
      serial t in 4 {
        on k_empty[t % 2] wait (t // 2 + 1) % 2
        copy k[t * 64 : +64, 0 : 64] -> k_ring[t % 2, 0 : 64, 0 : 64] mode bulk_load counting k_full[t % 2]
        on k_full[t % 2] arrive
        on v_empty[t % 2] wait (t // 2 + 1) % 2
        copy v[t * 64 : +64, 0 : 64] -> v_ring[t % 2, 0 : 64, 0 : 64] mode bulk_load counting v_full[t % 2]
        on v_full[t % 2] arrive
      }
    }
    roles 0 {
      fill sums = 0.0
      on q_full wait 0
      on k_full[0] wait 0
      gemm s = q_tile @ k_ring[0, 0 : 64, 0 : 64].T asynchronous
      async wait_gemms
      on k_empty[0] arrive
      parallel i, j in 64, 64 {
        p[i, j] = float16(int32(s[i, j] * 4.0) % 4)
      }
      serial t in 4 {
        if t < 3 {
          on k_full[(t + 1) % 2] wait (t + 1) // 2 % 2
          gemm s = q_tile @ k_ring[(t + 1) % 2, 0 : 64, 0 : 64].T asynchronous
        }
        on v_full[t % 2] wait t // 2 % 2
        gemm sums += p @ v_ring[t % 2, 0 : 64, 0 : 64] asynchronous
        async wait_gemms 1
        if t < 3 {
          on k_empty[(t + 1) % 2] arrive
        }
        parallel i, j in 64, 64 {
          p_next[i, j] = float16(int32(s[i, j] * 4.0) % 4)
        }
        async wait_gemms
        on v_empty[t % 2] arrive
        copy p_next -> p
      }
      copy sums -> o
    }
  }
})",
    {"tma_load_2d(k_ring", "tma_load_2d(v_ring", "_ra_tb(&sums", "wgmma_wait<1>", "pin_registers<32>(&s["},
    {"copy_vector<16>(k_ring"}};

// The same threads ask for tiles and multiply. They say by barriers when a tile has been read.
const ManualProgram kAlone{"alone",
                           R"(program gemm(a: float16[64, 256], b: float16[256, 64], c: float16[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_ring: float16[2, 64, 64]
    shared b_ring: float16[2, 64, 64]
    fragment sums: float32[64, 64]
    barrier full: uint64[2] arrivals [128, 128]
    barrier empty: uint64[2] arrivals [128, 128]
    fill sums = 0.0
    serial k in 4 {
      on empty[k % 2] wait (k // 2 + 1) % 2
      copy a[0 : 64, k * 64 : +64] -> a_ring[k % 2, 0 : 64, 0 : 64] mode bulk_load counting full[k % 2]
      copy b[k * 64 : +64, 0 : 64] -> b_ring[k % 2, 0 : 64, 0 : 64] mode bulk_load counting full[k % 2]
      on full[k % 2] arrive
      on full[k % 2] wait k // 2 % 2
      gemm sums += a_ring[k % 2, 0 : 64, 0 : 64] @ b_ring[k % 2, 0 : 64, 0 : 64]
      on empty[k % 2] arrive
    }
    parallel i, j in 64, 64 {
      c[i, j] = float16(int32(sums[i, j]) % 64)
    }
  }
})",
                           {"tma_load_2d(a_ring"},
                           {}};

// A part of a tile's columns is a panel of it; the loop's variable chooses it.
const ManualProgram kPanels{"panels",
                            R"(program gemm(a: float16[64, 256], b: float16[64, 256], c: float32[64, 64]) {
  kernel bx in 1 threads tx in 128 {
    shared a_tile: float16[64, 256]
    shared b_tile: float16[64, 256]
    fragment sums: float32[64, 64]
    barrier full: uint64[4] arrivals [128, 128, 128, 128]
    unrolled j in 4 {
      copy a[0 : 64, j * 64 : +64] -> a_tile[0 : 64, j * 64 : +64] mode bulk_load counting full[j]
      copy b[0 : 64, j * 64 : +64] -> b_tile[0 : 64, j * 64 : +64] mode bulk_load counting full[j]
      on full[j] arrive
    }
    fill sums = 0.0
    unrolled j in 4 {
      on full[j] wait 0
      gemm sums += a_tile[0 : 64, j * 64 : +64] @ b_tile[0 : 64, j * 64 : +64].T asynchronous
    }
    async wait_gemms
    copy sums -> c
  }
})",
                            {"tma_load_2d(a_tile + j * 4096", "wgmma_m64n64k16"},
                            {}};

// Tiles that threads fill and TMA stores, again and again, without a GEMM.
const ManualProgram kStores{"stores",
                            R"(program twice(a: float32[256, 64], c: float32[256, 64]) {
  kernel bx in 1 threads tx in 128 {
    shared tile: float32[2, 32, 64]
    fragment held: float32[32, 64]
    serial t in 8 {
      copy a[t * 32 : +32, 0 : 64] -> held
      async wait_stores 1
      parallel i, j in 32, 64 {
        tile[t % 2, i, j] = held[i, j] * 2.0
      }
      copy tile[t % 2, 0 : 32, 0 : 64] -> c[t * 32 : +32, 0 : 64] mode bulk_store
      async commit_stores
    }
    async wait_stores
  }
})",
                            {"tma_store_2d(c_map", "wait_stores<1>", "commit_stores();"},
                            {}};

// Rows that TMA cannot copy, and one thread that tells of them.
const ManualProgram kAtOnce{"at_once",
                            R"(program rows(a: float32[64, 6], c: float32[64, 6]) {
  kernel bx in 1 threads tx in 256 {
    shared tile: float32[64, 6]
    barrier full: uint64[1] arrivals [1]
    if tx < 128 {
      copy a -> tile mode bulk_load counting full
      if tx == 0 {
        on full arrive
      }
    } else {
      on full wait 0
      copy tile -> c
    }
  }
})",
                            {"barrier_arrive(full + 0)"},
                            {"tma_load", "barrier_expect"}};

// Threads' own asynchronous copies, which they wait for before all of them read.
const ManualProgram kGroups{"groups",
                            R"(program shifted(a: float32[128, 64], c: float32[128, 64]) {
  kernel bx in 1 threads tx in 128 {
    shared tile: float32[2, 32, 64]
    copy a[0 : 32, 0 : 64] -> tile[0, 0 : 32, 0 : 64] mode group
    async commit_copies
    serial t in 4 {
      if t < 3 {
        copy a[t * 32 + 32 : +32, 0 : 64] -> tile[(t + 1) % 2, 0 : 32, 0 : 64] mode group
      }
      async commit_copies
      async wait_copies 1
      parallel i, j in 32, 64 {
        c[t * 32 + i, j] = tile[t % 2, 31 - i, j]
      }
    }
  }
})",
                            {"async_copy<16>", "wait_copies<1>"},
                            {}};

const std::vector<const ManualProgram*> kPrograms{&kRing, &kAttention, &kAlone, &kPanels, &kStores, &kAtOnce, &kGroups};

void expect_programs_interpreted(Architecture architecture) {
  EmulatedBatch batch(architecture);
  std::vector<ir::Program> programs;
  for (const ManualProgram* one : kPrograms) {
    programs.push_back(parse(one->text));
    const auto added = batch.add(programs.back());
    ASSERT_TRUE(added.ok()) << one->name << ": " << added.error().message;
    if (architecture == Architecture::sm_80) continue;
    for (const std::string& part : one->has) EXPECT_THAT(batch.source(*added), HasSubstr(part)) << one->name;
    for (const std::string& part : one->lacks) EXPECT_THAT(batch.source(*added), Not(HasSubstr(part))) << one->name;
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < programs.size(); ++k) {
    const ir::testing::RandomArguments expected(programs[k], 1), actual(programs[k], 1);
    interpret::Options options;
    options.functions = &prelude_functions();
    const auto explicit_program = passes::explicit_threads(programs[k]);
    ASSERT_TRUE(explicit_program.ok()) << kPrograms[k]->name << ": " << explicit_program.error().message;
    const auto fault = interpret::run(*explicit_program, expected.values(), options);
    ASSERT_FALSE(fault) << kPrograms[k]->name << ": " << fault->message;
    EXPECT_EQ(batch.run(k, to_launch(actual.values())), "") << kPrograms[k]->name << "\n" << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << kPrograms[k]->name << "\n" << batch.source(k);
  }
}

TEST(ManualAsynchrony, MeansWhatTheProgramSays) { expect_programs_interpreted(Architecture::sm_90a); }
TEST(ManualAsynchrony, IsDoneAtOnceWithoutACopyEngine) { expect_programs_interpreted(Architecture::sm_80); }

TEST(ManualAsynchrony, Compiles) {
  SKIP_WITHOUT_NVRTC();
  for (const ManualProgram* one : kPrograms) {
    const auto code = targets::cuda::generate(parse(one->text), Architecture::sm_90a);
    ASSERT_TRUE(code.ok()) << one->name << ": " << code.error().message;
    DiagnosticList warnings;
    const auto made = nvrtc().compile(targets::cuda::prelude() + code->source, "sm_90a", warnings);
    ASSERT_TRUE(made.ok()) << one->name << ": " << made.error().message << "\n" << code->source;
    EXPECT_THAT(made->log, Not(HasSubstr("C75"))) << one->name;  // products that the assembler runs one by one
  }
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// All threads meet once the barriers are made, and no more: the program's own barriers say the rest. Without them the
// tile's readers meet before it is filled again.
TEST(ManualAsynchrony, ThreadsMeetOnlyWhereTheProgramDoesNotSayWhen) {
  const auto source = [](const std::string& text) {
    return targets::cuda::generate(parse(text), Architecture::sm_90a)->source;
  };
  EXPECT_EQ(count(source(kAlone.text), "sync_threads();"), 1U) << source(kAlone.text);
  for (const ManualProgram* one : {&kRing, &kAttention})  // before the results leave through a tile
    EXPECT_EQ(count(source(one->text), "sync_named("), 1U) << source(one->text);
  std::string silent = kAlone.text;
  for (const std::string line : {"      on empty[k % 2] wait (k // 2 + 1) % 2\n", "      on empty[k % 2] arrive\n"})
    silent.erase(silent.find(line), line.size());
  EXPECT_EQ(count(source(silent), "sync_threads();"), 2U) << source(silent);
}

struct Planted {
  std::string name;
  const ManualProgram* program;
  std::string before, after;
  emulator::DefectKind kind;
  std::string line;  // of the program, that the defect's later part is at
};

TEST(ManualAsynchrony, DefectsAreFoundAtTheirLines) {
  using emulator::DefectKind;
  const std::vector<Planted> all{
      {"no wait for tiles", &kRing, "barrier_wait(full + k % 3, (k / 3) & 1);", "", DefectKind::data_race,
       "gemm sums +="},
      {"tiles given back too early", &kRing, "wgmma_wait<1>();", "", DefectKind::data_race, "copy a[0 : 128"},
      {"no wait for products", &kRing, "wgmma_wait<0>();", "", DefectKind::uninitialised_read, "copy sums -> c"},
      {"no announcement", &kRing, "barrier_expect(full + k_2 % 3, 16384);", "", DefectKind::deadlock,
       "on full[k % 3] wait"},
      {"the phase before", &kRing, "barrier_wait(empty + k_2 % 3, ((k_2 / 3 + 1) % 2) & 1);",
       "barrier_wait(empty + k_2 % 3, (k_2 / 3 % 2) & 1);", DefectKind::deadlock, "on full[k % 3] wait"},
      {"the phase of another tile", &kAttention, "barrier_wait(v_full + t_2 % 2, (t_2 / 2) & 1);",
       "barrier_wait(v_full + t_2 % 2, (t_2 / 2 + 1) & 1);", DefectKind::deadlock, "on v_full[t % 2] wait"},
      {"no wait for scores", &kAttention, "wgmma_wait<1>();", "", DefectKind::uninitialised_read, "p_next[i, j] ="},
      {"no fence before a store", &kStores, "fence_async();", "", DefectKind::missing_fence, "mode bulk_store"},
      {"a tile filled before it has left", &kStores, "wait_stores<1>();", "", DefectKind::data_race,
       "parallel i, j in 32, 64 {\n        tile"},
  };
  EmulatedBatch batch(Architecture::sm_90a);
  std::vector<ir::Program> programs;
  for (const Planted& one : all) {
    SourceMap sources;
    DiagnosticList errors;
    programs.push_back(*ir::read_text(sources, sources.add("program.ir", one.program->text), errors));
    const auto added = batch.add(programs.back(), &sources);
    ASSERT_TRUE(added.ok()) << added.error().message;
    batch.plant(*added, one.before, one.after);
  }
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < all.size(); ++k) {
    const ir::testing::RandomArguments given(programs[k], 1);
    const std::string wrong = batch.run(k, to_launch(given.values()));
    const std::string& text = all[k].program->text;
    const auto line = static_cast<int64_t>(count(text.substr(0, text.find(all[k].line)), "\n")) + 1;
    bool found = false;
    for (const emulator::Defect& defect : batch.defects())
      found |= defect.kind == all[k].kind && (defect.first.line == line || defect.second.line == line);
    EXPECT_TRUE(found) << all[k].name << ", line " << line << ": " << wrong;
    for (const emulator::Defect& defect : batch.defects())
      if (!found) ADD_FAILURE() << spelled(defect.first) << " " << spelled(defect.second);
  }
}

// Results leave through tiles of the compiler's own only where the program's tiles leave room for them.
TEST(ManualAsynchrony, ProgramsMayTakeAllSharedMemory) {
  std::string text = kRing.text;
  for (const auto& [before, after] : {std::pair("a_ring: float16[3, 128, 64]", "a_ring: float16[12, 128, 64]"),
                                      std::pair("b_ring: float16[3, 64, 64]", "b_ring: float16[4, 64, 64]")})
    text.replace(text.find(before), std::string(before).size(), after);
  const auto code = targets::cuda::generate(parse(text), Architecture::sm_90a);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_THAT(code->source, AllOf(HasSubstr("tma_load_2d(a_ring"), Not(HasSubstr("tma_store"))));
}

TEST(ManualAsynchrony, WarpGroupsMayNotWaitForRegistersForEver) {
  const auto code = [](int64_t third) {
    return targets::cuda::generate(parse(fmt::format(R"(program p(a: float32[128]) {{
  kernel bx in 1 threads 384 {{
    roles 0, 1 {{
      async raise_registers 240
      fill a = 1.0
    }}
    roles 2 {{
      async lower_registers {}
    }}
  }}
}})",
                                                     third)),
                                   Architecture::sm_90a);
  };
  EXPECT_TRUE(code(24).ok());
  const auto refused = code(40);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("66560 registers in all; there are 65536"));
}

TEST(ManualAsynchrony, SaysWhyACopyIsDoneAtOnce) {
  EXPECT_THAT(explained(kAtOnce.text, Architecture::sm_90a),
              AllOf(HasSubstr("copy a -> tile: at once, by the threads"),
                    HasSubstr("not TMA: rows of `a` are 24 bytes apart, no multiple of 16")));
  EXPECT_THAT(explained(kRing.text, Architecture::sm_80),
              AllOf(HasSubstr("not TMA: sm_80 has none"), HasSubstr("gemm into sums: at once")));
  EXPECT_THAT(explained(kRing.text, Architecture::sm_90a),
              AllOf(HasSubstr("by TMA, as the program says"), HasSubstr(", asynchronous"), Not(HasSubstr("at once"))));
}

TEST(ManualAsynchrony, TellsGroupsWithoutCopies) {
  EXPECT_THAT(explained(kGroups.text, Architecture::sm_80), Not(HasSubstr("without copies")));
  std::string twice = kGroups.text;
  twice.insert(twice.find("async commit_copies"), "async commit_copies\n    ");
  EXPECT_THAT(explained(twice, Architecture::sm_80), AllOf(HasSubstr("`T.ptx_commit_group`: a group without copies"),
                                                           HasSubstr("each `T.async_copy` closes a group of its own")));
}

}  // namespace
}  // namespace tilepilot::testing
