// Reads the catalogue of the red team.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "agent/red_team.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;

Error bad_file(const fs::path& path, std::string message) {
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}`: {}", path.string(), message),
                    "its head is comments `# key: value`, as in the other files of the folder");
}

std::vector<std::string> alternatives(const std::string& text) {
  std::vector<std::string> words;
  std::stringstream stream(text);
  for (std::string word; std::getline(stream, word, '|');) words.push_back(word);
  return words;
}

// False: no such key.
bool set_key(Attack& attack, const std::string& key, const std::string& value) {
  const std::pair<std::string_view, std::string*> texts[] = {
      {"row", &attack.row},     {"level", &attack.level},   {"model", &attack.model},
      {"twin", &attack.twin},   {"target", &attack.target}, {"escapes", &attack.escapes},
      {"dtype", &attack.dtype}, {"aten", &attack.aten},     {"escapes_on_gpu", &attack.escapes_on_gpu}};
  for (auto& [name, text] : texts) {
    if (name != key) continue;
    *text = value;
    return true;
  }
  if (key == "expect") attack.expected = alternatives(value);
  if (key == "timed") attack.timed = value == "yes";
  if (key == "time_limit") attack.time_limit_s = std::atof(value.c_str());
  if (key == "memory_gib") attack.memory_gib = std::atof(value.c_str());
  return key == "expect" || key == "timed" || key == "time_limit" || key == "memory_gib";
}

Result<Attack> read_attack(const fs::path& path) {
  Attack attack;
  attack.name = path.stem().string();
  if (!read_file(path, attack.source))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", path.string()));
  std::stringstream lines(attack.source);
  for (std::string line; std::getline(lines, line) && line.rfind("# ", 0) == 0;) {
    const size_t colon = line.find(": ");
    const std::string key = colon == std::string::npos ? "" : line.substr(2, colon - 2);
    if (key.empty() || key.find(' ') != std::string::npos) break;  // prose, and what follows it
    if (!set_key(attack, key, line.substr(colon + 2))) return bad_file(path, fmt::format("no key is `{}`", key));
  }
  if (attack.model.empty()) return bad_file(path, "it names no `model`");
  if (attack.level != "host" && attack.level != "tile" && attack.level != "foreign")
    return bad_file(path, "its `level` is none of `host`, `tile`, `foreign`");
  if (attack.honest()) return attack;
  if (attack.expected.empty()) return bad_file(path, "it does not say what to `expect`");
  if (attack.twin.empty()) return bad_file(path, "it names no honest `twin`");
  return attack;
}

}  // namespace

Result<std::vector<Attack>> read_catalogue(const fs::path& folder) {
  std::vector<Attack> attacks;
  std::error_code error;
  for (auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".py") attacks.push_back(TRY(read_attack(entry.path())));
  if (attacks.empty())
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("`{}` holds no attacks", folder.string()),
                      "they are files of the checkout: `tests/attacks`");
  auto order = [](const Attack& attack) {
    return std::tie(attack.model, attack.dtype, attack.aten, attack.time_limit_s, attack.memory_gib, attack.name);
  };
  std::sort(attacks.begin(), attacks.end(), [&](auto& a, auto& b) { return order(a) < order(b); });
  for (const Attack& attack : attacks) {
    if (attack.honest()) continue;
    auto twin = std::find_if(attacks.begin(), attacks.end(), [&](auto& other) { return other.name == attack.twin; });
    if (twin == attacks.end() || !twin->honest())
      return bad_file(folder / (attack.name + ".py"), fmt::format("its twin `{}` is no honest program", attack.twin));
  }
  return attacks;
}

}  // namespace tilepilot::agent
