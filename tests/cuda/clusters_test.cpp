// Clusters of blocks, copies that one block makes for several, and copies of consecutive bytes: the emulator runs what
// is generated and finds nothing wrong; where a block does not wait for the others it does.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/passes/pipeline.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::cuda::Architecture;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two blocks multiply different rows by the same columns: one of them loads the columns for both, and says at each
// other's barriers when they have been read.
const std::string kSharedColumns = R"(program gemm(a: float16[128, 256], b: float16[256, 64], c: float32[128, 64]) {
  kernel bx in 2 threads tx in 256 cluster 2 {
    shared a_ring: float16[2, 64, 64]
    shared b_ring: float16[2, 64, 64]
    fragment sums: float32[64, 64]
    barrier full: uint64[2] arrivals [128, 128]
    barrier empty: uint64[2] arrivals [256, 256]
    if tx < 128 {
      fill sums = 0.0
      serial k in 4 {
        on full[k % 2] wait k // 2 % 2
        gemm sums += a_ring[k % 2, 0 : 64, 0 : 64] @ b_ring[k % 2, 0 : 64, 0 : 64] asynchronous
        async wait_gemms
        on empty[k % 2] arrive into 0
        on empty[k % 2] arrive into 1
      }
      copy sums -> c[bx * 64 : +64, 0 : 64]
    } else {
      serial k in 4 {
        on empty[k % 2] wait (k // 2 + 1) % 2
        copy a[bx * 64 : +64, k * 64 : +64] -> a_ring[k % 2, 0 : 64, 0 : 64] mode bulk_load counting full[k % 2]
        copy b[k * 64 : +64, 0 : 64] -> b_ring[k % 2, 0 : 64, 0 : 64] mode bulk_load counting full[k % 2] into 3
        on full[k % 2] arrive
      }
    }
  }
})";

// The compiler waits: for the other blocks before, and for the bytes after.
const std::string kWaited = R"(program shared(a: float32[2, 64, 32], c: float32[8, 64, 32]) {
  kernel bx in 8 threads 128 cluster 4 {
    shared tile: float32[64, 32]
    serial t in 2 {
      copy a[t, 0 : 64, 0 : 32] -> tile into 11
      parallel i, j in 64, 32 {
        if t == 0 {
          c[bx, i, j] = tile[i, j]
        } else {
          c[bx, i, j] = c[bx, i, j] + tile[63 - i, j]
        }
      }
    }
    sync cluster
  }
})";

// Rows as consecutive bytes: no box has so many elements, and a vector of a ring.
const std::string kLines = R"(program rows(a: float32[8, 1024], s: float32[8, 12], c: float32[8, 1024]) {
  kernel bx in 4 threads 128 {
    shared row: float32[1024]
    shared scale: float32[2, 12]
    barrier full: uint64[1] arrivals [128]
    serial t in 2 {
      copy a[bx * 2 + t, 0 : 1024] -> row mode bulk_load counting full
      copy s[bx * 2 + t, 0 : 12] -> scale[t, 0 : 12] mode bulk_load counting full
      on full arrive
      on full wait t
      parallel i in 1024 {
        row[i] = row[i] * scale[t, i % 12]
      }
      copy row -> c[bx * 2 + t, 0 : 1024] mode bulk_store
      async commit_stores
      async wait_stores
    }
  }
})";

// As if each block ran alone.
std::string alone(std::string text) {
  for (const std::string part : {" cluster 2", " cluster 4", " into 3", " into 11", "\n    sync cluster",
                                 "\n        on empty[k % 2] arrive into 1", " into 0"})
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part)) text.erase(at, part.size());
  const std::string both = "empty: uint64[2] arrivals [256, 256]";
  if (const size_t at = text.find(both); at != std::string::npos)
    text.replace(at, both.size(), "empty: uint64[2] arrivals [128, 128]");
  return text;
}

TEST(Clusters, ComputeWhatTheirBlocksWouldAlone) {
  const std::vector<std::string> texts{kSharedColumns, kWaited, kLines};
  EmulatedBatch batch(Architecture::sm_90a);
  for (const std::string& text : texts) {
    const auto added = batch.add(parse(text));
    ASSERT_TRUE(added.ok()) << added.error().message;
  }
  EXPECT_THAT(batch.source(0), AllOf(HasSubstr("tma_load_multicast_2d(b_ring"),
                                     HasSubstr("barrier_arrive_remote(empty"), HasSubstr("sync_cluster();\n}")));
  EXPECT_THAT(batch.source(1), HasSubstr("tma_load_multicast_3d(tile"));
  EXPECT_THAT(batch.source(2), AllOf(HasSubstr("bulk_load(row"), HasSubstr("bulk_load(scale"),
                                     HasSubstr("bulk_store(c"), Not(HasSubstr("tma_"))));
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t k = 0; k < texts.size(); ++k) {
    const ir::Program single = parse(alone(texts[k]));
    const ir::testing::RandomArguments expected(single, 1), actual(single, 1);
    interpret::Options options;
    options.functions = &prelude_functions();
    const auto explicit_program = passes::explicit_threads(single);
    ASSERT_TRUE(explicit_program.ok()) << explicit_program.error().message;
    const auto fault = interpret::run(*explicit_program, expected.values(), options);
    ASSERT_FALSE(fault) << fault->message;
    EXPECT_EQ(batch.run(k, to_launch(actual.values())), "") << batch.source(k);
    EXPECT_EQ(ir::testing::first_difference(expected, actual), "") << batch.source(k);
  }
}

TEST(Clusters, Compile) {
  SKIP_WITHOUT_NVRTC();
  for (const std::string& text : {kSharedColumns, kWaited, kLines}) {
    const auto code = targets::cuda::generate(parse(text), Architecture::sm_90a);
    ASSERT_TRUE(code.ok()) << code.error().message;
    DiagnosticList warnings;
    const auto made = nvrtc().compile(targets::cuda::prelude() + code->source, "sm_90a", warnings);
    EXPECT_TRUE(made.ok()) << made.error().message << "\n" << code->source;
  }
}

TEST(Clusters, BlocksThatDoNotWaitForOthersAreFound) {
  EmulatedBatch batch(Architecture::sm_90a);
  const ir::Program program = parse(kSharedColumns);
  const auto added = batch.add(program);
  ASSERT_TRUE(added.ok());
  batch.plant(*added, "barrier_init(empty + 0, 256);", "barrier_init(empty + 0, 128);");
  batch.plant(*added, "barrier_init(empty + 1, 256);", "barrier_init(empty + 1, 128);");
  batch.plant(*added, "barrier_arrive_remote(empty + k % 2, 0);",
              "barrier_arrive_remote(empty + k % 2, block_of_cluster());");
  batch.plant(*added, "barrier_arrive_remote(empty + k % 2, 1);", "");
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  const ir::testing::RandomArguments given(program, 1);
  EXPECT_THAT(batch.run(*added, to_launch(given.values())), HasSubstr("copy not waited for"));
}

TEST(Clusters, AreRefusedWhereThereAreNone) {
  const auto code = targets::cuda::generate(parse(kSharedColumns), Architecture::sm_80);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().message, "sm_80 has no clusters of blocks");
}

TEST(Clusters, LinesAreExplained) {
  SourceMap sources;
  DiagnosticList errors;
  const auto program = ir::read_text(sources, sources.add("program.ir", kLines), errors);
  EXPECT_THAT(*targets::cuda::explanation(*program, Architecture::sm_90a, sources),
              HasSubstr("by the copy engine, as consecutive bytes, as the program says"));
}

}  // namespace
}  // namespace tilepilot::testing
