// Programs as people write them keep the fast path: what the compiler says of each, and that the values are right.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A product whose loop is `body`, of tiles 128 x 16 and 16 x 64, after `before`; `after` stands behind the loop.
struct Product {
  std::string body, before = "", after = "copy sums -> o[by * 128 : +128, bx * 64 : +64]";
  std::string parameters = "", memory = "";
  int threads = 256;

  std::string text() const {
    return R"(program product(a: float16[384, 64], b: float16[64, 256], )" + parameters +
           R"(o: float32[384, 256]) {
  kernel bx, by in 4, 3 threads )" +
           std::to_string(threads) + R"( {
    shared a_tile: float16[128, 16]
    shared b_tile: float16[16, 64]
    fragment sums: float32[128, 64]
    )" + memory +
           R"(
    )" + before +
           R"(
    fill sums = 0.0
    pipelined k in 4 stages 2 {
      )" + body +
           R"(
    }
    )" + after +
           R"(
  }
})";
  }
};

const std::string kCopyA = "copy a[by * 128 : +128, k * 16 : +16] -> a_tile\n",
                  kCopyB = "copy b[k * 16 : +16, bx * 64 : +64] -> b_tile\n", kGemm = "gemm sums += a_tile @ b_tile\n";
const std::string kProducer = "by TMA, issued by a producer warpgroup, 1 iteration ahead";

TEST(LoadsAhead, StartWhereAValueOfTheIterationSays) {
  const Product named{
      "let first: int32 = k * 16\ncopy a[by * 128 : +128, first : +16] -> a_tile\n"
      "copy b[first : +16, bx * 64 : +64] -> b_tile\n" +
      kGemm};
  EXPECT_THAT(explained(named.text()), AllOf(HasSubstr("copy a -> a_tile: " + kProducer), HasSubstr("asynchronous")));
  expect_interpreted(named.text());
}

TEST(LoadsAhead, StartWhereATableSays) {
  Product table{"let page: int32 = table[k]\ncopy a[by * 128 : +128, page * 16 : +16] -> a_tile\n" + kCopyB + kGemm};
  table.parameters = "table: int32[4], ";
  EXPECT_THAT(explained(table.text()), HasSubstr("copy a -> a_tile: " + kProducer));
  expect_interpreted(table.text());
  // What the kernel writes may be another value by then.
  Product written = table;
  written.before = "table[bx] = by";
  EXPECT_THAT(explained(written.text()), Not(HasSubstr("copy a -> a_tile: " + kProducer)));
}

// A number that decides for all threads lies in shared memory, under a name of its own.
TEST(LoadsAhead, StartWhereAFragmentSaysThatAllThreadsFollow) {
  const std::string text = R"(program products(a: float16[128, 64], b: float16[64, 64], o: float32[2, 128, 64]) {
  kernel bx in 1 threads 256 {
    shared a_tile: float16[128, 16]
    shared b_tile: float16[16, 64]
    fragment first: int32[1]
    fragment sums: float32[128, 64]
    first[0] = 0
    while first[0] < 4 {
      fill sums = 0.0
      pipelined k in 2 stages 2 {
        copy a[0 : 128, (first[0] + k) * 16 : +16] -> a_tile
        copy b[(first[0] + k) * 16 : +16, 0 : 64] -> b_tile
        gemm sums += a_tile @ b_tile
      }
      copy sums -> o[first[0] // 2, 0 : 128, 0 : 64]
      first[0] = first[0] + 2
    }
  }
})";
  EXPECT_THAT(explained(text), HasSubstr("copy a -> a_tile: by TMA, 1 iteration ahead"));
  expect_interpreted(text);
}

TEST(LoadsAhead, StartWhereAValueOfTheBlockSays) {
  Product block{
      "copy a[by * 128 : +128, k * 16 : +16] -> a_tile\ncopy bs[e[0], k * 16 : +16, bx * 64 : +64] -> "
      "b_tile\n" +
      kGemm};
  block.parameters = "bs: float16[3, 64, 256], ids: int32[3], ";
  block.memory = "local e: int32[1]";
  block.before = "e[0] = 0\nserial t in 2 {\n  e[0] = max(e[0], ids[by] % 3 + t - 1)\n}";
  EXPECT_THAT(explained(block.text()), HasSubstr("copy bs -> b_tile: " + kProducer));
  expect_interpreted(block.text());
}

