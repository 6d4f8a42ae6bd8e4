#include "agent/llm/llm_author.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "agent/generate/finalists.h"
#include "agent/llm/answer.h"
#include "agent/llm/feedback.h"
#include "agent/llm/questions.h"
#include "agent/llm/quotation.h"

namespace tilepilot::agent {
namespace {

using Role = ChatMessage::Role;
using End = ChatReply::End;

constexpr int kMostFailures = 3;        // answers without a program, for one attempt
constexpr int kMostQuestionRounds = 4;  // for one attempt
constexpr int kMostShortenings = 8;

// Leaves parts out until all messages together have at most so many bytes. How many were left out; -1: it cannot be
// done.
int shorten(const std::vector<std::vector<PromptPart>*>& messages, size_t most, size_t beside = 0) {
  auto bytes = [&] {
    size_t sum = beside;
    for (auto* parts : messages) sum += bytes_of(*parts);
    return sum;
  };
  int count = 0;
  for (; bytes() > most; ++count)
    if (!leave_one_out(messages)) return -1;
  return count;
}

size_t most_bytes(const LlmAuthorOptions& options) {
  if (options.context_tokens <= 0) return std::string::npos;
  // An answer needs room; a context that has none for the longest answer has it for a shorter one.
  const int64_t room = std::max(options.context_tokens - options.answer_tokens, options.context_tokens / 2);
  constexpr double kBytesAToken = 3;
  return static_cast<size_t>(static_cast<double>(room) * kBytesAToken);
}

class LlmAuthor final : public Author {
 public:
  LlmAuthor(std::unique_ptr<ChatClient> chat, LlmAuthorOptions options)
      : chat_(std::move(chat)), options_(std::move(options)), most_bytes_(most_bytes(options_)) {}

  void allow(double seconds) override { chat_->allow(seconds); }
  Spending spending() const override { return chat_->spending(); }
  Rest rest() const override { return rest_; }
  bool needs_ranking() const override { return true; }

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    chat_->begin_attempt(static_cast<int>(history.size()));
    said_.clear();
    if (!first_) first_ = history.size();
    // A recorded conversation ends where it ended then.
    const auto goes_on = chat_->goes_on();
    if (goes_on ? !*goes_on && waiting_.empty() : enough(history)) return std::optional<Candidate>();
    if (auto candidate = next_waiting(history)) return candidate;
    const NextStep step = next_step(history, *first_);
    const std::string current = step.base ? history[*step.base].candidate.source : options_.start;
    for (int failures = 0, rounds = 0, shortenings = 0; failures < kMostFailures;) {
      ChatReply reply = TRY(ask(TRY(compose(history, step, current)), history, step, current));
      if (reply.end == End::unaffordable) return stop(rest_of(chat_->spending()));
      if (reply.end == End::too_long) {
        if (++shortenings > kMostShortenings || !shorten_for(reply)) return too_long();
        continue;
      }
      const LlmAnswer answer = read_answer(reply.text);
      if (!answer.program.empty() || !answer.patch.empty()) {
        Proposal proposal = proposal_in(answer, reply, step, current, history);
        if (proposal.problem.empty())
          return std::optional(Candidate{std::move(proposal.program), answer.summary, proposal.base, reply.exchange});
        say(reply.text, proposal.problem + " Answer again.");
        ++failures;
        continue;
      }
      const bool verified = has_right_one(history);
      if (answer.done && (verified || failures > 0)) return stop(Rest::nothing_left);
      if (!answer.questions.empty() && rounds++ < kMostQuestionRounds) {
        say(reply.text, answers_to(answer.questions, history, current));
        continue;
      }
      ++failures;
      if (reply.end == End::cut_off && chat_->allow_longer_answers()) continue;
      say(reply.text, reminder(reply, answer));
    }
    return make_error(DiagnosticKind::author_failed, {}, "the language model gave no program in three answers");
  }

 private:
  // One answer. Unless a program is mended, several at once: the first that holds a program, else the first; the other
  // programs wait.
  Result<ChatReply> ask(const std::vector<ChatMessage>& messages, const std::vector<Attempt>& history,
                        const NextStep& step, const std::string& current) {
    if (options_.parallel <= 1 || step.kind == NextStep::Kind::repair || !said_.empty()) return chat_->ask(messages);
    auto replies = TRY(chat_->ask_each(messages, options_.parallel));
    size_t chosen = replies.size();
    for (size_t i = 0; i < replies.size(); ++i) {
      const LlmAnswer answer = read_answer(replies[i].text);
      Proposal proposal = proposal_in(answer, replies[i], step, current, history);
      if (proposal.program.empty() || !proposal.problem.empty()) continue;
      if (chosen == replies.size())
        chosen = i;
      else
        waiting_.push_back({std::move(proposal.program), answer.summary, proposal.base, replies[i].exchange});
    }
    return std::move(replies[chosen == replies.size() ? 0 : chosen]);
  }

