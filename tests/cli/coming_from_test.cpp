// The scripts of docs/coming-from.md, run as they stand there.
#include <sstream>

#include "compiler/source/file.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

// Blocks of code of a page: lines that four spaces begin, and empty ones between them.
std::vector<std::string> code_blocks(const std::string& page) {
  std::vector<std::string> blocks = {""};
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    "))
      blocks.back() += line.substr(4) + "\n";
    else if (line.empty() && !blocks.back().empty())
      blocks.back() += "\n";
    else if (!blocks.back().empty())
      blocks.emplace_back();
  }
  return blocks;
}

TEST_F(CommandLine, TheScriptsForNewcomersAreRight) {
  std::string page;
  ASSERT_TRUE(read_file(TILEPILOT_SOURCE_DIR "/docs/coming-from.md", page));
  int count = 0;
  for (const std::string& block : code_blocks(page)) {
    if (!block.starts_with("import tilelang\n")) continue;
    const auto file = folder_ / ("script" + std::to_string(count++) + ".py");
    ASSERT_TRUE(write_file(file, block));
    for (const char* target : {"cpu", "emulate:sm_90a"}) {
      const auto ran =
          tilepilot({"run", "--target", target, file.string()}, {"TILEPILOT_CACHE=" TILEPILOT_KERNEL_CACHE});
      EXPECT_EQ(ran.exit_code, 0) << target << all(ran);
      EXPECT_EQ(ran.out, "right\n") << target;
    }
  }
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace tilepilot
