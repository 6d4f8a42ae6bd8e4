// What a language model may ask before it answers: read-only, and free of attempts.
#pragma once

#include <filesystem>
#include <string>

#include "retrieval/corpus.h"

namespace tilepilot::agent {

struct QuestionSources {
  retrieval::Corpus& corpus;
  std::filesystem::path program;  // `tilepilot`, which compiles in a process of its own; empty: nothing is compiled
  std::filesystem::path work;     // a folder for its input
  std::string target;
};

// "language T.NAME", "seed NAME", "ir CALL", "source CALL", "explain CALL". `program` is the current one. What is no
// question, or cannot be answered, is told in words.
std::string answer_question(const QuestionSources& sources, const std::string& question, const std::string& program);

}  // namespace tilepilot::agent
