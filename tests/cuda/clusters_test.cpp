// Clusters of blocks, copies that one block makes for several, and copies of consecutive bytes: the emulator runs what
// is generated and finds nothing wrong; where a block does not wait for the others it does.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cpu/prelude_functions.h"
#include "tests/cuda/interpreted.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
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

// Each block gives its tile, and one number, to the other one of its pair, which is `TO`.
const std::string kSent = R"(program sent(a: float16[4, 64, 64], w: float32[4], c: float16[4, 64, 64], d: float32[4]) {
  kernel bx in 4 threads 128 cluster 2 {
    shared own: float16[64, 64]
    shared other: float16[64, 64]
    shared one: float32[1]
    shared got: float32[1]
    copy a[FROM, 0 : 64, 0 : 64] -> own
    copy w[FROM : +1] -> one
    copy own -> otherTO
    copy one -> gotTO
    async arrive_cluster
    sync cluster_wait
    copy other -> c[bx, 0 : 64, 0 : 64]
    copy got -> d[bx : +1]
  }
})";

// Tiles that products use, in bulk.
const std::string kSentInBulk = R"(program sums(a: float16[2, 64, 64], b: float16[64, 64], c: float32[2, 64, 64]) {
  kernel bx in 2 threads 128 cluster 2 {
    shared own: float16[64, 64]
    shared other: float16[2, 64, 64]
    shared weights: float16[64, 64]
    fragment sums: float32[64, 64]
    barrier full: uint64[1] arrivals [1]
    copy b -> weights
    copy a[FROM, 0 : 64, 0 : 64] -> own
    on full arrive_expect 8192 threads 1
    copy own -> other[1, 0 : 64, 0 : 64] mode bulk_load counting fullTO
    on full wait 0
    fill sums = 0.0
    gemm sums += other[1, 0 : 64, 0 : 64] @ weights
    gemm sums += own @ weights
    copy sums -> c[bx, 0 : 64, 0 : 64]
  }
})";

std::string with_words(std::string text, const std::string& from, const std::string& to) {
  for (const auto& [word, by] : {std::pair<std::string, std::string>{"FROM", from}, {"TO", to}})
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), by);
  return text;
}
std::string sent(const std::string& text) { return with_words(text, "bx", " into_block 1 - bx % 2"); }

// A pipeline of which one block of each cluster loads a tile for the blocks of a mask.
std::string pipeline(const std::string& cluster, const std::string& mask) {
  return fmt::format(R"(program product(a: float16[512, 192], b: float16[192, 512], c: float32[512, 512]) {{
  kernel bx, by in 8, 4 threads 256{} {{
    shared rows: float16[128, 64]
    shared columns: float16[64, 64]
    fragment sums: float32[128, 64]
    fill sums = 0.0
    pipelined k in 3 stages 2 {{
      copy a[by * 128 : +128, k * 64 : +64] -> rows{}
      copy b[k * 64 : +64, bx * 64 : +64] -> columns
      gemm sums += rows @ columns
    }}
    copy sums -> c[by * 128 : +128, bx * 64 : +64]
  }}
}})",
                     cluster, mask);
}

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
    expect_agreement(batch, k, single);
  }
}

// What one block does alone if it fetches what the other one would give it.
std::string fetched(const std::string& text) {
  std::string result = with_words(text, "bx + 1 - 2 * (bx % 2)", "");
  for (const std::string part : {" cluster 2", "    async arrive_cluster\n    sync cluster_wait\n"})
    if (const size_t at = result.find(part); at != std::string::npos) result.erase(at, part.size());
  return result;
}

TEST(Clusters, CopyIntoEachOthersMemory) {
  const ir::Program by_stores = parse(sent(kSent)), in_bulk = parse(sent(kSentInBulk));
  EmulatedBatch batch(Architecture::sm_90a);
  for (const ir::Program& program : {by_stores, in_bulk, by_stores}) {
    const auto added = batch.add(program);
    ASSERT_TRUE(added.ok()) << added.error().message;
  }
  EXPECT_THAT(batch.source(0), AllOf(HasSubstr("copy_remote<16>(other"), HasSubstr("copy_remote<4>(got"),
                                     HasSubstr("cluster_arrive();"), HasSubstr("cluster_wait();")));
  EXPECT_THAT(batch.source(1), HasSubstr("bulk_copy_remote(other"));
  batch.plant(2, "cluster_arrive();", "cluster_arrive_relaxed();");
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  expect_agreement(batch, 0, parse(fetched(kSent)));
  std::string alone_in_bulk = fetched(kSentInBulk);
  for (const std::string line :
       {"    on full arrive_expect 8192 threads 1\n", " mode bulk_load counting full", "    on full wait 0\n",
        "    barrier full: uint64[1] arrivals [1]\n", "    gemm sums += own @ weights\n"})
    alone_in_bulk.erase(alone_in_bulk.find(line), line.size());
  const std::string last = "    copy sums -> c";
  alone_in_bulk.insert(alone_in_bulk.find(last),
                       "    copy a[bx, 0 : 64, 0 : 64] -> own\n    gemm sums += own @ weights\n");
  expect_agreement(batch, 1, parse(alone_in_bulk));
  const ir::testing::RandomArguments given(by_stores, 1);
  EXPECT_THAT(batch.run(2, to_launch(given.values())), HasSubstr("nothing orders the two"));
}

