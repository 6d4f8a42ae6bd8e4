#include "compiler/runtime/cuda/nvrtc_search.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "compiler/runtime/cuda/nvrtc.h"

namespace tilepilot::runtime::cuda {
namespace {

namespace fs = std::filesystem;

// Of a toolkit, then of site-packages.
constexpr const char* kLibraryFolders[] = {
    "",         "lib64",           "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
    "lib",      "nvidia/cu13/lib", "nvidia/cu12/lib",          "nvidia/cuda_nvrtc/lib",
    "torch/lib"};

// "libnvrtc.so.13" or, as PyTorch had it, "libnvrtc-b51b459d.so.12"; not "libnvrtc-builtins.so.13.0".
bool is_nvrtc(const std::string& name) {
  if (!name.starts_with("libnvrtc") || name.starts_with("libnvrtc-builtins")) return false;
  const size_t suffix = name.find(".so");
  return suffix != std::string::npos && name.find('.') == suffix;
}

// 13 for "libnvrtc.so.13", 0 for "libnvrtc.so".
int version_in(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t at = name.find(".so.");
  int version = 0;
  if (at != std::string::npos) std::from_chars(name.data() + at + 4, name.data() + name.size(), version);
  return version;
}

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (is_nvrtc(entry.path().filename().string())) found.push_back(entry.path());
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return version_in(a) != version_in(b) ? version_in(a) > version_in(b) : a < b;
  });
  return found;
}

// site-packages of every Python below `folder`/lib.
void add_packages(const fs::path& folder, std::vector<fs::path>& all) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* name : {"site-packages", "dist-packages"})
      if (fs::is_directory(entry.path() / name, ignored)) all.push_back(entry.path() / name);
  }
}

}  // namespace

std::vector<fs::path> find_nvrtc(const std::vector<fs::path>& folders) {
  std::vector<fs::path> found;
  for (const fs::path& folder : folders) {
    for (const char* place : kLibraryFolders) {
      const std::vector<fs::path> here = libraries_in(*place == 0 ? folder : folder / place);
      found.insert(found.end(), here.begin(), here.end());
    }
  }
  return found;
}

std::vector<fs::path> package_folders(const fs::path& folder) {
  std::vector<fs::path> all;
  add_packages(folder, all);
  return all;
}

std::vector<fs::path> default_cuda_folders() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  std::vector<fs::path> all;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"})
    if (const std::string folder = variable(name); !folder.empty()) all.emplace_back(folder);
  all.emplace_back("/usr/local/cuda");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string folder = variable(name); !folder.empty()) add_packages(folder, all);
  add_packages(".venv", all);
  if (const std::string home = variable("HOME"); !home.empty()) add_packages(home + "/.local", all);
  add_packages("/usr/local", all);
  add_packages("/usr", all);
  return all;
}

}  // namespace tilepilot::runtime::cuda
