// The puzzles of examples/puzzles: their solutions are found right, and so is nothing else.
#include <regex>

#include "compiler/source/file.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kPuzzles = 10;

// A solution with a mistake that people make: `right` in it becomes `wrong`.
struct Mistake {
  std::string what;
  std::string file;
  std::string right;
  std::string wrong;
  std::string told;  // part of the verdict
  std::string target = "cpu";
};

const Mistake kMistakes[] = {
    {"the tail forgotten", "p02_add", "T.ceildiv(N, block)", "N // block",
     "104 of 1000 elements were not written: the first is C[896], all lie in C[896:1000]"},
    {"the axes of the grid exchanged", "p03_outer_sum", "as (bx, by)", "as (by, bx)", "elements were not written"},
    {"a sum in float16", "p04_row_sum", "(rows,), \"float32\"", "(rows,), \"float16\"", "are wrong"},
    {"the sums of earlier tiles lost", "p04_row_sum", ", clear=False", "",
     "20 of 20 elements are wrong: the first is B[0]"},
    {"softmax without the maximum", "p05_softmax", " - highest[i]", "", "right is"},
    {"the tail of softmax not masked", "p05_softmax", "j < N", "j < N + 64", "are wrong"},
    {"the sum of softmax not scaled", "p05_softmax", "total[i] * T.exp(before[i] - highest[i])", "total[i]",
     "with M = 20, N = 150"},
    {"a product in float16", "p06_matmul", "(block, block), \"float32\")", "(block, block), \"float16\")", "are wrong"},
    {"an accumulator that is not cleared", "p06_matmul", "            T.clear(c)\n", "", "fails", "emulate:sm_90a"},
    {"the tail along K forgotten", "p07_linear_relu", "T.ceildiv(K, block), num", "K // block, num", "are wrong"},
    {"relu forgotten", "p07_linear_relu", "T.max(y[i, j] + b[bx * block + j], 0)", "y[i, j] + b[bx * block + j]",
     "right is 0,"},
    {"copies of a step not waited for", "p08_pipeline", "T.ptx_wait_group(2)", "T.ptx_wait_group(4)",
     "copy not waited for", "emulate:sm_90a"},
    {"the last copies not waited for", "p08_pipeline", "T.ptx_wait_group(0)", "T.ptx_wait_group(2)",
     "copy not waited for", "emulate:sm_90a"},
    {"high and low bits exchanged", "p09_dequantise", "(j % 2) * 4", "(1 - j % 2) * 4", "are wrong"},
    {"the zero point forgotten", "p09_dequantise", "q - 8", "q", "of 2048 elements are wrong"},
    {"the output of attention not scaled", "p10_attention", "out[i, j] *= T.exp(before[i] - highest[i])",
     "out[i, j] *= 1.0", "all lie in O[0:2, 33:80, 0:32]"},
    {"a position that does not see itself", "p10_attention", "step * block + j <= bx", "step * block + j < bx",
     "are wrong: the first is O[0, 0, 0]"},
    {"attention without the maximum", "p10_attention", " - highest[i]", "", "are wrong"},
};

std::string puzzle_text(const std::filesystem::path& file) {
  std::string text, why;
  EXPECT_TRUE(read_file(file, text, &why)) << file << ": " << why;
  return text;
}

