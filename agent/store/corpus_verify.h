// Proves the corpus again: after a change of compiler, driver or TilePilot, or where entries came from elsewhere. Whose
// program fails goes into quarantine and is not retrieved; whose program holds comes out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/check.h"
#include "retrieval/corpus.h"

namespace tilepilot::agent {

struct CorpusVerifyOptions {
  std::filesystem::path work;      // folder for programs and exported references
  ExporterOptions exporter;        // its interpreter and script; the rest is each entry's own
  eval::JudgeOptions judge;        // its worker, target and limits; the rest is each entry's own
  std::vector<std::string> names;  // of the entries that are proven; empty: all
  bool all = false;                // else those alone that were proven with another toolchain, or never
  std::string version;             // of this TilePilot
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  // Replaced by a fake in tests.
  std::function<Result<Certified>(SourceMap&, const CheckOptions&)> check = agent::check;
};

struct CorpusVerification {
  int held = 0, failed = 0;
  int unchanged = 0;  // proven with what is here already
  struct NotProven {
    std::string name;
    std::string why;
  };
  std::vector<NotProven> failures;  // in quarantine now
  std::vector<NotProven> skipped;   // that cannot be judged here: for another target, or their model is not known
};

// Each entry's proof is written down before the next one is judged. Errors: those of the corpus, and what judging needs
// is missing here.
Result<CorpusVerification> verify_corpus(SourceMap& sources, retrieval::Corpus& corpus,
                                         const CorpusVerifyOptions& options);

}  // namespace tilepilot::agent