TEST(LoadsAhead, AreParallelLoopsThatCopyABox) {
  const Product boxes{
      "parallel i, j in 128, 16 {\n  let row: int32 = by * 128 + i\n  a_tile[i, j] = select(row < 384 and "
      "k * 16 + j < 64, a[row, k * 16 + j], float16(0))\n}\n"
      "parallel i, j in 16, 64 {\n  b_tile[i, j] = b[k * 16 + i, bx * 64 + j]\n}\n" +
      kGemm};
  EXPECT_THAT(explained(boxes.text()),
              AllOf(HasSubstr("copy a -> a_tile: " + kProducer), HasSubstr("copy b -> b_tile: " + kProducer)));
  expect_interpreted(boxes.text());
}

TEST(LoadsAhead, GatherRows) {
  Product gather{
      "parallel i, j in 128, 16 {\n  let row: int32 = rows[by * 128 + i]\n  a_tile[i, j] = select(row >= 1, "
      "a[row * 2, k * 16 + j], float16(0))\n}\n" +
      kCopyB + kGemm};
  gather.parameters = "rows: int32[384], ";
  EXPECT_THAT(explained(gather.text()),
              AllOf(HasSubstr("copy a -> a_tile: by the threads, 1 iteration ahead"),
                    HasSubstr("copy a -> a_tile: cp.async of 16 bytes"), HasSubstr("asynchronous")));
  expect_interpreted(gather.text());
  // A tile that is written elsewhere, too, is not filled ahead.
  Product twice = gather;
  twice.body = "fill a_tile[0 : 8, 0 : 16] = 1.0\n" + gather.body;
  EXPECT_THAT(explained(twice.text()), Not(HasSubstr("copy a -> a_tile: by the threads")));
  expect_interpreted(twice.text());
}

// A name holds what fits into its type; what is computed of the name is not computed of more.
TEST(LoadsAhead, GatherByNumbersThatWrap) {
  for (const char* mixed : {"(rows[by * 128 + i] + i) * 715827883", "(by * 128 + i) * 16777619"}) {
    for (const char* row : {"let row: int32 = mixed % 384", "let row: int32 = select(mixed > 0, i, by)"}) {
      Product hashed{"parallel i, j in 128, 16 {\n  let mixed: int32 = " + std::string(mixed) + "\n  " + row +
                     "\n  a_tile[i, j] = a[row, k * 16 + j]\n}\n" + kCopyB + kGemm};
      hashed.parameters = "rows: int32[384], ";
      expect_interpreted(hashed.text());
      hashed.body =
          "let mixed: int32 = (table[k] + k + 3) * 715827883\nlet page: int32 = mixed % 4\n"
          "copy a[by * 128 : +128, page * 16 : +16] -> a_tile\n" +
          kCopyB + kGemm;
      hashed.parameters = "table: int32[4], ";
      expect_interpreted(hashed.text());
    }
  }
}

// Of images of 6 x 8 points of 16 channels, 3 x 3 taps.
TEST(LoadsAhead, GatherPointsOfImages) {
  const std::string text = R"(program points(image: float16[2, 6, 8, 16], taps: float16[144, 32], o: float32[96, 32]) {
  kernel bx in 2 threads 128 {
    shared a: float16[64, 32]
    shared b: float16[32, 32]
    fragment sums: float32[64, 32]
    fill sums = 0.0
    pipelined k in 5 stages 3 {
      parallel i, j in 64, 32 {
        let tap: int32 = k * 32 + j
        let point: int32 = bx * 64 + i
        let y: int32 = point % 48 // 8 + tap // 48 - 1
        let x: int32 = point % 8 + tap // 16 % 3 - 1
        let inside: bool = y >= 0 and y < 6 and x >= 0 and x < 8
        a[i, j] = select(inside, image[point // 48, y, x, tap % 16], float16(0))
      }
      copy taps[k * 32 : +32, 0 : 32] -> b
      gemm sums += a @ b
    }
    copy sums -> o[bx * 64 : +64, 0 : 32]
  }
})";
  EXPECT_THAT(explained(text), HasSubstr("copy image -> a: cp.async of 16 bytes"));
  expect_interpreted(text);
}

