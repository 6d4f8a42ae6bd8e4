// What a round costs beside the endpoint, the compiler and the judge: composing, sending, reading, writing down.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "agent/generate/improve.h"
#include "agent/llm/llm_author.h"
#include "tests/agent/stored_run.h"
#include "tests/chat_server.h"

namespace tilepilot::agent {
namespace {

using tilepilot::testing::ChatServer;
using tilepilot::testing::ServerAnswer;

// Of the length that programs have.
std::string long_program(int number) {
  std::string text = fmt::format("class ModelNew:\n    number = {}\n", number);
  for (int line = 0; line < 150; ++line)
    text += fmt::format("    line_{} = T.alloc_fragment((8, {}), dtype)\n", line, line);
  return text;
}

// Every second attempt fails, with a few messages of the compiler's.
class QuickJudge final : public eval::Judge {
 public:
  eval::Verdict check(const eval::CheckRequest&) override {
    eval::Verdict verdict;
    if (++count_ % 2 == 1) {
      verdict.outcome = eval::Outcome::compile_error;
      verdict.line = 40;
      for (int i = 0; i < 6; ++i) {
        verdict.diagnostics.push_back({DiagnosticKind::unknown_tile_name, {}, "`T.` has no `claer`"});
        verdict.rendered.push_back(
            "candidate.py:40:5: error: `T.` has no `claer`\n  40 |     T.claer(x)\n     |     ^~~~~~~\n");
      }
      return verdict;
    }
    verdict.outcome = eval::Outcome::verified;
    const double us = 100.0 / count_;
    verdict.candidate = eval::Timing{us, us, us, 3};
    verdict.eager = eval::Timing{100, 100, 100, 3};
    return verdict;
  }
  std::string target() const override { return "cpu"; }

 private:
  int count_ = 0;
};

class AgentOverhead : public RunTest {};

TEST_F(AgentOverhead, IsAFewMillisecondsARound) {
  constexpr int kRounds = 24;
  std::deque<ServerAnswer> answers;
  for (int i = 0; i < kRounds; ++i)
    answers.push_back(ChatServer::completion("An attempt.\n```python\n" + long_program(i) + "```\n"));
  ChatServer server(std::move(answers));
  ChatOptions options;
  options.endpoint.url = server.url();
  options.settings.model = "m";
  auto chat = live_chat(std::move(options), {curl_client(), [](double) {}, [](const std::string&) {}}, *store_, run_);
  ASSERT_TRUE(chat.ok());
  eval::Reference reference;
  reference.model_source = long_program(0);
  LlmAuthorOptions author{.system = system_prompt("cpu"), .task = task_prompt({reference, "cpu", "hybrid", {}})};
  author.most_without_progress = kRounds;
  auto writer = llm_author(*std::move(chat), std::move(author));
  QuickJudge judge;
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t processor = std::clock();
  const auto outcome = improve(*writer, judge, {*store_, run_}, {.attempts = kRounds, .variants = 0}, {});
  const double cpu_ms = 1e3 * static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC / kRounds;
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / kRounds;
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->attempts.size(), static_cast<size_t>(kRounds));
  std::printf("a round: %.1f ms, of which %.1f ms on processors\n", ms, cpu_ms);
#ifndef TILEPILOT_SANITIZED
  EXPECT_LE(cpu_ms, 50);
#endif
}

}  // namespace
}  // namespace tilepilot::agent
