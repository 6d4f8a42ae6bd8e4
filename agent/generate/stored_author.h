// The author that remembers: programs of the corpus that were verified for this very graph, with these shapes, on this
// target. A program that a language model found once costs nothing the next time.
#pragma once

#include "agent/generate/author.h"
#include "retrieval/corpus.h"

namespace tilepilot::agent {

// Gives at most two, those for the same model text first; of another text's only where the model has no parameters,
// whose names might differ. What was tried is not given again. `corpus` and `reference` outlive the author. Errors: the
// corpus cannot be read.
std::unique_ptr<Author> stored_author(retrieval::Corpus& corpus, const eval::Reference& reference, std::string target);

// The candidates of the first author, then those of the second. That the first failed is an error only if the second
// has nothing either.
std::unique_ptr<Author> author_after(std::unique_ptr<Author> first, std::unique_ptr<Author> second);

}  // namespace tilepilot::agent
