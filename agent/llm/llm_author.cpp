#include "agent/llm/llm_author.h"

namespace tilepilot::agent {
namespace {

using Role = ChatMessage::Role;

// Rounds of conversation that stay in a request, beside the system message and the task: older ones cost tokens and
// teach little.
constexpr size_t kRoundsKept = 4;
constexpr int kEmptyAnswers = 3;

class LlmAuthor final : public Author {
 public:
  LlmAuthor(std::unique_ptr<ChatClient> chat, std::string first_message) : chat_(std::move(chat)) {
    messages_ = {{Role::system, system_prompt()}, {Role::user, std::move(first_message)}};
  }

  void allow(double seconds) override { chat_->allow(seconds); }
  double dollars_spent() const override { return chat_->dollars_spent(); }

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    if (!history.empty()) {
      messages_.push_back({Role::user, feedback_prompt(history.back(), history)});
      forget_old_rounds();
    }
    for (int empty = 0; empty < kEmptyAnswers; ++empty) {
      ChatReply reply = TRY(chat_->ask(messages_));
      if (!reply.text.empty()) messages_.push_back({Role::assistant, reply.text});
      std::string program = program_in(reply.text);
      if (!program.empty()) return std::optional<Candidate>({std::move(program), summary_of(reply.text)});
      if (says_done(reply.text)) return std::optional<Candidate>();
      messages_.push_back(
          {Role::user,
           reply.cut_off
               ? "Your answer was cut off. Return the whole file in one ```python block, without explanations."
               : "I found no ```python block with `class ModelNew` in your answer. Return the whole file in one."});
    }
    return make_error(DiagnosticKind::author_failed, {}, "the language model gave no program in three answers");
  }

 private:
  void forget_old_rounds() {
    constexpr size_t kHead = 2;  // system and task
    while (messages_.size() > kHead + 2 * kRoundsKept)
      messages_.erase(messages_.begin() + kHead, messages_.begin() + kHead + 2);
  }

  // The first sentence outside the program, for progress lines and reports.
  static std::string summary_of(const std::string& answer) {
    std::string line = answer.substr(0, answer.find('\n'));
    if (line.starts_with("```") || line.empty()) return "language model";
    return line.substr(0, 100);
  }

  std::unique_ptr<ChatClient> chat_;
  std::vector<ChatMessage> messages_;
};

}  // namespace

std::unique_ptr<Author> llm_author(std::unique_ptr<ChatClient> chat, std::string first_message) {
  return std::make_unique<LlmAuthor>(std::move(chat), std::move(first_message));
}

}  // namespace tilepilot::agent
