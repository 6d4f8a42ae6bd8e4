// Runs that are kept to be played again.
#include "agent/store/recording.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/llm/endpoint/chat.h"
#include "agent/llm/llm_author.h"
#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const char* const kTunable = "class ModelNew:\n    A = 1  # tune: 1, 2\n    size = 8\n";

class RecordingTest : public RunTest {
 protected:
  void add_exchange(int number, const std::string& answered) {
    const json reply = {{"choices", {{{"message", {{"content", answered}}}, {"finish_reason", "stop"}}}}};
    Exchange exchange{.request = "{}", .status = 200, .reply = reply.dump()};
    if (answered.empty()) exchange.failure = "busy";
    ASSERT_TRUE(store_->save_exchange(run_, number, exchange).ok());
  }
  void add_attempt(int number, const Candidate& candidate, eval::Outcome outcome) {
    eval::Verdict verdict;
    verdict.outcome = outcome;
    ASSERT_TRUE(store_->save_attempt(run_, number, candidate, std::nullopt).ok());
    ASSERT_TRUE(store_->save_attempt(run_, number, candidate, verdict).ok());
  }
  // A program, a variant of it, and a change of the variant, after a reply that did not come.
  void SetUp() override {
    RunTest::SetUp();
    add_exchange(0, "Writes it.\n```python\n" + std::string(kTunable) + "```\n");
    add_exchange(1, "");
    add_exchange(2, "Doubles it.\n<<<<<<< SEARCH\n    size = 8\n=======\n    size = 16\n>>>>>>> REPLACE\n");
    variant_ = std::string(kTunable).replace(std::string(kTunable).find("= 1"), 3, "= 2");
    changed_ = std::string(variant_).replace(variant_.find("= 8"), 3, "= 16");
    add_attempt(0, {kTunable, "Writes it.", {}, 0}, eval::Outcome::verified);
    add_attempt(1, {variant_, "attempt 1 with A = 2", 0, {}, true}, eval::Outcome::verified);
    add_attempt(2, {changed_, "Doubles it.", 1, 2}, eval::Outcome::wrong_values);
  }
  std::string variant_, changed_;
};

TEST_F(RecordingTest, IsTheSameFromAFile) {
  const Recording recording = **load_recording(*store_, run_);
  EXPECT_EQ(recording.changed_by(0), std::nullopt);
  EXPECT_EQ(recording.changed_by(2), variant_);
  const std::string text = to_json(recording).dump();
  const auto read = recording_in(text, "file");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(recording));
  EXPECT_EQ(read->outcomes.back(), eval::Outcome::wrong_values);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("request")));
  EXPECT_FALSE(*load_recording(*store_, run_ + 1));
}

// The variant was the fastest then. Now it is not tried at all, and the reply still changes it.
TEST_F(RecordingTest, GivesTheSameProgramsWhateverTheTimesAre) {
  auto chat = recorded_chat(**load_recording(*store_, run_), *store_, begin_run());
  ASSERT_TRUE(chat.ok());
  auto author = llm_author(*std::move(chat), {.bound = {1, ""}});  // so near the roofline that a live run would end
  std::vector<Attempt> history;
  for (const std::string& source : {std::string(kTunable), changed_}) {
    auto candidate = author->next(history);
    ASSERT_TRUE(candidate.ok() && *candidate);
    EXPECT_EQ((*candidate)->source, source);
    EXPECT_EQ((*candidate)->changes, std::nullopt);
    history.push_back({**candidate, {}, {}});
    history.back().verdict.outcome = eval::Outcome::verified;
    history.back().verdict.candidate = eval::Timing{1, 1, 1, 3};
  }
  const auto end = author->next(history);
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(*end);
}

TEST_F(RecordingTest, FailFilesOfAnotherForm) {
  const std::string good = to_json(**load_recording(*store_, run_)).dump();
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string(R"({"recording": "x"})"),
        std::string(R"({"recording": 1})"), good.substr(0, good.size() / 2),
        json::parse(good).patch(json::parse(R"([{"op": "replace", "path": "/exchanges", "value": 3}])")).dump(),
        json::parse(good).patch(json::parse(R"([{"op": "replace", "path": "/recording", "value": 9}])")).dump()}) {
    const auto read = recording_in(text, "a/file");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().kind, DiagnosticKind::bad_usage);
    EXPECT_THAT(read.error().message, HasSubstr("`a/file` is no recording"));
  }
  // A change of what is not there is of nothing.
  json odd = json::parse(good);
  odd["attempts"][2]["changes"] = 77;
  EXPECT_EQ(recording_in(odd.dump(), "file")->changed_by(2), std::nullopt);
}

}  // namespace
}  // namespace tilepilot::agent
