// The commands below `corpus` that change it or move it, in a file of their own.
#pragma once

#include <memory>

#include "cli/command.h"
#include "retrieval/corpus.h"

namespace tilepilot::cli {

// The corpus with the seeds in it; a store that can be read but not written is opened as it is.
Result<std::unique_ptr<retrieval::Corpus>> open_corpus_with_seeds(const Session& session);

// `corpus verify|export|import|index`
void add_corpus_upkeep(CLI::App& corpus, Session& session);

}  // namespace tilepilot::cli