  // The attempt that a reply changes.
  static std::optional<size_t> changed_by(const ChatReply& reply, const NextStep& step,
                                          const std::vector<Attempt>& history) {
    if (!reply.changed) return step.base;
    const auto found = std::find_if(history.begin(), history.end(),
                                    [&](const Attempt& attempt) { return attempt.candidate.source == *reply.changed; });
    if (found == history.end()) return std::nullopt;
    return static_cast<size_t>(found - history.begin());
  }

  // A program that came with another one and has not been judged.
  std::optional<Candidate> next_waiting(const std::vector<Attempt>& history) {
    while (!waiting_.empty()) {
      Candidate candidate = std::move(waiting_.front());
      waiting_.pop_front();
      if (known(history, candidate.source).empty()) return candidate;
    }
    return std::nullopt;
  }

  struct Proposal {
    std::string program, problem;
    std::optional<size_t> base;  // the attempt that it changes
  };
  // Blocks that do not fit the base may be meant for the best so far, which was shown as well.
  static Proposal proposal_in(const LlmAnswer& answer, const ChatReply& reply, const NextStep& step,
                              const std::string& current, const std::vector<Attempt>& history) {
    Proposal proposal{answer.program, "", changed_by(reply, step, history)};
    if (answer.program.empty() && answer.patch.empty()) return proposal;
    if (answer.program.empty()) {
      Patched patched = apply_patch(reply.changed.value_or(current), answer.patch);
      if (const auto best = best_of(history); best && !patched.problem.empty()) {
        Patched other = apply_patch(history[*best].candidate.source, answer.patch);
        if (other.problem.empty()) {
          patched = std::move(other);
          proposal.base = best;
        }
      }
      proposal.program = std::move(patched.program);
      proposal.problem = std::move(patched.problem);
    }
    if (proposal.problem.empty()) proposal.problem = known(history, proposal.program);
    return proposal;
  }

  std::optional<Candidate> stop(Rest rest) {
    rest_ = rest;
    return std::nullopt;
  }

  static Rest rest_of(const Spending& spending) {
    switch (spending.over) {
      case Spending::Over::dollars:
        return Rest::dollars;
      case Spending::Over::tokens:
        return Rest::tokens;
      case Spending::Over::nothing:
        return Rest::nothing_left;
    }
    return Rest::nothing_left;
  }

  static bool has_right_one(const std::vector<Attempt>& history) {
    const auto best = best_of(history);
    return best && is_right(history[*best].told());
  }

  // Whether what there is needs no more.
  bool enough(const std::vector<Attempt>& history) {
    if (!has_right_one(history)) return false;
    const auto best = best_of(history);
    // Three quarters of its calls: one session may be lucky.
    const auto& timing = history[*best].told().candidate;
    const eval::LeastTime& bound = options_.bound;
    const bool at_roofline = bound.s > 0 && timing && bound.s * 1e6 >= options_.enough_of_bound * timing->high_us;
    if (at_roofline) {
      rest_ = Rest::at_roofline;
      options_.progress(
          fmt::format("attempt {}, the best so far, takes {:.1f} us, and no program takes less than "
                      "{:.1f} us here, for {}",
                      *best + 1, timing->median_us, bound.s * 1e6, bound.words));
    }
    const bool no_progress = attempts_without_progress(history, *first_) >= options_.most_without_progress;
    if (!at_roofline && no_progress) rest_ = Rest::no_progress;
    return at_roofline || no_progress;
  }

  static std::string known(const std::vector<Attempt>& history, const std::string& program) {
    for (size_t i = 0; i < history.size(); ++i)
      if (history[i].candidate.source == program)
        return fmt::format("This is the program of attempt {}, whose verdict holds.", i + 1);
    return "";
  }

  static std::string reminder(const ChatReply& reply, const LlmAnswer& answer) {
    if (reply.end == End::cut_off)
      return "Your answer was cut off. Return the program without explanations, or change the base with SEARCH and "
             "REPLACE blocks.";
    if (answer.done) return "No program is verified yet. Return one, or answer DONE again to give up.";
    if (!answer.questions.empty()) return "No further questions are answered for this attempt. Return a program.";
    if (reply.end == End::refused)
      return "The task is to write a faster program for the numerical model above, and nothing else. Return it in one "
             "```python block with `class ModelNew`.";
    return "I found no ```python block with `class ModelNew` in your answer, nor SEARCH and REPLACE blocks. Return a "
           "whole "
           "file or changes.";
  }

