#include "agent/llm/endpoint/key_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

Error unusable_key(const std::filesystem::path& file, const std::string& why, std::string hint) {
  return make_error(DiagnosticKind::bad_usage, {},
                    fmt::format("the key in `{}` cannot be used: {}", file.string(), why), std::move(hint));
}

}  // namespace

Result<std::string> key_in(const std::filesystem::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0)
    return unusable_key(file, std::strerror(errno), "give `--llm-key-file` a file that holds the key and nothing else");
  if (S_ISREG(status.st_mode) && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return unusable_key(file, fmt::format("its mode is {:04o}, so that others may read it", status.st_mode & 07777),
                        fmt::format("`chmod 600 {}`", file.string()));
  std::string key, why;
  if (!read_file(file, key, &why)) return unusable_key(file, why, "give a file that can be read");
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r' || key.back() == ' ')) key.pop_back();
  if (key.empty()) return unusable_key(file, "it is empty", "write the key into it, on one line");
  if (std::any_of(key.begin(), key.end(), [](unsigned char letter) { return letter < ' ' || letter == 0x7f; }))
    return unusable_key(file, "it holds a line break or another control character", "give the key alone, on one line");
  return key;
}

}  // namespace tilepilot::agent