TEST(LoadsAhead, AreLeftOutWithTheirIteration) {
  for (const int threads : {128, 256}) {
    Product masked{"if mask[by, k] {\n" + kCopyA + kCopyB + kGemm + "}"};
    masked.parameters = "mask: bool[3, 4], ";
    masked.threads = threads;
    EXPECT_THAT(explained(masked.text()), HasSubstr("copy a -> a_tile: by TMA")) << threads;
    expect_interpreted(masked.text());
  }
  // Where the condition is computed by the iterations themselves, nobody knows it earlier.
  Product late{"if last[0] >= 0.0 {\n" + kCopyA + kCopyB + kGemm + "}\nparallel i, j in 1, 1 {\n last[i] = -1.0\n}"};
  late.memory = "shared last: float32[1]";
  late.before = "fill last = 0.0";
  EXPECT_THAT(explained(late.text()), Not(HasSubstr("iteration ahead")));
  expect_interpreted(late.text());
}

TEST(Producers, ServeFourWarpgroups) {
  const std::string text = R"(program four(a: float16[512, 64], b: float16[64, 128], o: float32[512, 128]) {
  kernel bx, by in 2, 2 threads 512 {
    shared a_tile: float16[256, 16]
    shared b_tile: float16[16, 64]
    fragment sums: float32[256, 64]
    fill sums = 0.0
    pipelined k in 4 stages 2 {
      copy a[by * 256 : +256, k * 16 : +16] -> a_tile
      copy b[k * 16 : +16, bx * 64 : +64] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    copy sums -> o[by * 256 : +256, bx * 64 : +64]
  }
})";
  EXPECT_THAT(explained(text), HasSubstr("copy a -> a_tile: " + kProducer));
  expect_interpreted(text);
}

TEST(Producers, ServeLoopsOfAnyNumberOfStages) {
  for (const char* stages : {" stages 3", " stages 4", " stages 6"}) {
    std::string text = Product{kCopyA + kCopyB + kGemm}.text();
    text.replace(text.find(" stages 2"), 9, stages);
    EXPECT_THAT(explained(text), HasSubstr("by TMA, issued by a producer warpgroup")) << stages;
    expect_interpreted(text, {targets::gpu::Architecture::sm_90a});
  }
}

TEST(Producers, ServeLoopsThatClearAtFirst) {
  Product clears{kCopyA + kCopyB + "if k == 0 {\n  fill sums = 0.0\n}\n" + kGemm};
  clears.before = "fill sums = 7.0";
  EXPECT_THAT(explained(clears.text()), AllOf(HasSubstr("copy a -> a_tile: " + kProducer), HasSubstr("asynchronous")));
  expect_interpreted(clears.text());
}

TEST(Producers, ServeTwoProducts) {
  Product two{kCopyA + kCopyB + "copy b2[k * 16 : +16, bx * 64 : +64] -> b2_tile\n" + kGemm +
              "gemm more += a_tile @ b2_tile\n"};
  two.parameters = "b2: float16[64, 256], ";
  two.memory = "shared b2_tile: float16[16, 64]\n    fragment more: float32[128, 64]";
  two.before = "fill more = 0.0";
  two.after = "parallel i, j in 128, 64 {\n  o[by * 128 + i, bx * 64 + j] = sums[i, j] * more[i, j]\n}";
  const std::string told = explained(two.text());
  EXPECT_THAT(told, HasSubstr("gemm into sums: wgmma m64n64k16, A from shared memory, warpgroups 2 x 1, asynchronous"));
  EXPECT_THAT(told, HasSubstr("gemm into more: wgmma m64n64k16, A from shared memory, warpgroups 2 x 1, asynchronous"));
  expect_interpreted(two.text());
}

TEST(Producers, ServeAtomicUpdatesAndChecks) {
  Product atomic{kCopyA + kCopyB + kGemm};
  atomic.before = "check bx < 4, \"four columns\"";
  atomic.after = "parallel i, j in 128, 64 {\n  atomic add o[by * 128 + i, bx * 64 + j], sums[i, j]\n}";
  EXPECT_THAT(explained(atomic.text()), HasSubstr("copy a -> a_tile: " + kProducer));
  expect_interpreted(atomic.text());
}

