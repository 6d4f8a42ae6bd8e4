// Which programs are chosen for a graph: those that together show its patterns, and that run where it will.
#include "retrieval/patterns.h"

#include "retrieval/computations.h"
#include "retrieval/seeds.h"
#include "retrieval/target_fit.h"
#include "tests/retrieval/corpus_fixture.h"

namespace tilepilot::retrieval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PatternsTest : public CorpusFolder {};

TEST_F(PatternsTest, AreFamiliesAndPairsOfThem) {
  EXPECT_THAT(patterns_of(chain({"linear", "relu", "gelu"})),
              ElementsAre("activation", "activation > activation", "product", "product > activation"));
  EXPECT_THAT(patterns_of(chain({"conv2d"})), ElementsAre("convolution"));
  EXPECT_TRUE(patterns_of({}).empty());
}

TEST_F(PatternsTest, SeeThroughViews) {
  EXPECT_THAT(patterns_of(chain({"matmul", "transpose", "contiguous", "softmax"})),
              ElementsAre("product", "product > softmax", "softmax"));
  // By place: of two products, one alone feeds the softmax.
  Structure graph = chain({"linear", "view", "mm"});
  graph.ops.push_back("aten::softmax");
  graph.edges.emplace_back("aten::view", "aten::softmax");
  graph.links.emplace_back(1, 3);
  EXPECT_THAT(patterns_of(graph), ElementsAre("product", "product > product", "product > softmax", "softmax"));
  // Entries of earlier versions know the names alone.
  graph.links.clear();
  EXPECT_THAT(patterns_of(graph), ElementsAre("product", "softmax"));
}

TEST_F(PatternsTest, CoverIsAShare) {
  EXPECT_EQ(cover({"a", "b", "c", "d"}, {"b", "d", "e"}), 0.5);
  EXPECT_EQ(cover({}, {}), 1);
  EXPECT_EQ(cover({"a"}, {}), 0);
}

TEST_F(PatternsTest, ChoosesWhatCoversRatherThanWhatIsAlike) {
  auto corpus = open(file());
  // Four programs that are near to one half of the model, and one that shows the other half.
  for (const char* activation : {"relu", "gelu", "silu", "tanh"})
    ASSERT_TRUE(*corpus->add(entry(std::string("linear_") + activation, {"linear", activation})));
  ASSERT_TRUE(*corpus->add(entry("norm_pool", {"batch_norm", "max_pool2d"})));
  Query query{chain({"linear", "relu", "batch_norm", "max_pool2d"})};
  query.count = 2;
  const Chosen chosen = *choose_covering(*corpus, query);
  ASSERT_EQ(chosen.hits.size(), 2u);
  std::vector<std::string> names = {chosen.hits[0].entry.name, chosen.hits[1].entry.name};
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("linear_relu", "norm_pool"));
  EXPECT_THAT(chosen.hits[0].reason, HasSubstr("covers "));
  EXPECT_THAT(chosen.uncovered, ElementsAre("activation > norm"));
  EXPECT_NEAR(chosen.cover, 8.0 / 9, 1e-9);  // two of them computations
}

TEST_F(PatternsTest, FindsARarePatternBehindManyNearEntries) {
  auto corpus = open(file());
  std::vector<Entry> entries;
  for (int i = 0; i < 100; ++i) {
    entries.push_back(entry("near_" + std::to_string(i), {"linear", "relu", "linear", "relu", "linear"}));
    entries.back().structure.dtype = "float32";
  }
  entries.push_back(entry("rare", {"cumsum"}));
  ASSERT_EQ(*corpus->add_all(entries), 101);
  Query query{chain({"linear", "relu", "linear", "relu", "linear", "cumsum"})};
  query.count = 2;
  const Chosen chosen = *choose_covering(*corpus, query);
  ASSERT_EQ(chosen.hits.size(), 2u);
  EXPECT_EQ(chosen.hits[1].entry.name, "rare");
}

TEST_F(PatternsTest, PrefersTheFasterOfEquals) {
  auto corpus = open(file());
  Entry slow = entry("slow", {"linear", "relu"}), fast = entry("fast", {"linear", "relu"});
  slow.speedup = 1.1;
  fast.speedup = 6;
  ASSERT_TRUE(*corpus->add(slow));
  ASSERT_TRUE(*corpus->add(fast));
  Query query{chain({"linear", "relu"})};
  query.count = 1;
  EXPECT_EQ((*choose_covering(*corpus, query)).hits[0].entry.name, "fast");
}

