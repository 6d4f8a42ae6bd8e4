// What a language model asks before it answers. What is compiled for it: tests/cli/language_model_test.cpp.
#include "agent/llm/questions.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Questions : public ::testing::Test {
 protected:
  Questions() : folder_(fs::temp_directory_path() / ("tilepilot-questions-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    corpus_ = *retrieval::open_corpus(folder_ / "corpus.db");
    add("rows_of_softmax", "softmax over each row", "aten::softmax");
    add("image_filter", "convolution of an image with a small kernel", "aten::conv2d");
  }
  ~Questions() override { fs::remove_all(folder_); }

  void add(const std::string& name, const std::string& summary, const std::string& op) {
    retrieval::Entry entry{.name = name, .origin = "generated", .summary = summary, .target = "cpu"};
    entry.structure.ops = {op};
    entry.source = "name = '" + name + "'\n";
    ASSERT_TRUE(*corpus_->add(entry));
  }
  std::string ask(const std::string& question) { return answer_question({*corpus_, "", folder_, "cpu"}, question, ""); }

  fs::path folder_;
  std::unique_ptr<retrieval::Corpus> corpus_;
};

TEST_F(Questions, FindStoredProgramsByNameAndByWords) {
  EXPECT_THAT(ask("seed image_filter"), HasSubstr("name = 'image_filter'"));
  const std::string nearest = ask("seed convolution");
  EXPECT_THAT(nearest,
              AllOf(HasSubstr("There is no stored program `convolution`"),
                    HasSubstr("- `image_filter`: `conv2d, cpu`; `convolution of an image with a small kernel`")));
  EXPECT_LT(nearest.find("image_filter"), nearest.find("rows_of_softmax"));
  EXPECT_THAT(ask("seed"), AllOf(HasSubstr("image_filter"), HasSubstr("rows_of_softmax")));
}

TEST(QuestionOfAttempt, TakesTheNumberBeforeTheCall) {
  auto parts = [](const std::string& question) {
    const QuestionOfAttempt asked = question_of_attempt(question);
    return std::pair(asked.question, asked.attempt.value_or(0));
  };
  EXPECT_EQ(parts("source 3 rows(2, 4)"), std::pair(std::string("source rows(2, 4)"), size_t{3}));
  EXPECT_EQ(parts("explain attempt 12, rows(2, 4)"), std::pair(std::string("explain rows(2, 4)"), size_t{12}));
  EXPECT_EQ(parts("ir #2"), std::pair(std::string("ir"), size_t{2}));
  EXPECT_EQ(parts("program 4"), std::pair(std::string("program"), size_t{4}));
  for (const char* plain : {"source rows(2, 4)", "seed 3", "language T.exp", "source"})
    EXPECT_EQ(parts(plain), std::pair(std::string(plain), size_t{0}));
}

}  // namespace
}  // namespace tilepilot::agent
