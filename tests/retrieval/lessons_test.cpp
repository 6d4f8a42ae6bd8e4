#include "retrieval/lessons.h"

#include "tests/retrieval/corpus_fixture.h"

namespace tilepilot::retrieval {
namespace {

using ::testing::IsEmpty;

class LessonsTest : public CorpusFolder {
 protected:
  std::unique_ptr<Lessons> memory() { return *Lessons::open(file("memory.db")); }
  static Fix fix(const std::string& kind, const std::string& message, const std::string& change) {
    return {kind, message, "T.copy(A[0], a)", change, {"cpu", "graph", "run", 2}, 1};
  }
  static Lesson lesson(const std::string& summary, double gain, std::vector<std::string> patterns) {
    return {summary,    "- a\n+ " + summary + "\n", std::move(patterns), 10 * gain, 10,
            gain * 0.9, {"cpu", "graph", "run", 3}};
  }
};

TEST_F(LessonsTest, FixesComeByKindTheMostAlikeFirst) {
  auto store = memory();
  ASSERT_TRUE(store->remember(fix("shape_mismatch", "`T.copy` of 4 x 8 elements into 8 x 4", "- x\n+ y\n")).ok());
  ASSERT_TRUE(store->remember(fix("shape_mismatch", "`T.gemm` of inner extents 16 and 32", "- p\n+ q\n")).ok());
  ASSERT_TRUE(store->remember(fix("wrong_values", "the tail is wrong", "- i\n+ j\n")).ok());
  FixQuery query;
  query.kind = "shape_mismatch";
  query.message = "`T.gemm` of inner extents 64 and 128";
  const auto found = *store->fixes(query);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].change, "- p\n+ q\n");
  EXPECT_EQ(found[0].from.run, "run");
  query.kind = "timed_out";
  EXPECT_THAT(*store->fixes(query), IsEmpty());
}

TEST_F(LessonsTest, TheSameFixIsCountedOnceARun) {
  auto store = memory();
  Fix first = fix("layout_conflict", "m", "- x\n+ y\n");
  for (const char* run : {"one", "one", "two"}) {
    first.from.run = run;
    ASSERT_TRUE(store->remember(first).ok());
  }
  FixQuery query;
  query.kind = "layout_conflict";
  const auto found = *store->fixes(query);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].seen, 2);
}

TEST_F(LessonsTest, LessonsComeByPatternsAndGain) {
  auto store = memory();
  ASSERT_TRUE(store->remember(lesson("small", 1.2, {"product", "activation"})).ok());
  ASSERT_TRUE(store->remember(lesson("large", 4, {"product", "activation"})).ok());
  ASSERT_TRUE(store->remember(lesson("elsewhere", 9, {"convolution"})).ok());
  LessonQuery query;
  query.patterns = {"product", "softmax"};
  const auto found = *store->lessons(query);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].summary, "large");
  EXPECT_EQ(found[0].gain(), 4);
  EXPECT_NEAR(found[0].gain_low, 3.6, 1e-9);
  query.target = "cuda:sm_90a";
  EXPECT_THAT(*store->lessons(query), IsEmpty());
}

TEST_F(LessonsTest, ABenchmarkDoesNotReadItsOwnAnswers) {
  auto store = memory();
  ASSERT_TRUE(store->remember(fix("wrong_values", "m", "- x\n+ y\n")).ok());
  ASSERT_TRUE(store->remember(lesson("s", 2, {"product"})).ok());
  FixQuery fixes;
  fixes.kind = "wrong_values";
  fixes.exclude_graph = "graph";
  EXPECT_THAT(*store->fixes(fixes), IsEmpty());
  LessonQuery lessons;
  lessons.patterns = {"product"};
  lessons.exclude_graph = "graph";
  EXPECT_THAT(*store->lessons(lessons), IsEmpty());
}

TEST_F(LessonsTest, FailReadOnly) {
  memory();
  auto store = *Lessons::open(file("memory.db"), /*read_only*/ true);
  const Status status = store->remember(fix("k", "m", "c"));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::store_unusable);
}

}  // namespace
}  // namespace tilepilot::retrieval
