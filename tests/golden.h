// Golden files: what a test printed, compared with the text stored beside it. TILEPILOT_UPDATE_GOLDEN=1 stores anew.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::testing {

// `path` is relative to the folder tests/.
inline std::filesystem::path tests_path(std::string_view path) {
  return std::filesystem::path(TILEPILOT_SOURCE_DIR) / "tests" / path;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool updates_golden() {
  const char* wish = std::getenv("TILEPILOT_UPDATE_GOLDEN");
  return wish != nullptr && std::string_view(wish) == "1";
}

inline void expect_golden(std::string_view path, const std::string& actual) {
  std::filesystem::path golden = tests_path(path);
  if (updates_golden()) {
    std::filesystem::create_directories(golden.parent_path());
    std::ofstream(golden, std::ios::binary) << actual;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(golden)) << golden << " is missing; TILEPILOT_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(read_text(golden), actual) << "differs from " << golden << "; TILEPILOT_UPDATE_GOLDEN=1 stores it";
}

// Names (without folder and extension) of the files of a folder of tests/, sorted.
inline std::vector<std::string> stems_in(std::string_view folder, std::string_view extension) {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(tests_path(folder))) {
    if (entry.path().extension() == extension) stems.push_back(entry.path().stem().string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

}  // namespace tilepilot::testing
