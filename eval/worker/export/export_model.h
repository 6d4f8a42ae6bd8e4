// `tilepilot export` of a file with ModelNew: its kernels as they are launched for the model's inputs, and a function
// for the whole model where nothing but kernels runs.
#pragma once

#include <string>
#include <vector>

namespace tilepilot::eval {

struct ExportRequest {
  std::string file;
  std::string target, name, folder;  // of the library
  std::string reference;             // folder of an exported model; empty: the file says what it is called with
  bool json = false;                 // the answer as one JSON object
  std::vector<std::string> calls;    // expressions in the file: kernels to export as well
};

// Gives the exit code. The answer goes to standard output, diagnostics to standard error.
int export_model(const ExportRequest& request);

}  // namespace tilepilot::eval
