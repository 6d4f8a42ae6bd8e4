// What the corpus keeps of a verified program besides its text: what it was written for, how fast it is, how near to
// the hardware's limit, what proves it, and where it comes from.
#pragma once

#include <string>
#include <vector>

#include "agent/certificate.h"
#include "eval/graph/preflight.h"
#include "eval/graph/reference.h"
#include "retrieval/corpus.h"

namespace tilepilot::agent {

struct EntryFacts {
  const eval::Reference& reference;
  const eval::Preflight& preflight;
  const Certified& certified;
  std::string name, summary;
  std::string author;
  std::string run;                 // uid
  int attempt = 0;                 // of the run
  std::vector<std::string> shown;  // uids of the entries that the author saw
};

retrieval::Entry corpus_entry(const EntryFacts& facts);

// The identifier behind "SPDX-License-Identifier:" in a model's text; empty if there is none.
std::string licence_in(const std::string& source);

// Of an environment (describe_environment): what a proof depends on, as a JSON object in text.
std::string toolchain_of(const nlohmann::json& environment);

// Of the tensors among a graph's inputs.
std::vector<retrieval::TensorShape> input_shapes(const eval::Graph& graph);

}  // namespace tilepilot::agent
