// What a language model may ask before it answers: read-only, and free of attempts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "retrieval/corpus.h"

namespace tilepilot::agent {

struct QuestionSources {
  retrieval::Corpus& corpus;
  std::filesystem::path program;  // `tilepilot`, which compiles in a process of its own; empty: nothing is compiled
  std::filesystem::path work;     // a folder for its input
  std::string target;
};

// "source 3 CALL" is "source CALL" of attempt 3, counted from 1, "program 3" is "program" of it; of others the question
// as it is.
struct QuestionOfAttempt {
  std::string question;
  std::optional<size_t> attempt = {};
};
QuestionOfAttempt question_of_attempt(const std::string& question);

// "language T.NAME", "seed NAME", "ir CALL", "source CALL", "explain CALL", "asm CALL", "program". `program` is the one
// that the question is about. What is no question, or cannot be answered, is told in words.
std::string answer_question(const QuestionSources& sources, const std::string& question, const std::string& program);

}  // namespace tilepilot::agent