  std::string answers_to(const std::vector<std::string>& questions, const std::vector<Attempt>& history,
                         const std::string& base) const {
    std::string text;
    for (const std::string& question : questions)
      text += fmt::format("{}:\n{}\n", in_backticks("ask: " + question), answer_to(question, history, base));
    return text;
  }

  std::string answer_to(const std::string& question, const std::vector<Attempt>& history,
                        const std::string& base) const {
    const QuestionOfAttempt asked = question_of_attempt(question);
    if (!asked.attempt) return options_.answer(asked.question, base);
    if (*asked.attempt < 1 || *asked.attempt > history.size())
      return history.empty()
                 ? "There is no attempt yet.\n"
                 : fmt::format("There is no attempt {}: they are 1 to {}.\n", *asked.attempt, history.size());
    const std::string& program = history[*asked.attempt - 1].candidate.source;
    return asked.question == "program" ? fenced("python", program) : options_.answer(asked.question, program);
  }

  void say(const std::string& theirs, std::string ours) {
    said_.push_back({Role::assistant, theirs});  // of an empty one nothing is sent
    said_.push_back({Role::user, std::move(ours)});
  }

  Result<std::vector<ChatMessage>> compose(const std::vector<Attempt>& history, const NextStep& step,
                                           const std::string& current) {
    auto system = options_.system, task = options_.task;
    // The program to start from has done its part once another one is the base.
    if (has_right_one(history)) std::erase_if(task, [](const PromptPart& part) { return part.keep == Keep::start; });
    std::vector<PromptPart> program, feedback;
    if (!history.empty()) {
      if (step.base) program.push_back({fenced_program(current)});
      std::vector<retrieval::Fix> fixes;
      if (step.kind == NextStep::Kind::repair) fixes = options_.recall(history[*step.base]);
      feedback = feedback_prompt(history, step, {options_.bound, options_.variants, fixes, options_.products});
    }
    // Of what was said in this attempt, the oldest goes where nothing else can.
    size_t from = 0;
    const std::vector<std::vector<PromptPart>*> all = {&system, &task, &program, &feedback};
    for (; shorten(all, most_bytes_, bytes_of(std::span(said_).subspan(from))) < 0; from += 2)
      if (from + 2 >= said_.size()) return make_error(DiagnosticKind::author_failed, {}, kTooLong, kTooLongHint);
    std::vector<ChatMessage> messages = {{Role::system, join(system)}, {Role::user, join(task)}};
    if (!program.empty()) messages.push_back({Role::assistant, join(program)});
    if (!feedback.empty()) messages.push_back({Role::user, join(feedback)});
    messages.insert(messages.end(), said_.begin() + static_cast<std::ptrdiff_t>(from), said_.end());
    sent_bytes_ = bytes_of(messages);
    return messages;
  }

  // The conversation is longer than the model's context. False: there is nothing to leave out.
  bool shorten_for(const ChatReply& reply) {
    options_.context_tokens = reply.context_tokens;
    most_bytes_ = std::min({most_bytes(options_), most_bytes_, sent_bytes_ - sent_bytes_ / 5});
    options_.progress(
        fmt::format("the conversation is too long for the model{}; what matters least is left out",
                    reply.context_tokens > 0 ? fmt::format(", whose context is {} tokens", reply.context_tokens) : ""));
    return most_bytes_ > 0;
  }

  static Error too_long() { return make_error(DiagnosticKind::author_failed, {}, kTooLong, kTooLongHint); }

  static constexpr const char* kTooLong = "the task does not fit the language model's context";
  static constexpr const char* kTooLongHint = "use a model with a longer context, or `--author builtin`";

  std::unique_ptr<ChatClient> chat_;
  LlmAuthorOptions options_;
  size_t most_bytes_;
  size_t sent_bytes_ = 0;          // of the last request's messages
  std::vector<ChatMessage> said_;  // in this attempt, beside the program: answers without one, and ours to them
  std::deque<Candidate> waiting_;  // programs that came with others and are not judged yet
  std::optional<size_t> first_;    // attempt that this author wrote
  Rest rest_ = Rest::nothing_left;
};

}  // namespace

std::unique_ptr<Author> llm_author(std::unique_ptr<ChatClient> chat, LlmAuthorOptions options) {
  return std::make_unique<LlmAuthor>(std::move(chat), std::move(options));
}

std::vector<ChatMessage> first_messages(const LlmAuthorOptions& options, int* left_out) {
  auto system = options.system, task = options.task;
  const int count = shorten({&system, &task}, most_bytes(options));
  if (left_out != nullptr) *left_out = count;
  return {{Role::system, join(system)}, {Role::user, join(task)}};
}

}  // namespace tilepilot::agent
