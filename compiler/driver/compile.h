// The compiler alone: source text in, staged tile programs out. No tensors, so that host code which needs them is an
// error that says so. The command `compile` and the tests use it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::driver {

struct CompileRequest {
  std::string name;  // of the file, for diagnostics
  std::string text;
  // An expression to evaluate in the module, such as "matmul(1024, 1024, 1024)". Empty: the programs that the module
  // itself makes, and those of its factories whose parameters all have defaults.
  std::string call;
  std::string target = "cpu";  // or "cuda:sm_80", "cuda:sm_90a"
  // The file lies where `name` says, and is a script: it may import its neighbours (compiler/stage/python/script.h).
  bool is_script = false;
  std::vector<std::filesystem::path> cuda_folders = {};  // where CUDA's tools are looked for (runtime/cuda/nvrtc.h)
};

struct CompileResult {
  std::vector<ir::Program> programs;  // in the order of staging
  DiagnosticList diagnostics;         // warnings too; with an error, `programs` holds what came before it
};

CompileResult compile(SourceMap& sources, const CompileRequest& request);

}  // namespace tilepilot::driver