TEST(Producers, LeaveLoopsWithTheirConsumers) {
  const std::string text = R"(program turns(a: float16[384, 64], b: float16[64, 256], o: float32[384, 256]) {
  kernel block in 5 threads 256 {
    shared a_tile: float16[128, 16]
    shared b_tile: float16[16, 64]
    fragment sums: float32[128, 64]
    serial wave in 3 {
      let tile: int32 = wave * 5 + block
      if 12 <= tile {
        break
      }
      fill sums = 0.0
      pipelined k in 4 stages 2 {
        copy a[tile // 4 * 128 : +128, k * 16 : +16] -> a_tile
        copy b[k * 16 : +16, tile % 4 * 64 : +64] -> b_tile
        gemm sums += a_tile @ b_tile
      }
      copy sums -> o[tile // 4 * 128 : +128, tile % 4 * 64 : +64]
    }
  }
})";
  EXPECT_THAT(explained(text), HasSubstr("copy a -> a_tile: " + kProducer));
  expect_interpreted(text);
}

TEST(Producers, AreMissedForAReasonThatIsTold) {
  Product few{kCopyA + kCopyB + kGemm};
  few.threads = 128;
  EXPECT_THAT(explained(few.text()),
              HasSubstr("not a producer warpgroup: several blocks of one warpgroup run beside each other"));
}

TEST(SumsOfProducts, AreCopiedAfterWhatIsComputedOfThem) {
  Product bias{kCopyA + kCopyB + kGemm};
  bias.parameters = "d: float16[384, 256], h: float16[384, 256], ";
  const std::string guard = "parallel i, j in 128, 64 {\n  if by * 128 + i < 384 {\n    ", end = "\n  }\n}",
                    h = "h[by * 128 + i, bx * 64 + j] = ", sum = "sums[i, j] + float32(d[by * 128 + i, bx * 64 + j])";
  for (const std::string& stored :
       {h + "float16(max(" + sum + ", 0.0))", "let v: float32 = " + sum + "\n    " + h + "float16(max(v, 0.0) * v)"}) {
    bias.after = guard;
    bias.after += stored + end;
    EXPECT_THAT(explained(bias.text()), AllOf(HasSubstr("h_tile by stmatrix"), HasSubstr("copy h_tile -> h: by TMA")));
    expect_interpreted(bias.text());
  }
}

TEST(ViewsOfTensors, AreCopiedByTma) {
  Product viewed{kCopyA + "copy flat[k * 16 : +16, bx * 64 : +64] -> b_tile\n" + kGemm};
  viewed.parameters = "b3: float16[4, 16, 256], ";
  viewed.memory = "global flat: float16[64, 256] view b3";
  EXPECT_THAT(explained(viewed.text()), HasSubstr("copy flat -> b_tile: " + kProducer));
  expect_interpreted(viewed.text());
}

TEST(ReshapedFragments, StayInRegisters) {
  const auto text = [](int groups, int heads) {
    const std::string all = std::to_string(groups * heads), g = std::to_string(groups), h = std::to_string(heads);
    return "program heads(q: float16[64, 32], w: float16[" + all + ", 32], o: float32[64, " + g + R"(]) {
  kernel bx in 1 threads 128 {
    shared a: float16[64, 32]
    shared b: float16[)" +
           all + R"(, 32]
    fragment s: float32[64, )" +
           all + R"(]
    fragment r: float32[64, )" +
           g + ", " + h + R"(] view s
    fragment sums: float32[64, )" +
           g + R"(]
    copy q -> a
    copy w -> b
    gemm s = a @ b.T
    parallel i, j, k in 64, )" +
           g + ", " + h + R"( {
      r[i, j, k] = max(r[i, j, k], 0.0) * float32(j + 1)
    }
    reduce sum r -> sums axis 2
    copy sums -> o
  }
})";
  };
  EXPECT_THAT(explained(text(4, 16)), AllOf(HasSubstr("gemm into s: wgmma"), Not(HasSubstr("shared memory: other"))));
  expect_interpreted(text(4, 16));
  expect_interpreted(text(2, 8));
  expect_interpreted(text(3, 8));
}

