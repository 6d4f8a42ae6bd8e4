// Programs that were verified before for the same graph.
#include "agent/generate/stored_author.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "agent/generate/generate.h"

namespace tilepilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoredAuthorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    reference_.model_source = "the model";
    reference_.forward.values = {{eval::GraphValue::Kind::input, "x", true, "float32", {4, 8}, {8, 1}},
                                 {eval::GraphValue::Kind::node, "y", true, "float32", {4, 8}, {8, 1}}};
    reference_.forward.inputs = {0};
    reference_.forward.nodes = {{"aten::relu", "", {{eval::ValueRef{0}}}, {}, {1}, "", 0}};
    reference_.forward.outputs = {eval::ValueRef{1}};
    std::string pattern = (std::filesystem::temp_directory_path() / "tilepilot-stored-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    corpus_ = *retrieval::open_corpus(folder_ / "corpus.db");
  }
  void TearDown() override {
    corpus_.reset();
    std::filesystem::remove_all(folder_);
  }

  // An entry that fits, but for what is changed.
  void add(const std::string& source, double speedup, const std::function<void(retrieval::Entry&)>& change = {}) {
    retrieval::Entry entry;
    entry.name = "name";
    entry.origin = "generated";
    entry.summary = "summary";
    entry.structure = structure_of(reference_);
    entry.graph = retrieval::graph_fingerprint(entry.structure);
    entry.source = source;
    entry.speedup = speedup;
    entry.target = "cpu";
    entry.inputs = {{"float32", {4, 8}}};
    entry.model_source = "the model";
    if (change) change(entry);
    ASSERT_TRUE(*corpus_->add(entry));
  }

  std::vector<std::string> given(std::vector<Attempt> history = {}) {
    auto author = stored_author(*corpus_, reference_, "cpu");
    std::vector<std::string> sources;
    for (;;) {
      auto candidate = author->next(history);
      EXPECT_TRUE(candidate.ok());
      if (!candidate || !*candidate) return sources;
      sources.push_back((*candidate)->source);
      EXPECT_THAT((*candidate)->summary, HasSubstr("times eager then: summary"));
      history.push_back({**candidate, {}, {}});
    }
  }

  std::filesystem::path folder_;
  std::unique_ptr<retrieval::Corpus> corpus_;
  eval::Reference reference_;
};

TEST_F(StoredAuthorTest, GivesTheFastestForTheSameModelFirst) {
  add("x = 1\n", 2);
  add("x = 2\n", 5, [](auto& entry) { entry.model_source = "another text"; });
  add("x = 3\n", 3);
  EXPECT_THAT(given(), ElementsAre("x = 3\n", "x = 1\n"));
  EXPECT_THAT(given({{{"x = 3\n", ""}, {}, {}}}), ElementsAre("x = 1\n"));
}

TEST_F(StoredAuthorTest, GivesAnotherTextsWhereNoParameterNeedsAName) {
  add("x = 2\n", 5, [](auto& entry) { entry.model_source = "another text"; });
  EXPECT_THAT(given(), ElementsAre("x = 2\n"));
  reference_.parameters.emplace_back();
  EXPECT_THAT(given(), ElementsAre());
}

TEST_F(StoredAuthorTest, GivesNothingThatWasForSomethingElse) {
  add("x = 1\n", 9, [](auto& entry) { entry.inputs[0].extents = {4, 9}; });
  add("x = 2\n", 9, [](auto& entry) { entry.inputs[0].dtype = "float16"; });
  add("x = 3\n", 9, [](auto& entry) { entry.target = "cuda:sm_90a"; });
  add("x = 4\n", 9, [](auto& entry) {
    entry.structure.ops = {"aten::gelu"};
    entry.graph = retrieval::graph_fingerprint(entry.structure);
  });
  EXPECT_THAT(given(), ElementsAre());
}

// Hands out what it is told to, or fails.
class ListAuthor final : public Author {
 public:
  ListAuthor(std::vector<std::string> sources, bool fails) : sources_(std::move(sources)), fails_(fails) {}
  Result<std::optional<Candidate>> next(const std::vector<Attempt>&) override {
    if (at_ < sources_.size()) return std::optional<Candidate>({sources_[at_++], ""});
    if (fails_) return make_error(DiagnosticKind::author_failed, {}, "cannot follow");
    return std::optional<Candidate>();
  }

 private:
  std::vector<std::string> sources_;
  bool fails_;
  size_t at_ = 0;
};

std::vector<std::string> chained(std::vector<std::string> first, bool fails, std::vector<std::string> second) {
  auto author = author_after(std::make_unique<ListAuthor>(std::move(first), fails),
                             std::make_unique<ListAuthor>(std::move(second), false));
  std::vector<std::string> sources;
  for (int i = 0; i < 9; ++i) {
    auto candidate = author->next({});
    if (!candidate) sources.push_back(candidate.error().message);
    if (!candidate || !*candidate) break;
    sources.push_back((*candidate)->source);
  }
  return sources;
}

TEST(AuthorAfter, TakesTheSecondWhereTheFirstEndsOrFails) {
  EXPECT_THAT(chained({"a", "b"}, false, {"c"}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(chained({"a"}, true, {"c"}), ElementsAre("a", "c"));
  EXPECT_THAT(chained({}, true, {}), ElementsAre("cannot follow"));
  EXPECT_THAT(chained({}, false, {}), ElementsAre());
}

}  // namespace
}  // namespace tilepilot::agent