TEST(Clusters, RefuseCopiesThatAreInPieces) {
  std::string parts = sent(kSentInBulk);
  const std::string whole = "copy own -> other[1, 0 : 64, 0 : 64] mode";
  parts.replace(parts.find(whole), whole.size(), "copy own[0 : 64, 0 : 32] -> other[1, 0 : 64, 0 : 32] mode");
  const auto code = targets::cuda::generate(parse(parts), Architecture::sm_90a);
  ASSERT_FALSE(code.ok());
  EXPECT_THAT(code.error().message, HasSubstr("is not in one piece"));
  std::string rows = sent(kSentInBulk);
  rows.replace(rows.find(whole), whole.size(), "copy own[0 : 4, 0 : 64] -> other[1, 0 : 4, 0 : 64] mode");
  const auto swizzled = targets::cuda::generate(parse(rows), Architecture::sm_90a);
  ASSERT_FALSE(swizzled.ok());
  EXPECT_THAT(swizzled.error().message, HasSubstr("do not lie in memory alike"));
}

TEST(Clusters, CopiesIntoOtherBlocksAreExplained) {
  EXPECT_THAT(explained(sent(kSent)), HasSubstr("into another block's memory, by stores of 16 bytes"));
  EXPECT_THAT(explained(sent(kSentInBulk)), HasSubstr("by TMA, into another block's memory"));
  EXPECT_THAT(explained(pipeline(" cluster 2, 1", " into 3")),
              HasSubstr("issued by a producer warpgroup, 1 iteration ahead, once for the blocks of mask 3"));
}

// The first line of a text that has a part.
std::string line_with(const std::string& text, const std::string& part) {
  const size_t at = text.find(part), first = text.rfind('\n', at) + 1;
  return text.substr(first, text.find('\n', at) - first);
}

TEST(Clusters, PipelinesHaveThreadsThatLoadForOtherBlocks) {
  const ir::Program single = parse(pipeline("", "")), each = parse(pipeline(" cluster 2, 1", "")),
                    pairs = parse(pipeline(" cluster 2, 1", " into 3"));
  EmulatedBatch batch(Architecture::sm_90a);
  for (const ir::Program& program : {each, pairs, pairs, pairs}) {
    const auto added = batch.add(program);
    ASSERT_TRUE(added.ok()) << added.error().message;
  }
  EXPECT_THAT(batch.source(0), AllOf(HasSubstr("set_registers_up"), Not(HasSubstr("sync_cluster"))));
  EXPECT_THAT(batch.source(1), AllOf(HasSubstr("set_registers_up"), HasSubstr("tma_load_multicast_2d(rows"),
                                     HasSubstr("barrier_release_remote(others"), HasSubstr("sync_cluster();\n}")));
  batch.plant(2, line_with(batch.source(2), "barrier_wait(others"), "");
  batch.plant(3, "sync_cluster();\n}", "}");
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  expect_agreement(batch, 0, single);
  expect_agreement(batch, 1, single);
  const ir::testing::RandomArguments given(pairs, 1);
  EXPECT_THAT(batch.run(2, to_launch(given.values())), HasSubstr("copy not waited for"));
  EXPECT_THAT(batch.run(3, to_launch(given.values())), HasSubstr("of the cluster, which has ended"));
}

// The first pair of each cluster shares its rows; the other blocks load their own.
TEST(Clusters, PipelinesLoadForSomeBlocksOfTheCluster) {
  const ir::Program program = parse(pipeline(" cluster 2, 2", " into 3"));
  EmulatedBatch batch(Architecture::sm_90a);
  const auto added = batch.add(program);
  ASSERT_TRUE(added.ok()) << added.error().message;
  EXPECT_THAT(batch.source(*added), HasSubstr("tma_load_multicast_2d(rows"));
  batch.compile();
  if (::testing::Test::HasFatalFailure()) return;
  expect_agreement(batch, *added, parse(pipeline("", "")));
}

// Where blocks of a cluster may go different ways, all threads load, and meet those of the other blocks.
TEST(Clusters, PipelinesOfDifferentLengthsAreNoneOfOwnThreads) {
  std::string text = pipeline(" cluster 2, 1", " into 3");
  const std::string loop = "pipelined k in 3 stages 2";
  text.replace(text.find(loop), loop.size(), "pipelined k in 2 + by % 2 stages 2");
  const auto code = targets::cuda::generate(parse(text), Architecture::sm_90a);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_THAT(code->source, Not(HasSubstr("barrier_release_remote(others")));
}

TEST(Clusters, Compile) {
  SKIP_WITHOUT_NVRTC();
  for (const std::string& text :
       {kSharedColumns, kWaited, kLines, sent(kSent), sent(kSentInBulk), pipeline(" cluster 2, 2", " into 3")}) {
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
  const ir::Program exchange = parse(sent(kSent));
  EXPECT_EQ(targets::cuda::generate(exchange, Architecture::sm_80).error().message, "sm_80 has no clusters of blocks");
  EXPECT_THAT(targets::cpu::generate(exchange).error().message, HasSubstr("blocks of a cluster share memory here"));
  const ir::testing::RandomArguments given(exchange, 1);
  const auto explicit_program = passes::explicit_threads(exchange);
  ASSERT_TRUE(explicit_program.ok());
  const auto fault = interpret::run(*explicit_program, given.values());
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->message, HasSubstr("the interpreter does not know this statement"));
}

TEST(Clusters, LinesAreExplained) {
  SourceMap sources;
  DiagnosticList errors;
  const auto program = ir::read_text(sources, sources.add("program.ir", kLines), errors);
  EXPECT_THAT(*targets::cuda::explanation(*program, Architecture::sm_90a, sources),
              HasSubstr("by TMA, as consecutive bytes, as the program says"));
}

}  // namespace
}  // namespace tilepilot::testing
