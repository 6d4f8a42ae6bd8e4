// The form of what a candidate returns, by its own description: looked at before any of it is mapped, copied or made
// contiguous, as a view of one element may have more elements than any memory.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "eval/graph/reference.h"
#include "eval/judge.h"
#include "eval/worker/truth/compare/output_structure.h"

namespace tilepilot::eval {

// What a candidate may send at once: twice what the model returns, takes and holds, for elements of a wider type than
// the model's, and what recorded launches may be.
int64_t most_returned_bytes(const Graph& forward);

struct ExpectedForms {
  const StructureMatch& match;                // which tensor of the description is which output
  std::vector<std::vector<int64_t>> outputs;  // the model's shapes
};
// The verdict on tensors that did not come, for this error (unpack_tensors). They were too much: `wrong_shape`, if an
// output has one, else `out_of_memory`; they do not fit what came: `rejected` by the guard `protocol`.
Verdict not_received(const Diagnostic& error, const nlohmann::json& description, const ExpectedForms& expected);

}  // namespace tilepilot::eval
