#include "cli/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "compiler/runtime/library.h"

namespace tilepilot::cli {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The variable's value, which nobody else gets: neither programs that this one starts nor who looks at its environment.
std::string take_secret(const char* name) {
  char* value = std::getenv(name);
  if (value == nullptr) return "";
  std::string text = value;
  std::memset(value, 0, text.size());
  unsetenv(name);
  return text;
}

// $TILEPILOT_STORE, or a file in $XDG_DATA_HOME or its default below the home folder; empty without any of them.
fs::path default_store() {
  const std::string store = variable("TILEPILOT_STORE"), data = variable("XDG_DATA_HOME"), home = variable("HOME");
  if (!store.empty()) return store;
  if (data.empty() && home.empty()) return {};
  return (data.empty() ? fs::path(home) / ".local/share" : fs::path(data)) / "tilepilot/tilepilot.db";
}

fs::path default_prices() {
  const std::string prices = variable("TILEPILOT_PRICES"), config = variable("XDG_CONFIG_HOME"),
                    home = variable("HOME");
  if (!prices.empty()) return prices;
  if (config.empty() && home.empty()) return {};
  return (config.empty() ? fs::path(home) / ".config" : fs::path(config)) / "tilepilot/prices.json";
}

// The commit that `scripts/setup` built; empty if it did not.
std::string built_commit(const fs::path& build) {
  std::string commit;
  std::getline(std::ifstream(build / ".built"), commit);
  return commit;
}

}  // namespace

Environment read_environment() {
  Environment environment;
  std::error_code error;
  environment.program = fs::read_symlink("/proc/self/exe", error);
  const fs::path build = environment.program.parent_path();
  environment.root = build.parent_path();
  environment.worker = build / "tilepilot-worker";
  environment.cache = runtime::default_cache_directory();
  environment.store = default_store();
  environment.commit = built_commit(build);
  std::getline(std::ifstream(build / "python"), environment.python);
  if (environment.python.empty()) environment.python = "python3";
  environment.export_server = variable("TILEPILOT_EXPORT_SERVER");
  environment.api_key = take_secret("TILEPILOT_API_KEY");
  environment.prices = default_prices();
  environment.color = isatty(2) != 0 && variable("NO_COLOR").empty();
  return environment;
}

}  // namespace tilepilot::cli
