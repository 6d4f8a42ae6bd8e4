#include "tests/layering/project_files.h"

#include <filesystem>

#include "tests/golden.h"

namespace tilepilot::layering {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRoots[] = {"compiler",    "retrieval", "eval", "agent", "cli",
                                       "kernelbench", "python",    "show", "tests"};

// `.in` files are C++ too: text that goes into generated kernels.
bool is_source(const fs::path& path) {
  std::string extension = path.extension().string();
  return extension == ".cpp" || extension == ".h" || extension == ".def" || extension == ".in" || extension == ".cu";
}

}  // namespace

std::vector<SourceFile> project_files() {
  std::vector<SourceFile> files;
  fs::path root = TILEPILOT_SOURCE_DIR;
  for (std::string_view folder : kRoots) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      files.push_back({fs::relative(entry.path(), root).generic_string(), testing::read_text(entry.path())});
    }
  }
  return files;
}

}  // namespace tilepilot::layering
