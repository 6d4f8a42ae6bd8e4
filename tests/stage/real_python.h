// What the real Python prints, where it is installed.
#pragma once

#include <cstdlib>
#include <optional>

#include "tests/golden.h"

namespace tilepilot::stage {

// What `program`, a file of that folder, prints when it runs there; nullopt without a Python of 3.11 or newer.
inline std::optional<std::string> real_python_prints(const std::filesystem::path& folder, const std::string& program) {
  if (std::system("python3 -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null") != 0) return std::nullopt;
  std::filesystem::path printed = std::filesystem::path(TILEPILOT_BINARY_DIR) / ("stage_case_" + program + ".txt");
  std::string command =
      "cd '" + folder.string() + "' && python3 -B '" + program + "' > '" + printed.string() + "' 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << testing::read_text(printed);
  return testing::read_text(printed);
}

}  // namespace tilepilot::stage