TEST_F(PatternsTest, LeavesOutWhatCannotRunThereOrIsTooNear) {
  auto corpus = open(file());
  Entry hopper = entry("hopper", {"linear", "relu"}), same = entry("same", {"linear", "relu"}),
        other = entry("other", {"linear", "gelu"});
  hopper.target = "cuda:sm_90a";
  hopper.source = "def f(T, a, b, m):\n    T.copy_cluster(a, b, dst_block=m)\n";
  ASSERT_TRUE(*corpus->add(hopper));
  ASSERT_TRUE(*corpus->add(same));
  ASSERT_TRUE(*corpus->add(other));
  Query query{chain({"linear", "relu"})};
  query.count = 3;
  query.target = "cuda:sm_80";
  const Chosen runs = *choose_covering(*corpus, query);
  for (const Hit& hit : runs.hits) EXPECT_NE(hit.entry.name, "hopper");
  query.target = "cuda:sm_90a";
  EXPECT_EQ((*choose_covering(*corpus, query)).hits[0].entry.name, "hopper");
  query.exclude_near = 0.1;
  const Chosen far = *choose_covering(*corpus, query);
  ASSERT_EQ(far.hits.size(), 1u);
  EXPECT_EQ(far.hits[0].entry.name, "other");
}

// A graph of repeated steps has been answered by hundreds of kernels: the nearest program, and no one can read it.
TEST_F(PatternsTest, LeavesOutProgramsTooLongToRead) {
  auto corpus = open(file());
  Entry unrolled = entry("unrolled", {"linear", "relu"}), brief = entry("brief", {"linear", "gelu"});
  unrolled.source += std::string(20'000, '#');
  ASSERT_TRUE(*corpus->add(unrolled));
  ASSERT_TRUE(*corpus->add(brief));
  Query query{chain({"linear", "relu"})};
  query.count = 2;
  EXPECT_EQ((*choose_covering(*corpus, query)).hits.size(), 2u);
  query.longest_source = 16'000;
  const Chosen chosen = *choose_covering(*corpus, query);
  ASSERT_EQ(chosen.hits.size(), 1u);
  EXPECT_EQ(chosen.hits[0].entry.name, "brief");
}

// A program for another graph that is much faster than eager, and shows all the arithmetic, is no answer to a softmax
// that is spelled out.
TEST_F(PatternsTest, OffersSeedsOfTheSameComputationFirst) {
  auto corpus = open(file());
  Entry filter = entry("filter", {"sub", "mul", "exp", "mul", "add", "add", "div", "clamp"});
  filter.speedup = 130;
  ASSERT_TRUE(*corpus->add(filter));
  Entry softmax = entry("softmax_rows", {"softmax"}), loss = entry("cross_entropy", {"cross_entropy_loss"});
  softmax.origin = loss.origin = "seed";
  ASSERT_TRUE(*corpus->add(softmax));
  ASSERT_TRUE(*corpus->add(loss));
  for (int i = 0; i < 60; ++i) {
    Entry other = entry("near_" + std::to_string(i), {"sub", "mul", "exp", "add", "div"});
    other.speedup = 30;
    ASSERT_TRUE(*corpus->add(other));
  }
  Query query{chain({"amax", "sub", "exp", "sum", "div", "mul", "add"})};
  query.count = 2;
  EXPECT_EQ((*choose_covering(*corpus, query)).hits[0].entry.name, "softmax_rows");
  query.structure = chain({"logsumexp", "sub", "gather", "mul", "sub", "mul", "add", "mul", "sum", "div"});
  EXPECT_EQ((*choose_covering(*corpus, query)).hits[0].entry.name, "cross_entropy");
}

TEST_F(PatternsTest, NameComputationsHoweverTheyAreSpelled) {
  EXPECT_THAT(computations_of(chain({"amax", "sub", "exp", "sum", "div"})), ElementsAre("softmax"));
  EXPECT_THAT(computations_of(chain({"pow", "mean", "add", "rsqrt", "mul", "mul"})), ElementsAre("normalisation"));
  EXPECT_THAT(computations_of(chain({"matmul", "div", "softmax", "matmul"})), ElementsAre("attention", "softmax"));
  EXPECT_THAT(computations_of(chain({"chunk", "silu", "mul"})), ElementsAre("gated activation"));
  EXPECT_TRUE(computations_of(chain({"mul", "add", "exp"})).empty());
}

// Layers follow one another, too, but what is between their products is short.
TEST_F(PatternsTest, KnowRecurrencesThatAreWrittenOut) {
  std::vector<std::string> steps, layers, sums(40, "add");
  for (int i = 0; i < 10; ++i) {
    steps.insert(steps.end(), {"select", "mul", "add"});
    layers.insert(layers.end(), {"linear", "mul", "add", "add", "layer_norm", "mul", "add"});
  }
  EXPECT_THAT(computations_of(chain(steps)), ElementsAre("repeated steps"));
  EXPECT_THAT(computations_of(chain(layers)), ElementsAre("normalisation"));
  EXPECT_TRUE(computations_of(chain(sums)).empty());
  EXPECT_TRUE(computations_of(chain({steps.begin(), steps.begin() + 12})).empty());
}

TEST_F(PatternsTest, OfferASeedThatLoopsForStepsThatAreWrittenOut) {
  auto corpus = open(file());
  for (const char* name : {"gated_recurrence", "stencil_steps", "rms_norm", "softmax_rows", "swiglu", "attention"})
    ASSERT_TRUE(
        *corpus->add(*read_seed(std::filesystem::path(TILEPILOT_SOURCE_DIR) / "seeds" / (name + std::string(".py")))));
  for (int i = 0; i < 60; ++i) {
    Entry other = entry("near_" + std::to_string(i), {"mul", "rsub", "add", "mul", "stack", "silu"});
    other.speedup = 30;
    ASSERT_TRUE(*corpus->add(other));
  }
  std::vector<std::string> ops = {"sigmoid"};
  for (int i = 0; i < 30; ++i) ops.insert(ops.end(), {"mul", "select", "mul", "add"});
  ops.emplace_back("stack");
  Query query{chain(ops)};
  query.count = 1;
  EXPECT_EQ((*choose_covering(*corpus, query)).hits[0].entry.name, "gated_recurrence");
  std::vector<std::string> stencil;
  for (int i = 0; i < 6; ++i) stencil.insert(stencil.end(), {"pad", "slice", "sub", "pow", "exp", "mul", "add", "add"});
  query.structure = chain(stencil);
  EXPECT_EQ((*choose_covering(*corpus, query)).hits[0].entry.name, "stencil_steps");
}

TEST_F(PatternsTest, MakeTitles) {
  Entry entry;
  entry.structure = chain({"softmax"});
  entry.inputs = {{"float32", {4096, 1024}}};
  entry.target = "cpu";
  EXPECT_EQ(title_of(entry), "softmax (softmax), 4096x1024 float32, cpu");
  entry.structure = chain({"view", "mul", "mul", "add"});
  entry.inputs.clear();
  EXPECT_EQ(title_of(entry), "2 mul, add, cpu");
}

TEST(TargetFit, OrdersTargetsByHowMuchTheyTeach) {
  EXPECT_EQ(target_fit("cpu", "", "cpu"), 1);
  EXPECT_EQ(target_fit("cpu", "", ""), 1);
  EXPECT_EQ(target_fit("emulate:sm_80", "", "cuda:sm_80"), 1);
  EXPECT_LT(target_fit("cuda:sm_80", "", "cuda:sm_90a"), 1);
  EXPECT_LT(target_fit("hip:gfx942", "", "cuda:sm_90a"), target_fit("cuda:sm_80", "", "cuda:sm_90a"));
  EXPECT_LT(target_fit("cpu", "", "cuda:sm_90a"), target_fit("hip:gfx942", "", "cuda:sm_90a"));
  EXPECT_GT(target_fit("cpu", "", "cuda:sm_90a"), 0);
}

TEST(TargetFit, IsNoneWhereATargetLacksWhatAProgramNeeds) {
  EXPECT_EQ(target_needs("def f(T):\n    T.cluster_sync()\n    T.cluster_wait()\n"), "clusters");
  EXPECT_EQ(target_needs("def f(T):\n    # T.cluster_sync() is not called\n    x = 'T.import_source'\n"), "");
  EXPECT_EQ(target_needs("def f(T):\n    T.import_source('int x;')\n    T.cluster_sync()\n"), "foreign clusters");
  EXPECT_EQ(target_fit("cuda:sm_90a", "clusters", "cuda:sm_80"), 0);
  EXPECT_EQ(target_fit("cuda:sm_90a", "clusters", "cpu"), 0);
  EXPECT_EQ(target_fit("cuda:sm_90a", "clusters", "cuda:sm_90a"), 1);
  EXPECT_EQ(target_fit("cuda:sm_90a", "foreign", "cpu"), 0);
  EXPECT_GT(target_fit("cuda:sm_80", "foreign", "cuda:sm_90a"), 0);
}

}  // namespace
}  // namespace tilepilot::retrieval
