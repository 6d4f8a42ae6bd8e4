#include "cli/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "compiler/runtime/library.h"

namespace tilepilot::cli {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// $XDG_..., or its default below the home folder.
fs::path user_folder(const char* xdg, const char* below_home) {
  std::string folder = variable(xdg);
  return folder.empty() ? fs::path(variable("HOME")) / below_home : fs::path(folder);
}

}  // namespace

Environment read_environment() {
  Environment environment;
  std::error_code error;
  fs::path build = fs::read_symlink("/proc/self/exe", error).parent_path();
  environment.root = build.parent_path();
  environment.worker = build / "tilepilot-worker";
  environment.cache = runtime::default_cache_directory();
  std::string store = variable("TILEPILOT_STORE");
  environment.store =
      store.empty() ? user_folder("XDG_DATA_HOME", ".local/share") / "tilepilot/tilepilot.db" : fs::path(store);
  std::getline(std::ifstream(build / "python"), environment.python);
  if (environment.python.empty()) environment.python = "python3";
  environment.api_key = variable("TILEPILOT_API_KEY");
  environment.color = isatty(2) != 0 && variable("NO_COLOR").empty();
  return environment;
}

}  // namespace tilepilot::cli
