// A scripted endpoint that plays the ways in which language models and their endpoints fail. Wherever a later reply is
// right the run ends with a verified program, and no limit of spending is ever exceeded.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/generate/improve.h"
#include "agent/llm/llm_author.h"
#include "tests/agent/stored_run.h"
#include "tests/chat_server.h"

namespace tilepilot::agent {
namespace {

using tilepilot::testing::ChatServer;
using tilepilot::testing::ServerAnswer;

// A program that this test's judge gives a verdict by what stands in it.
std::string judged(const std::string& outcome, int number = 0) {
  return "An attempt.\n```python\n# " + outcome + " " + std::to_string(number) + "\nclass ModelNew:\n    pass\n```\n";
}

class ReadingJudge final : public eval::Judge {
 public:
  eval::Verdict check(const eval::CheckRequest& request) override {
    const std::string name = request.source.substr(2, request.source.find(' ', 2) - 2);
    eval::Verdict verdict;
    verdict.outcome = eval::parse_outcome(name).value_or(eval::Outcome::compile_error);
    verdict.detail = "as it was told";
    if (verdict.outcome != eval::Outcome::verified) return verdict;
    const double us = request.source.find("slow") == std::string::npos ? 50 : 500;
    verdict.candidate = eval::Timing{us, us, us, 3};
    verdict.eager = eval::Timing{100, 100, 100, 3};
    return verdict;
  }
  std::string target() const override { return "cpu"; }
};

struct Failure {
  const char* name;
  std::deque<ServerAnswer> answers;  // before the right one
};

ServerAnswer with_message(const nlohmann::json& message, const char* reason = "stop") {
  return {200, nlohmann::json({{"choices", {{{"message", message}, {"finish_reason", reason}}}},
                               {"usage", {{"prompt_tokens", 1000}, {"completion_tokens", 900}}}})
                   .dump()};
}

ServerAnswer refusal(int status, const std::string& message, const std::string& type = "invalid_request_error") {
  return {status, nlohmann::json({{"error", {{"message", message}, {"type", type}}}}).dump()};
}

std::string event(const std::string& text) {
  return "data: " +
         nlohmann::json({{"choices", {{{"delta", {{"content", text}}}, {"finish_reason", nullptr}}}}}).dump();
}

ServerAnswer broken_stream() {
  auto answer = ChatServer::stream({event("half an ans")});
  answer.breaks_off = true;
  return answer;
}

ServerAnswer silent_stream() {
  auto answer = ChatServer::stream({event("half"), event("an answer")});
  answer.piece_pause_s = 6;  // longer than a busy machine takes to answer at all
  return answer;
}

std::vector<Failure> failures_of_endpoints() {
  const std::string overflow =
      "This model's maximum context length is 9000 tokens. However, your messages resulted in 10000 tokens.";
  return {
      {"slow down", {{429, "slow down", "0"}}},
      {"slow down, told in milliseconds", {ServerAnswer{.status = 429, .headers = {{"retry-after-ms", "1"}}}}},
      {"internal error", {{500, "oops"}}},
      {"bad gateway", {{502, "<html>bad gateway</html>"}}},
      {"unavailable", {{503, ""}}},
      {"gateway timeout", {{504, "too late"}}},
      {"overloaded", {refusal(529, "overloaded", "overloaded_error")}},
      {"request timeout", {{408, ""}}},
      {"an error in a 200", {refusal(200, "server had an error", "server_error")}},
      {"an error in a stream",
       {ChatServer::stream({event("half"), R"(data: {"error": {"type": "overloaded_error"}})"})}},
      {"a stream that breaks off", {broken_stream()}},
      {"a stream that ends early", {ChatServer::stream({event("half an answer")})}},
      {"a stream that falls silent", {silent_stream()}},
      {"half a JSON object", {{200, R"({"choices": [{"message": {"con)"}}},
      {"an empty body", {{200, ""}}},
      {"an answer without end", {{200, std::string(70'000'000, ' ')}}},
      {"max_tokens refused",
       {refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")}},
      {"stream_options refused", {refusal(400, "stream_options: Extra inputs are not permitted")}},
      {"stream refused", {refusal(400, "'stream' is not supported")}},
      {"system role refused", {refusal(400, "System role not supported")}},
      {"output limit too high", {refusal(400, "max_tokens is too large: 2000. This model supports at most 1500.")}},
      {"context overflow", {refusal(400, overflow, "context_length_exceeded")}},
  };
}

std::vector<Failure> failures_of_models() {
  const std::string open_fence = "Here it is:\n```python\nclass ModelNew:\n    def forw";
  return {
      {"null content", {with_message({{"content", nullptr}})}},
      {"an empty answer", {with_message({{"content", ""}})}},
      {"reasoning that eats the limit", {with_message({{"content", nullptr}, {"reasoning_content", "hm"}}, "length")}},
      {"a thought without end", {with_message({{"content", "<think>hm, hm"}}, "length")}},
      {"an answer that is cut off", {with_message({{"content", open_fence}}, "length")}},
      {"a refusal", {with_message({{"content", nullptr}, {"refusal", "I cannot help with that"}})}},
      {"a content filter", {with_message({{"content", ""}}, "content_filter")}},
      {"chatter", {ChatServer::completion("What a lovely model!")}},
      {"another language", {ChatServer::completion("```cuda\n__global__ void kernel() {}\n```")}},
      {"DONE too early", {ChatServer::completion("DONE")}},
      {"a change of nothing", {ChatServer::completion("<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE")}},
      {"questions", {ChatServer::completion("ask: seed softmax\nask: what is love")}},
      {"content in parts", {with_message({{"content", {{{"type", "text"}, {"text", judged("crashed")}}}}})}},
      {"the same program twice",
       {ChatServer::completion(judged("crashed")), ChatServer::completion(judged("crashed"))}},
      {"a slow program", {ChatServer::completion(judged("verified slow"))}},
  };
}

std::vector<Failure> failures_of_programs() {
  std::vector<Failure> failures;
  for (const char* outcome :
       {"compile_error", "runtime_error", "wrong_values", "wrong_shape", "wrong_dtype", "wrong_strides", "not_finite",
        "mutated_input", "weights_mismatch", "crashed", "timed_out", "out_of_memory", "rejected"})
    failures.push_back(
        {outcome, {ChatServer::completion(judged(outcome)), ChatServer::completion(judged(outcome, 1))}});
  return failures;
}

class Failures : public RunTest {
 protected:
  RunOutcome run(const Failure& failure, double dollars) {
    run_ = begin_run();
    std::deque<ServerAnswer> answers = failure.answers;
    answers.push_back(ChatServer::completion(judged("verified fast")));
    answers.push_back(ChatServer::completion("DONE"));
    ChatServer server(std::move(answers));
    ChatOptions options;
    options.endpoint.url = server.url();
    options.endpoint.idle_limit_s = 4;
    options.settings.model = "test";
    options.settings.max_output_tokens = 2000;
    options.prices = {.input = 1, .output = 10};
    options.limits.dollars = dollars;
    auto chat = live_chat(options, {curl_client(), [](double) {}, [](const std::string&) {}}, *store_, run_);
    EXPECT_TRUE(chat.ok());
    LlmAuthorOptions author;
    author.system = {{"the rules"}};
    author.task = {{"the task " + std::string(6000, 'x')}, {std::string(20'000, 'x'), Keep::retrieved}};
    auto writer = llm_author(std::move(*chat), std::move(author));
    ReadingJudge judge;
    auto outcome = improve(*writer, judge, {*store_, run_}, {.attempts = 8, .dollars = dollars}, {});
    EXPECT_TRUE(outcome.ok());
    // What is written down is what was counted, and both are within the limit.
    const double stored = std::stod(column("SELECT total(dollars) FROM exchange WHERE run = " + std::to_string(run_)));
    EXPECT_NEAR(stored, outcome->spending.dollars, 1e-9);
    EXPECT_LE(stored, dollars);
    return std::move(*outcome);
  }

  void expect_a_program_after(const std::vector<Failure>& failures) {
    for (const Failure& failure : failures) {
      SCOPED_TRACE(failure.name);
      const RunOutcome outcome = run(failure, 1);
      EXPECT_FALSE(outcome.failure) << outcome.failure->message;
      ASSERT_TRUE(outcome.best);
      EXPECT_THAT(outcome.attempts[*outcome.best].candidate.source, ::testing::HasSubstr("# verified fast"));
      EXPECT_EQ(outcome.ending, Ending::nothing_left);
      // With less money the run ends where the money does.
      run(failure, 0.045);
    }
  }
};

TEST_F(Failures, OfEndpointsEndWithAProgram) { expect_a_program_after(failures_of_endpoints()); }
TEST_F(Failures, OfModelsEndWithAProgram) { expect_a_program_after(failures_of_models()); }
TEST_F(Failures, OfProgramsEndWithAProgram) { expect_a_program_after(failures_of_programs()); }

TEST_F(Failures, AreManyKinds) {
  EXPECT_GE(failures_of_endpoints().size() + failures_of_models().size() + failures_of_programs().size(), 50u);
}

}  // namespace
}  // namespace tilepilot::agent
