// The author that asks a language model: first with the task, then with what became of its attempts. Each request holds
// the task, the base of changes and what is known of all attempts, so that nothing is lost with old rounds.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "agent/generate/author.h"
#include "agent/llm/endpoint/chat.h"
#include "agent/llm/prompt.h"

namespace tilepilot::agent {

struct LlmAuthorOptions {
  std::vector<PromptPart> system, task;
  std::string start;                       // the program that changes refer to before there is an attempt; may be empty
  eval::LeastTime bound;                   // of all programs on this machine
  std::map<std::string, double> products;  // eval::product_times
  int64_t context_tokens = 0;              // of the model, answer included; 0: unknown
  int64_t answer_tokens = 16'000;
  int parallel = 1;               // answers that are asked for at once, unless a program is mended
  int most_without_progress = 6;  // attempts since the best
  int variants = 8;               // that the tuner may judge of a program
  double enough_of_bound = 0.9;
  // Answers a question about the language, stored programs or a program of this run.
  std::function<std::string(const std::string& question, const std::string& program)> answer =
      [](const std::string&, const std::string&) { return "Nothing is known of this here.\n"; };
  // What earlier runs know of a failed attempt.
  std::function<std::vector<retrieval::Fix>(const Attempt& failed)> recall = [](const Attempt&) {
    return std::vector<retrieval::Fix>();
  };
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// Answers that hold no program are asked for again a few times before the author gives up.
std::unique_ptr<Author> llm_author(std::unique_ptr<ChatClient> chat, LlmAuthorOptions options);

// The conversation of a first request: what `tilepilot prompt` prints. `left_out`: how many parts did not fit.
std::vector<ChatMessage> first_messages(const LlmAuthorOptions& options, int* left_out = nullptr);

}  // namespace tilepilot::agent
