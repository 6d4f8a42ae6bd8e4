// Programs as vectors, so that FAISS finds neighbours: hashed features of the operator structure and of the words about
// them (feature hashing: Weinberger et al., 2009). Equal inputs give equal vectors on every machine.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

inline constexpr int kStructureDimensions = 384;
inline constexpr int kTextDimensions = 128;
using StructureVector = std::array<float, kStructureDimensions>;
using TextVector = std::array<float, kTextDimensions>;

// Of what `embed`, `embed_text` and `target_needs` (retrieval/target_fit.h) give: what is stored of another version is
// made anew. Count it up with every change of them, also of the table of families.
inline constexpr int kEmbeddingVersion = 1;

// Of length 1, or all zeros if there are no operators.
StructureVector embed(const Structure& structure);
// The cosine of both, 0 to 1: 0 where they have nothing in common.
double similarity(const Structure& one, const Structure& other);
// Of length 1, or all zeros if there are no words.
TextVector embed_text(const std::string& text);

// To length 1, unless it is all zeros.
void normalise(StructureVector& vector);

// "aten::add_" -> "add": without namespace and in-place mark.
std::string plain_operator(const std::string& op);
// The family of a plain operator, by which different spellings of one computation meet: "addmm" -> "product".
std::string_view operator_family(std::string_view plain);
// Views move no data: no kernel computes them.
inline constexpr std::string_view kViewFamily = "view";

}  // namespace tilepilot::retrieval
