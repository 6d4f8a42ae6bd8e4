// Runs the exporter or the eager dump with the Python that has PyTorch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tilepilot::eval::testing {

struct PythonRun {
  int exit_code = 0;
  std::string output;  // standard output
};

// `script` lies under the source folder.
PythonRun run_python(const std::string& script, const std::vector<std::string>& arguments);

// The folder `name` of this test run's scratch space; empty at first.
std::filesystem::path scratch(const std::string& name);

// Exports a model of the source tree, once for all test programs of a build; the folder is not to be written to.
std::filesystem::path exported(const std::string& model, const std::string& dtype = "model");

}  // namespace tilepilot::eval::testing
