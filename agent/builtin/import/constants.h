// The tensors that `forward` itself makes (`torch.tensor(0.1)`), read back from the export's weights file so that the
// new program can name their values.
#pragma once

#include <map>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::agent::builtin {

// Values of the graph's small constant tensors, by value id. Those that are large or of unusual types are absent.
std::map<int, std::vector<double>> read_constants(const eval::Reference& reference);

}  // namespace tilepilot::agent::builtin
