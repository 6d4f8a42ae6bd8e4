#include "tests/torch/python_runner.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/runtime/sha256.h"

namespace tilepilot::eval::testing {
namespace {

namespace fs = std::filesystem;

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

// Whoever has it is alone, among all test programs.
class Lock {
 public:
  explicit Lock(const fs::path& file) : descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    flock(descriptor_, LOCK_EX);
  }
  ~Lock() { close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

const std::string kSource = std::string(TILEPILOT_SOURCE_DIR) + "/";
const std::string kExporter = kSource + "scripts/export_reference.py";

fs::path exports_folder() { return fs::path(TILEPILOT_BINARY_DIR) / "exported"; }

struct Export {
  std::string model, dtype;

  // Another one when the exporter or the model changes.
  fs::path folder() const {
    runtime::Sha256 key;
    key.add_field(text_of(kExporter)).add_field(model).add_field(text_of(kSource + model)).add_field(dtype);
    for (auto part : {"inputs", "memory", "probe", "recorded", "scale", "weights"})
      key.add_field(text_of(kSource + "scripts/tilepilot_export/" + part + ".py"));
    return exports_folder() / key.hex().substr(0, 16);
  }
};

// What tests ask for: Python starts once for all of it, which takes longer than any of these models.
std::vector<Export> usual_exports() {
  std::vector<Export> all = {{"examples/matmul_bias_relu.py", "model"}, {"examples/softmax_rows.py", "model"}};
  for (auto& entry : fs::directory_iterator(kSource + "tests/torch/models"))
    if (entry.path().extension() == ".py")
      all.push_back({"tests/torch/models/" + entry.path().filename().string(), "model"});
  for (auto dtype : {"fp16", "bf16"})
    for (auto model : {"pooled_volume", "scale_rows"})
      all.push_back({fmt::format("tests/torch/models/{}.py", model), dtype});
  return all;
}

void export_missing(const Export& asked) {
  std::vector<Export> exports = usual_exports();
  exports.push_back(asked);
  std::map<fs::path, fs::path> fresh;  // by where it belongs
  std::vector<std::string> arguments = {kExporter};
  const fs::path out = scratch("exported");
  for (const Export& wanted : exports) {
    const fs::path folder = wanted.folder();
    if (fs::exists(folder) || !fresh.emplace(folder, out / folder.filename() / "reference").second) continue;
    arguments.insert(arguments.end(), {kSource + wanted.model, wanted.dtype, out / folder.filename()});
  }
  auto run = run_python("tests/torch/export_models.py", arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  for (auto& [folder, reference] : fresh) {
    if (!fs::exists(reference)) continue;
    // Beside its place first, so that it appears there whole.
    const fs::path beside = folder.string() + "-new";
    fs::remove_all(beside);
    fs::copy(reference, beside, fs::copy_options::recursive);
    fs::rename(beside, folder);
  }
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

std::filesystem::path exported(const std::string& model, const std::string& dtype) {
  const Export asked{model, dtype};
  const fs::path folder = asked.folder();
  if (fs::exists(folder)) return folder;
  fs::create_directories(exports_folder());
  const Lock lock(exports_folder() / ".lock");
  if (!fs::exists(folder)) export_missing(asked);
  return folder;
}

}  // namespace tilepilot::eval::testing