TEST(LanesOfOneThread, MoveVectors) {
  const std::string text = R"(program lanes(x: float16[64, 64], packed: uint8[64, 32], y: float16[64, 64]) {
  kernel bx in 2 threads t in 128 {
    shared tile: uint8[32, 32]
    local few: uint8[8]
    local many: float16[16]
    copy packed[bx * 32 : +32, 0 : 32] -> tile
    vectorized v in 8 {
      few[v] = tile[t // 4, t % 4 * 8 + v]
    }
    serial v in 16 {
      many[v] = float16(few[v // 2] // uint8(16))
    }
    vectorized v in 16 {
      let place: int32 = t * 16 + v
      y[bx * 32 + place // 64, place % 64] = many[v] + x[bx * 32 + place // 64, place % 64]
    }
  }
})";
  EXPECT_THAT(explained(text), AllOf(HasSubstr("8 lanes of one thread: tile by 8 bytes"),
                                     HasSubstr("16 lanes of one thread: x by 16 bytes, y by 16 bytes")));
  expect_interpreted(text);
}

// Threads fill a tile in the order of its memory: nobody writes what another one writes, in no iteration, so that one
// barrier after the loop is enough.
TEST(LanesOfOneThread, NeedNoBarrierBetweenPartsOfATile) {
  const std::string text = R"(program unpacked(x: float16[64, 64], w: float16[64, 64], y: float32[64, 64]) {
  kernel bx in 1 threads t in 128 {
    shared tile: float16[64, 64]
    shared other: float16[64, 64]
    fragment sums: float32[64, 64]
    local held: float16[8]
    copy w -> other
    fill sums = 0.0
    serial i in 4 {
      vectorized v in 8 {
        let place: int32 = i * 1024 + t * 8 + v
        held[v] = x[place // 64, place % 64]
      }
      vectorized v in 8 {
        let place: int32 = i * 1024 + t * 8 + v
        tile[place // 64, place % 64] = held[v]
      }
    }
    gemm sums += tile @ other
    copy sums -> y
  }
})";
  const std::string source = expect_interpreted(text, {targets::gpu::Architecture::sm_90a});
  const size_t loop = source.find("for (int32_t i = 0; i < 4"), product = source.find("wgmma_fence", loop);
  ASSERT_NE(product, std::string::npos) << source;
  const std::string between = source.substr(loop, product - loop);
  const size_t first = between.find("sync_threads()");
  ASSERT_NE(first, std::string::npos) << source;
  EXPECT_EQ(between.find("sync_threads()", first + 1), std::string::npos) << source;
  EXPECT_THAT(between, HasSubstr("copy_vector<16>(tile"));
  // An iteration that reads what others wrote in the one before needs them.
  std::string neighbours = text;
  const std::string mine = "held[v] = x[place // 64, place % 64]";
  neighbours.replace(neighbours.find(mine), mine.size(), "held[v] = tile[63 - place // 64, place % 64]");
  neighbours.replace(neighbours.find("copy w -> other"), 15, "copy x -> tile copy w -> other");
  expect_interpreted(neighbours, {targets::gpu::Architecture::sm_90a});
}

// Without a stage, and with one, copies run ahead all the same where shared memory has room for a second tile.
TEST(SecondStages, AreGivenWhereThereIsRoom) {
  for (const char* stages : {"", " stages 1"}) {
    std::string text = Product{kCopyA + kCopyB + kGemm}.text();
    text.replace(text.find(" stages 2"), 9, stages);
    EXPECT_THAT(explained(text), HasSubstr("copy a -> a_tile: " + kProducer)) << stages;
    expect_interpreted(text);
  }
  Product full{kCopyA + kCopyB + kGemm};
  full.memory = "shared more: float16[512, 220]";
  full.before = "fill more = 1.0";
  full.after =
      "parallel i, j in 128, 64 {\n  sums[i, j] = sums[i, j] + float32(more[i * 4, j])\n}\n"
      "copy sums -> o[by * 128 : +128, bx * 64 : +64]";
  std::string text = full.text();
  text.replace(text.find(" stages 2"), 9, " stages 1");
  EXPECT_THAT(explained(text), HasSubstr("copy a -> a_tile: by TMA, as soon as its tile is free"));
  expect_interpreted(text, {targets::gpu::Architecture::sm_90a});
}

}  // namespace
}  // namespace tilepilot::testing
