// What a graph computes in the words of people, whichever operators spell it: `exp`, `sum` and `div` are a softmax as
// `softmax` is. Families of operators (retrieval/index/embedding.h) say less: nearly all graphs have arithmetic in
// them.
#pragma once

#include <set>
#include <string>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

// "softmax", "normalisation", "attention", "repeated steps" (a recurrence written out), ...; empty: none that has a
// name.
std::set<std::string> computations_of(const Structure& structure);

// What an entry is, in a line: "softmax (softmax), 4096x1024 float32, cpu". Computations, then operators without views,
// the shapes of the inputs where they are known, the target.
std::string title_of(const Entry& entry);

}  // namespace tilepilot::retrieval
