#include "compiler/source/file.h"

#include <unistd.h>

#include <fstream>
#include <iterator>

namespace tilepilot {

bool read_file(const std::filesystem::path& path, std::string& text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) && !std::filesystem::is_fifo(path, error)) return false;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return false;
  text.assign(std::istreambuf_iterator<char>(stream), {});
  return !stream.bad();
}

bool write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path temporary = path;
  temporary += ".partial" + std::to_string(getpid());
  std::error_code error;
  {
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    stream.close();
    if (stream) std::filesystem::rename(temporary, path, error);
    if (stream && !error) return true;
  }
  std::filesystem::remove(temporary, error);
  return false;
}

}  // namespace tilepilot
