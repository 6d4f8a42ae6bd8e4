#include "tests/torch/python_runner.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "compiler/runtime/sha256.h"

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

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

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
  namespace fs = std::filesystem;
  const std::string source = std::string(TILEPILOT_SOURCE_DIR) + "/";
  runtime::Sha256 key;
  key.add_field(text_of(source + "scripts/export_reference.py")).add_field(model).add_field(text_of(source + model));
  for (auto& option : options) key.add_field(option);
  const fs::path folder = fs::path(TILEPILOT_BINARY_DIR) / "exported" / key.hex().substr(0, 16);
  if (fs::exists(folder)) return folder;
  const fs::path fresh = scratch("exported") / "reference";
  std::vector<std::string> arguments = {source + model, fresh.string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  auto run = run_python("scripts/export_reference.py", arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  if (run.exit_code != 0) return fresh;
  // Beside its place first, so that it appears there whole; another test may have been quicker.
  const fs::path beside = folder.string() + fmt::format("-{}", getpid());
  fs::create_directories(folder.parent_path());
  fs::copy(fresh, beside, fs::copy_options::recursive);
  std::error_code taken;
  fs::rename(beside, folder, taken);
  if (taken) fs::remove_all(beside);
  return folder;
}

}  // namespace tilepilot::eval::testing
