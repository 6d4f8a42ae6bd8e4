// Runs as pages and as training records.
#include "agent/store/transcript.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/store/line_diff.h"
#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TranscriptTest : public RunTest {
 protected:
  void add_attempt(int number, const std::string& source, const eval::Verdict& verdict) {
    ASSERT_TRUE(
        store_->save_attempt(run_, number, {source, "attempt <" + std::to_string(number) + ">"}, std::nullopt).ok());
    ASSERT_TRUE(store_->save_attempt(run_, number, {source, ""}, verdict).ok());
  }
  void add_exchange(int number, int attempt, const std::string& asked, const std::string& answered) {
    const json request = {
        {"model", "m"},
        {"messages", {{{"role", "system"}, {"content", "rules"}}, {{"role", "user"}, {"content", asked}}}}};
    const json reply = {{"choices", {{{"message", {{"content", answered}}}, {"finish_reason", "stop"}}}}};
    Exchange exchange{.request = request.dump(),
                      .status = 200,
                      .reply = reply.dump(),
                      .input_tokens = 10,
                      .output_tokens = 5,
                      .dollars = 0.25,
                      .seconds = 2,
                      .attempt = attempt};
    if (answered.empty()) exchange.failure = "too late";
    ASSERT_TRUE(store_->save_exchange(run_, number, exchange).ok());
  }
  static eval::Verdict verified(double us) {
    eval::Verdict verdict;
    verdict.outcome = eval::Outcome::verified;
    verdict.candidate = eval::Timing{us, us, us, 3};
    verdict.eager = eval::Timing{100, 100, 100, 3};
    verdict.speedup_low = 95 / us;
    verdict.speedup_high = 105 / us;
    return verdict;
  }
  void SetUp() override {
    RunTest::SetUp();
    eval::Verdict wrong;
    wrong.outcome = eval::Outcome::wrong_values;
    wrong.detail = "wrong <everywhere>";
    add_exchange(0, 0, "first task", "");
    add_exchange(1, 0, "first task", "reply one");
    add_exchange(2, 1, "it was wrong", "reply two");
    add_attempt(0, "a\nb\nc\n", wrong);
    add_attempt(1, "a\nB\nc\n", verified(50));
    add_attempt(2, "a\nBB\nc\n", verified(20));
    ASSERT_TRUE(store_->finish_run(run_, "attempts spent", 2).ok());
  }
  Transcript transcript() {
    auto loaded = load_transcript(*store_, run_);
    EXPECT_TRUE(loaded.ok() && *loaded);
    return **std::move(loaded);
  }
};

TEST_F(TranscriptTest, IsOnePageWithAllThatWasSaid) {
  const std::string page = transcript_page(transcript());
  EXPECT_THAT(page, AllOf(HasSubstr("3 requests (1 failed)"), HasSubstr("$0.7500"), HasSubstr("too late")));
  EXPECT_THAT(page,
              AllOf(HasSubstr("reply two"), HasSubstr("<span class=\"removed\">- b</span>"), HasSubstr("(the best)")));
  EXPECT_THAT(page, AllOf(HasSubstr("wrong &lt;everywhere&gt;"), Not(HasSubstr("<everywhere>"))));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script"))));
}

TEST_F(TranscriptTest, GivesTrainingRecordsWithPreferences) {
  const auto records = training_records(transcript());
  std::vector<json> attempts, preferences;
  for (const json& record : records) (record["type"] == "attempt" ? attempts : preferences).push_back(record);
  ASSERT_EQ(attempts.size(), 2u);  // the third one was of no exchange
  EXPECT_EQ(attempts[0]["reply"], "reply one");
  EXPECT_EQ(attempts[0]["messages"][1]["content"], "first task");
  EXPECT_EQ(attempts[0]["outcome"], "wrong_values");
  ASSERT_EQ(preferences.size(), 3u);
  EXPECT_EQ(preferences[0]["chosen"], "a\nB\nc\n");
  EXPECT_EQ(preferences[0]["reason"], "verified rather than wrong_values");
  EXPECT_EQ(preferences[2]["reason"], "2.50 times as fast");
  EXPECT_TRUE(preferences[0]["licence"]["model"].is_null());
}

// Several answers came for one attempt, and a variant of it was tried in between.
TEST_F(TranscriptTest, KnowsTheReplyOfEachAttempt) {
  run_ = begin_run();
  add_exchange(0, 0, "task", "one");
  add_exchange(1, 0, "task", "two");
  const Candidate candidates[] = {{"a\nb\n", "", {}, 0}, {"a\nc\n", "", 0, {}, true}, {"x\ny\n", "", {}, 1}};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store_->save_attempt(run_, i, candidates[i], std::nullopt).ok());
    ASSERT_TRUE(store_->save_attempt(run_, i, candidates[i], verified(50 - i)).ok());
  }
  const auto loaded = transcript();
  EXPECT_EQ(compared_with(loaded.run, 1), std::optional<size_t>(0));
  EXPECT_TRUE(loaded.run.attempts[1].candidate.is_variant);
  std::vector<std::string> replies;
  for (const json& record : training_records(loaded))
    if (record["type"] == "attempt") replies.push_back(record["reply"]);
  EXPECT_THAT(replies, ::testing::ElementsAre("one", "two"));
}

TEST_F(TranscriptTest, GivesNoRecordsOfARunThatVerifiedNothing) {
  run_ = begin_run();
  add_attempt(0, "a", {});
  EXPECT_TRUE(training_records(transcript()).empty());
  EXPECT_FALSE(*load_transcript(*store_, run_ + 1));
}

TEST_F(TranscriptTest, ReadsRequestsOfAllForms) {
  const auto anthropic = messages_in(
      R"({"system": [{"type": "text", "text": "rules"}], "messages": [{"role": "user", "content": [{"type": "text", "text": "task"}]}]})");
  ASSERT_EQ(anthropic.size(), 2u);
  EXPECT_EQ(anthropic[1].content, "task");
  const auto responses = messages_in(R"({"instructions": "rules", "input": [{"role": "user", "content": "task"}]})");
  ASSERT_EQ(responses.size(), 2u);
  EXPECT_EQ(responses[0].content, "rules");
  EXPECT_TRUE(messages_in("no JSON").empty());
}

TEST(LineDiff, KeepsACommonSubsequence) {
  std::string text;
  for (const DiffLine& line : diff_lines("a\nb\nc\nd\n", "a\nc\nx\nd\n"))
    text += (line.kind == DiffLine::Kind::added ? '+' : line.kind == DiffLine::Kind::removed ? '-' : ' ') + line.text;
  EXPECT_EQ(text, " a-b c+x d");
  EXPECT_EQ(shorten_diff(diff_lines("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nsix\n"), 1).size(), 4u);
  EXPECT_TRUE(diff_lines("", "").empty());
}

}  // namespace
}  // namespace tilepilot::agent
