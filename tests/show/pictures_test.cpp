// The data behind the drawings, against kernels whose layout is known by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "show/drawings.h"
#include "tests/show/pictures.h"

namespace tilepilot::show::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// PTX ISA, "Matrix Fragments for mma.m16n8k16": c0 and c1 are in row lane / 4, c2 and c3 eight rows below.
TEST(Registers, AreThoseOfTheInstruction) {
  const Picture picture = shown({.text = product("16, 8, 16", 1, 32)});
  const RegisterTile& c = registers_of(picture, "c");
  ASSERT_EQ(c.fragment.shape(), (layout::Shape{16, 8}));
  const std::vector<layout::Place> owners = first_owners(c.fragment);
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t column = 0; column < 8; ++column)
      EXPECT_EQ(owners[static_cast<size_t>(row * 8 + column)],
                (layout::Place{row % 8 * 4 + column / 2, column % 2 + row / 8 * 2}))
          << row << ", " << column;
  const nlohmann::json told = to_json(picture)["kernels"][0]["registers"][0];
  EXPECT_EQ(told["thread_and_register"][9][3], (nlohmann::json{5, 3}));
}

TEST(Registers, OfARoleHaveTheThreadsOfTheBlock) {
  const Picture picture = shown({.text = product("128, 128, 64", 3, 256), .target = "emulate:sm_90a"});
  const RegisterTile& c = registers_of(picture, "c");
  EXPECT_THAT(c.role, HasSubstr("consumer"));
  EXPECT_EQ(c.fragment.thread_count(), 256);
  std::vector<std::string> groups;
  bool awaits = false;
  for (const TimelineRow& row : picture.kernels[0].timeline->rows) {
    groups.push_back(row.group);
    for (const Segment& segment : row.segments) awaits |= segment.activity == Activity::await;
  }
  EXPECT_TRUE(awaits);
  EXPECT_THAT(groups, Contains(HasSubstr("producer")));
  EXPECT_THAT(groups, Contains(HasSubstr("consumer")));
}

// Row r's 16 bytes c lie at c ^ (r % 8), so that ldmatrix reads eight rows without conflict.
TEST(SharedMemory, IsSwizzledForTensorCores) {
  const Picture picture = shown({.text = product("64, 64, 64", 1, 128)});
  const SharedPicture& a = shared_of(picture, "a");
  ASSERT_EQ(a.layout.shape(), (layout::Shape{64, 64}));
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t column = 0; column < 64; ++column)
      EXPECT_EQ(a.layout.offset(row * 64 + column), row * 64 + (column / 8 ^ row % 8) * 8 + column % 8);
  ASSERT_FALSE(a.accesses.empty());
  for (const SharedAccess& access : a.accesses) {
    EXPECT_EQ(access.conflicts, 0) << access.what;
    EXPECT_EQ(access.degree(), 1) << access.what;
    EXPECT_EQ(access.line, line_of(picture, access.what == "ldmatrix" ? "gemm" : "a"));
  }
}

