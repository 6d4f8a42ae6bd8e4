// What a language model or a planner has to know how to write for a graph: the kinds of work in it, and which of them
// follow one another and so may share a kernel. A set of programs that covers the patterns of a graph is worth more
// than the programs that are nearest to it, which may all show the same one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

// The families of operators (retrieval/index/embedding.h) and pairs of them, as "product" and "product > activation",
// each once. Views are none, and what a view hands on follows the view's input.
std::set<std::string> patterns_of(const Structure& structure);

// The share of `wanted` that is in `found`, 0 to 1; 1 if nothing is wanted.
double cover(const std::set<std::string>& wanted, const std::set<std::string>& found);

struct Chosen {
  std::vector<Hit> hits;               // in the order they were chosen
  std::vector<std::string> uncovered;  // patterns that no entry of the corpus has that fits the query
  double cover = 0;                    // of the graph's patterns by all of them
};

// Up to `query.count` entries for a graph, one after another: each time the one with the largest product of what it
// adds to the cover, its similarity and its speed. Patterns and computations (retrieval/computations.h) are covered; a
// computation counts four times as much as a pattern, arithmetic a fifth. A measured speed-up counts between 0.75 and
// 1.25, an unmeasured one as 1; seeds count a quarter more; the target's fit (retrieval/target_fit.h) is a factor. When
// nothing adds to the cover, the best of the rest follow by their whole cover. Looks at the nearest entries, and for
// each pattern that these lack at the nearest to that alone.
Result<Chosen> choose_covering(Corpus& corpus, const Query& query);

}  // namespace tilepilot::retrieval
