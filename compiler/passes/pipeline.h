// The passes between the staged program and code generation, as one ordered table (pipeline.cpp).
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

struct Pass {
  std::string_view name;
  std::string_view summary;
  Result<ir::Program> (*run)(const ir::Program&);
};

const std::vector<Pass>& pipeline();

// The program after the passes that say what the language leaves open: grid barriers, which fragments are
// thread-private, and barriers. In this form the IR means what stmt.h says, and the reference interpreter runs
// it.
Result<ir::Program> explicit_threads(const ir::Program& program);

struct PipelineOptions {
  bool verify_after_each = false;  // tests and --emit; a violation is our bug, reported as ir_invalid
  // Called after each pass that changed the program (and for the input, with the name "stage").
  std::function<void(std::string_view pass, const ir::Program&)> observer;
};

Result<ir::Program> run_pipeline(const ir::Program& program, const PipelineOptions& options = {});

}  // namespace tilepilot::passes
