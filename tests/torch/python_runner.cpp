#include "tests/torch/python_runner.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>

namespace tilepilot::eval::testing {
namespace {

// The folder of this run, removed when the program ends.
class ScratchRoot {
 public:
  ScratchRoot() : path_(std::filesystem::temp_directory_path() / fmt::format("tilepilot-test-{}", getpid())) {}
  ~ScratchRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

PythonRun run_python(const std::string& script, const std::vector<std::string>& arguments) {
  std::string command = fmt::format("'{}' '{}/{}'", TILEPILOT_PYTHON, TILEPILOT_SOURCE_DIR, script);
  for (auto& argument : arguments) command += fmt::format(" '{}'", argument);
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  PythonRun run;
  std::array<char, 4096> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) run.output.append(buffer.data(), count);
  int status = pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

std::filesystem::path scratch(const std::string& name) {
  static const ScratchRoot root;
  auto path = root.path() / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

std::filesystem::path exported(const std::string& model, const std::vector<std::string>& options) {
  static std::map<std::string, std::filesystem::path> folders;
  std::string key = fmt::format("{} {}", model, fmt::join(options, " "));
  auto& folder = folders[key];
  if (!folder.empty()) return folder;
  folder = scratch(fmt::format("exported-{}", folders.size())) / "reference";
  std::vector<std::string> arguments = {std::string(TILEPILOT_SOURCE_DIR) + "/" + model, folder.string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  auto run = run_python("scripts/export_reference.py", arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return folder;
}

}  // namespace tilepilot::eval::testing