std::string with_mistake(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

class Puzzles : public CommandLine {
 protected:
  Puzzles() { std::filesystem::copy(source(), mine(), std::filesystem::copy_options::recursive); }

  static std::filesystem::path source() { return TILEPILOT_SOURCE_DIR "/examples/puzzles"; }
  // A copy, in which tests fill gaps.
  std::filesystem::path mine() const { return folder_ / "puzzles"; }
  std::filesystem::path solution(const std::string& name) const { return mine() / "solutions" / (name + ".py"); }

  runtime::ProcessResult judge(const std::string& target, std::vector<std::string> arguments) {
    std::vector<std::string> all = {"run", "--target", target, (mine() / "all.py").string()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return tilepilot(all, {"TILEPILOT_CACHE=" TILEPILOT_KERNEL_CACHE});
  }
};

TEST_F(Puzzles, AllSolutionsAreRight) {
  for (const char* target : {"cpu", "emulate:sm_80", "emulate:sm_90a"}) {
    const auto ran = judge(target, {"--solutions"});
    EXPECT_EQ(ran.exit_code, 0) << target << all(ran);
    EXPECT_THAT(ran.out, HasSubstr("10 of 10 solved")) << target;
    EXPECT_THAT(ran.out, Not(HasSubstr("not solved"))) << target;
  }
}

TEST_F(Puzzles, NoneIsSolvedAsItIsHandedOut) {
  for (const char* target : {"cpu", "emulate:sm_90a"}) {
    const auto ran = judge(target, {});
    EXPECT_EQ(ran.exit_code, 1) << target << all(ran);
    EXPECT_THAT(ran.out, HasSubstr("0 of 10 solved")) << target;
    const std::regex unsolved(
        R"(puzzle \d+ \([a-z0-9 ]+\): not solved, with .*\n  the kernel wrote no element of `\w`: fill)");
    const auto first = std::sregex_iterator(ran.out.begin(), ran.out.end(), unsolved);
    EXPECT_EQ(std::distance(first, {}), kPuzzles) << ran.out;
    EXPECT_EQ(ran.err, "") << target;
  }
}

TEST_F(Puzzles, APuzzleAloneTellsItsVerdict) {
  const std::string name = "p01_copy";
  const std::string handed_out = (mine() / (name + ".py")).string();
  const auto unsolved = tilepilot({"run", handed_out});
  EXPECT_EQ(unsolved.exit_code, 1);
  EXPECT_THAT(unsolved.out, HasSubstr("puzzle 1 (copy): not solved"));

  const std::string text = puzzle_text(handed_out);
  const size_t gap = text.find("pass  #");
  ASSERT_NE(gap, std::string::npos);
  const std::string before = text.substr(0, gap), after = text.substr(text.find('\n', gap));
  ASSERT_TRUE(write_file(handed_out, before + "T.copy(A[bx * block], B[bx * block : (bx + 1) * block])" + after));
  const auto solved = tilepilot({"run", handed_out});
  EXPECT_EQ(solved.exit_code, 0) << all(solved);
  EXPECT_EQ(solved.out, "puzzle 1 (copy): solved\n");

  ASSERT_TRUE(write_file(handed_out, before + "T.copi(A, B)" + after));
  const auto misspelt = tilepilot({"run", handed_out});
  EXPECT_EQ(misspelt.exit_code, 1);
  EXPECT_THAT(misspelt.out, HasSubstr("puzzle 1 (copy): not solved, the kernel fails"));
  EXPECT_THAT(misspelt.err, HasSubstr("p01_copy.py:"));
}

// Each solution is handed in as a learner hands it in: in the puzzle's own file.
TEST_F(Puzzles, FilledGapsAreSolved) {
  for (const auto& entry : std::filesystem::directory_iterator(mine() / "solutions"))
    if (entry.path().extension() == ".py")
      std::filesystem::copy_file(entry.path(), mine() / entry.path().filename(),
                                 std::filesystem::copy_options::overwrite_existing);
  const auto ran = judge("cpu", {});
  EXPECT_EQ(ran.exit_code, 0) << all(ran);
  EXPECT_THAT(ran.out, HasSubstr("10 of 10 solved"));
}

TEST_F(Puzzles, UsualMistakesAreFound) {
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.what);
    const std::string right = puzzle_text(solution(mistake.file));
    const std::string text = with_mistake(right, mistake.right, mistake.wrong);
    ASSERT_NE(text, right) << "the solution has no such text any more";
    ASSERT_TRUE(write_file(mine() / (mistake.file + ".py"), text));
    const std::string number = std::to_string(std::stoi(mistake.file.substr(1, 2)));
    const auto ran = judge(mistake.target, {number});
    EXPECT_EQ(ran.exit_code, 1) << all(ran);
    EXPECT_THAT(ran.out, HasSubstr("puzzle " + number + " ("));
    EXPECT_THAT(ran.out, HasSubstr("not solved"));
    EXPECT_THAT(ran.out, HasSubstr(mistake.told));
    EXPECT_EQ(ran.err, "");
  }
}

}  // namespace
}  // namespace tilepilot
