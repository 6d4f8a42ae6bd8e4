// Exact algebra on whole tensors: a sum of a linear map's results never needs the map. It holds for all weights and
// inputs; what is computed from weights is computed again at each call.
#pragma once

#include "agent/builtin/import/primitives.h"

namespace tilepilot::agent::builtin {

// A piece of a map becomes the map of pieces where nobody needs the whole.
// Sums over one axis of a matrix product (behind additions and scales that the sum passes through) become
// matrix-vector products. The result has no dead primitives.
PrimitiveGraph simplify(const PrimitiveGraph& graph);

}  // namespace tilepilot::agent::builtin