// Thread t reads word 0 of row t: all rows begin in bank 0.
TEST(SharedMemory, TellsConflictsWithTheirDegree) {
  const Picture picture = shown({.text = R"(
def program():
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            t = T.alloc_shared((32, 32), "float32")
            tx = T.get_thread_binding()
            for i in T.serial(32):
                t[i, tx] = A[i, tx]  # row
            T.sync_threads()
            B[tx] = t[tx, 0]  # column
    return main
)"});
  const SharedPicture& t = shared_of(picture, "t");
  ASSERT_EQ(t.layout.offset(32), 32) << "the tile is not swizzled";
  ASSERT_EQ(t.accesses.size(), 2u);
  for (const SharedAccess& access : t.accesses) {
    const bool column = access.line == line_of(picture, "column");
    EXPECT_EQ(access.writes, !column);
    EXPECT_EQ(access.degree(), column ? 32 : 1);
    EXPECT_EQ(access.conflicts, column ? 31 : 0);
    EXPECT_EQ(access.instructions, column ? 1 : 32);
  }
}

TEST(SharedMemory, OfAPipelineIsARing) {
  const Picture picture = shown({.text = product("64, 64, 32", 3, 128)});
  const SharedPicture& a = shared_of(picture, "a");
  EXPECT_EQ(a.stages, 3);
  EXPECT_EQ(a.bytes, 3 * 64 * 32 * 2);
  int64_t stages = 0;
  for (const TimelineRow& row : picture.kernels[0].timeline->rows) stages += row.label.starts_with("a, stage");
  EXPECT_EQ(stages, 3);
}

// With one stage each product waits for its copies; with two, the next copies are in flight.
TEST(Timelines, OfPipelinesOverlapCopiesAndProducts) {
  for (const char* target : {"emulate:sm_80", "emulate:sm_90a"}) {
    const Picture one = shown({.text = product("128, 128, 32", 1, 128), .target = target});
    const Picture three = shown({.text = product("128, 128, 32", 3, 128), .target = target});
    ASSERT_TRUE(one.kernels[0].timeline && three.kernels[0].timeline) << three.kernels[0].no_timeline;
    EXPECT_THAT(three.kernels[0].defects, IsEmpty());
    EXPECT_LT(three.kernels[0].timeline->cycles, one.kernels[0].timeline->cycles) << target;
    EXPECT_GT(three.kernels[0].timeline->copies_under_products, 0.3) << target;
    EXPECT_EQ(one.kernels[0].timeline->unplaced + three.kernels[0].timeline->unplaced, 0) << target;
    EXPECT_LT(three.kernels[0].timeline->tensor_busy, 1) << target;
  }
}

// Half of A comes from the neighbour's load, and the slots are free when both have released them.
TEST(Timelines, OfClustersHaveWhatNeighboursDo) {
  std::string text = product("128, 128, 64", 3, 256);
  const auto put = [&](const std::string& before, const std::string& after) {
    text.replace(text.find(before), before.size(), after);
  };
  put("threads=256", "threads=256, cluster_dims=(2, 1, 1)");
  put("T.copy(A[by * m, s * k], a)", "T.copy_cluster(A[by * m, s * k], a, cluster_mask=3)");
  const Picture picture = shown({.text = text, .target = "emulate:sm_90a"});
  ASSERT_TRUE(picture.kernels[0].timeline);
  const Timeline& timeline = *picture.kernels[0].timeline;
  EXPECT_EQ(timeline.unplaced, 0);
  EXPECT_EQ(std::count_if(timeline.rows.begin(), timeline.rows.end(), [](const auto& row) { return row.warp >= 0; }),
            12);
  // At least what the tensor cores need: 8 steps of 2 * 128 * 128 * 64 operations, 4096 a cycle.
  EXPECT_GE(timeline.cycles, 8 * 512);
}

TEST(Timelines, HaveTheLinesOfTheProgram) {
  const Picture picture = shown({.text = product("64, 64, 32", 2, 128)});
  bool product = false, copy = false, store = false;
  for (const TimelineRow& row : picture.kernels[0].timeline->rows) {
    double last = 0;
    for (const Segment& segment : row.segments) {
      EXPECT_TRUE(row.warp < 0 || segment.begin >= last) << row.label << ": " << segment.what;
      EXPECT_GT(segment.end, segment.begin);
      last = segment.end;
      product |= segment.line == line_of(picture, "gemm") && segment.activity == Activity::product;
      copy |= segment.line == line_of(picture, "a") && segment.activity == Activity::copy;
      store |= segment.line == line_of(picture, "store") && segment.activity == Activity::global;
    }
  }
  EXPECT_TRUE(product && copy && store);
}

TEST(Timelines, AreMissingWithWords) {
  EXPECT_THAT(shown({.text = product("64, 64, 32", 2, 128), .executes = false}).kernels[0].no_timeline,
              HasSubstr("as asked"));
  EXPECT_THAT(shown({.text = product("64, 64, 32", 2, 128), .block = 1 << 20}).kernels[0].no_timeline,
              HasSubstr("none of them is block"));
  const Picture large = shown({.text = product("64, 64, 32", 2, 128), .call = "program(262144, 262144, 64)"});
  EXPECT_THAT(large.kernels[0].no_timeline, HasSubstr("more than 16 GB"));
  EXPECT_FALSE(large.kernels[0].registers.empty());  // what needs no execution is drawn
  EXPECT_TRUE(large.kernels[0].roofline);
}

TEST(Timelines, AreDrawnFromTheCycleThatIsAskedFor) {
  Picture picture = shown({.text = product("64, 64, 32", 2, 128)});
  Timeline& timeline = *picture.kernels[0].timeline;
  const std::string all = draw(timeline).standalone();
  timeline.from = timeline.cycles / 2;
  const std::string half = draw(timeline).standalone();
  EXPECT_LT(half.size(), all.size());
  EXPECT_THAT(half, HasSubstr("`--from` shows others"));
  EXPECT_THAT(all, Not(HasSubstr("`--from` shows others")));
  EXPECT_THAT(half, Not(HasSubstr("cycles 0 to ")));
  EXPECT_THAT(draw(timeline, {.segments = 10}).standalone(), HasSubstr("`--json` has all"));
  timeline.from = 1e15;
  EXPECT_THAT(draw(timeline).standalone(), HasSubstr("<svg"));
}

TEST(Timelines, OfForeignSourceAreMissing) {
  const Picture picture = shown({.text = R"(
def program():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32")):
        T.CUDASourceCodeKernel(8, threads=32, source_code_or_path="extern \"C\" __global__ void twice(float* a) { a[threadIdx.x] *= 2; }", entry_name="twice")
    return main
)"});
  EXPECT_THAT(picture.kernels[0].no_timeline, HasSubstr("source of its own"));
}

// A program that waits for what nobody writes ends all the same, and its assertions are told.
TEST(Timelines, EndWithTheirDefects) {
  const std::string text = R"(
def program(waits):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            tx = T.get_thread_binding()
            if waits:
                while A[tx] == 0:
                    A[tx] = A[tx] * 2
            T.device_assert(A[tx] > 0)
            A[tx] = 1
    return main
)";
  const Picture endless = shown({.text = text, .call = "program(True)"});
  ASSERT_TRUE(endless.kernels[0].timeline);
  EXPECT_TRUE(endless.kernels[0].timeline->is_cut);
  const Picture asserted = shown({.text = text, .call = "program(False)"});
  EXPECT_THAT(asserted.kernels[0].defects, Contains(HasSubstr("failed check")));
  EXPECT_THAT(asserted.kernels[0].notes, Contains(HasSubstr("all zero")));
}

TEST(Timelines, AreCutWhereABlockIsTooLong) {
  const Picture picture = shown({.text = product("128, 128, 32", 2, 128), .call = "program(128, 128, 1048576)"});
  ASSERT_TRUE(picture.kernels[0].timeline) << picture.kernels[0].no_timeline;
  EXPECT_TRUE(picture.kernels[0].timeline->is_cut);
  EXPECT_THAT(draw(*picture.kernels[0].timeline).standalone(), HasSubstr("before the block&#39;s end"));
}

TEST(Rooflines, CountTheProgramsWork) {
  const Picture picture = shown({.text = product("128, 128, 32", 3, 128)});
  ASSERT_TRUE(picture.kernels[0].roofline);
  const RooflinePicture& roofline = *picture.kernels[0].roofline;
  EXPECT_EQ(roofline.flops, 2.0 * 1024 * 1024 * 512);
  EXPECT_EQ(roofline.bytes, 2.0 * 1024 * 512 * 2 + 4.0 * 1024 * 1024);
  EXPECT_EQ(roofline.ceilings[0].flops_per_s, 108 * 1.3e9 * 2048);  // an A100, as machine.cpp has it
  EXPECT_GT(roofline.seconds, 0);
  EXPECT_THAT(roofline.time_from, HasSubstr("not measured"));
}

// Plain float32 is no tensor cores' work.
TEST(Rooflines, HaveTheUnitsThatMultiply) {
  std::string text = product("64, 64, 32", 2, 128);
  for (size_t at = 0; (at = text.find("float16", at)) != std::string::npos;) text.replace(at, 7, "float32");
  const Picture picture = shown({.text = text});
  ASSERT_TRUE(picture.kernels[0].roofline);
  EXPECT_EQ(picture.kernels[0].roofline->ceilings[0].name, "threads, float32");
}

TEST(Processors, HaveARooflineAndLoops) {
  const Picture picture = shown({.text = product("64, 64, 32", 2, 128), .target = "cpu"});
  ASSERT_EQ(picture.kernels.size(), 1u);
  const KernelPicture& kernel = picture.kernels[0];
  ASSERT_TRUE(kernel.roofline) << kernel.no_roofline;
  EXPECT_EQ(kernel.roofline->flops, 2.0 * 1024 * 1024 * 512);
  EXPECT_THAT(kernel.no_registers + kernel.no_shared + kernel.no_timeline, HasSubstr("processor"));
}

TEST(Extents, ThatAreKnownAtLaunchAloneAreAssumedAloud) {
  const std::string text = R"(
def program():
    m = T.dynamic("m")
    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32"), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=128) as bx:
            f = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * 32, 0], f)
            T.copy(f, B[bx * 32, 0])
    return main
)";
  const Picture assumed = shown({.text = text});
  EXPECT_THAT(assumed.kernels[0].notes, Contains(HasSubstr("256 is assumed")));
  EXPECT_TRUE(assumed.kernels[0].timeline);
  EXPECT_THAT(assumed.kernels[0].facts, Contains("grid 8"));
  const Picture given = shown({.text = text, .extents = {{"m", 96}}});
  EXPECT_THAT(given.kernels[0].notes, Each(Not(HasSubstr("assumed"))));
  EXPECT_THAT(given.kernels[0].facts, Contains("grid 3"));
}

TEST(Warnings, OfTheCompilerAreNotes) {
  const std::string text = R"(
def program():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float32")
            T.annotate_layout({s: T.Layout(s.shape, lambda i, j: i * 64 + (i + j) % 64)})
            T.copy(A, s)
            T.copy(s, B)
    return main
)";
  EXPECT_THAT(shown({.text = text}).kernels[0].notes, Contains(HasSubstr("`s` is not laid out as asked")));
}

}  // namespace
}  // namespace tilepilot::show::testing
