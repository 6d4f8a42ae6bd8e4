// The author that needs no language model: plans kernels from the op graph. Deterministic. First the whole plan, then
// variants that the verdicts ask for.
#pragma once

#include "agent/generate/author.h"

namespace tilepilot::agent {

struct BuiltinOptions {
  int candidates = 5;  // at most
  std::string target = "cpu";
};

std::unique_ptr<Author> builtin_author(eval::Reference reference, BuiltinOptions options = {});

}  // namespace tilepilot::agent
