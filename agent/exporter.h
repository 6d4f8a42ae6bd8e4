// Turns the user's model file into a reference on disk, through `scripts/export_reference.py` and the user's
// own Python.
#pragma once

#include <filesystem>
#include <string>

#include "eval/graph/reference.h"

namespace tilepilot::agent {

// Names a server of exports to processes that export (agent/export_server.h).
inline constexpr const char* kExportServerVariable = "TILEPILOT_EXPORT_SERVER";

struct ExporterOptions {
  std::string python = "python3";  // an interpreter with PyTorch
  std::filesystem::path script;    // scripts/export_reference.py
  std::string server = {};         // of exports, that may be there; empty: there is none
  double time_limit_s = 300;
  int64_t seed = 42;            // before Model(*get_init_inputs())
  std::string dtype = "model";  // or fp32, fp16, bf16: as model.to(dtype), its inputs too
  std::string scale;            // "1/4": with smaller sizes (docs/reference-format.md); empty: as the file has them
  bool graph_only = false;      // neither weights nor inputs are made: of models too large for this machine
};

// Writes `folder` (created; replaced as a whole) and reads it back. A fault of the model is `model_invalid`, with the
// line of the user's file in `sources`; weights that cannot fit are `out_of_memory`.
Result<eval::Reference> export_reference(SourceMap& sources, const std::filesystem::path& model,
                                         const std::filesystem::path& folder, const ExporterOptions& options);

}  // namespace tilepilot::agent
