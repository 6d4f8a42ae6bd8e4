#include "compiler/runtime/cuda/disassemble.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "compiler/runtime/process.h"

namespace tilepilot::runtime::cuda {
namespace {

namespace fs = std::filesystem;

struct Tool {
  const char* name;
  std::vector<std::string> options;
};
const std::vector<Tool>& tools() {
  static const std::vector<Tool> all{{"nvdisasm", {"--print-code"}}, {"cuobjdump", {"--dump-sass"}}};
  return all;
}

// Of a toolkit, then of site-packages.
constexpr const char* kPlacesOfTools[] = {"bin", "nvidia/cu13/bin", "nvidia/cu12/bin", "nvidia/cuda_nvcc/bin"};

std::vector<std::string> candidates(const char* tool, const std::vector<fs::path>& folders) {
  std::vector<std::string> found;
  for (const fs::path& folder : folders)
    for (const char* place : kPlacesOfTools)
      if (const fs::path path = folder / place / tool; ::access(path.c_str(), X_OK) == 0)
        found.push_back(path.string());
  found.emplace_back(tool);
  return found;
}

// A file of its own, gone at the end.
class CubinFile {
 public:
  explicit CubinFile(const std::string& cubin) {
    std::string pattern = (fs::temp_directory_path() / "tilepilot-XXXXXX.cubin").string();
    const int file = ::mkstemps(pattern.data(), 6);
    if (file < 0) return;
    path_ = pattern;
    ::close(file);
    std::ofstream(path_, std::ios::binary) << cubin;
  }
  ~CubinFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  CubinFile(const CubinFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

Result<std::string> disassembled(const std::string& cubin, const std::vector<fs::path>& folders) {
  const CubinFile file(cubin);
  if (file.path().empty())
    return make_error(DiagnosticKind::output_unwritable, {}, "the folder for temporary files cannot be written");
  Error failed;
  for (const Tool& tool : tools()) {
    for (const std::string& program : candidates(tool.name, folders)) {
      std::vector<std::string> command{program};
      command.insert(command.end(), tool.options.begin(), tool.options.end());
      command.push_back(file.path().string());
      const auto done = run_process(command);
      if (!done.ok()) continue;  // not there
      if (done->exit_code == 0) return done->out;
      failed = make_error(DiagnosticKind::load_failed, {}, fmt::format("`{}` failed on the machine code", program));
      failed->note({}, done->err);
    }
  }
  if (failed) return failed;
  return make_error(DiagnosticKind::not_installed, {},
                    "machine code cannot be shown: neither `nvdisasm` nor `cuobjdump` was found",
                    "both come with the CUDA toolkit");
}

}  // namespace tilepilot::runtime::cuda
