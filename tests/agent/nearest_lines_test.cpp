// What a language model is told about text that it wrongly takes to be in a program.
#include "agent/llm/nearest_lines.h"

#include <gmock/gmock.h>

namespace tilepilot::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kRows =
    "def rows(M, N):\n"
    "    block_M = 8\n"
    "    with T.Kernel(M) as bx:\n"
    "        T.copy(X[bx, 0], x)\n"
    "        T.reduce_sum(x, s, dim=1)\n";

TEST(NearestLines, AreQuotedWithTheirNumbers) {
  const std::string told = nearest_lines(
      kRows, "    with T.Kernel(M) as bx:\n        T.copy(X[bx], x)\n        T.reduce_sum(x, s, dim=1)\n");
  EXPECT_THAT(told, AllOf(HasSubstr("lines 3 to 5:"), HasSubstr("\n   4 |         T.copy(X[bx, 0], x)\n"),
                          HasSubstr("- line 4: under SEARCH it is `        T.copy(X[bx], x)`"),
                          Not(HasSubstr("- line 3")), Not(HasSubstr("- line 5"))));
}

TEST(NearestLines, TellWhiteSpaceFromText) {
  EXPECT_THAT(nearest_lines(kRows, "  T.copy(X[bx, 0], x)\n"),
              HasSubstr("- line 4: its indentation is 8, under SEARCH 2"));
  EXPECT_THAT(nearest_lines(kRows, "        T.copy(X[bx,0], x)\n"), HasSubstr("- line 4: white space alone differs"));
}

TEST(NearestLines, AreNoneWhereNothingIsAlike) {
  EXPECT_EQ(nearest_lines(kRows, "import numpy\n"), "No lines are like it.\n");
  EXPECT_EQ(nearest_lines("", "import numpy\n"), "No lines are like it.\n");
  EXPECT_EQ(nearest_lines(kRows, "\n"), "No lines are like it.\n");
}

TEST(NearestLines, AreNeverMoreThanAFew) {
  std::string program, text;
  for (int i = 0; i < 200; ++i) {
    program += "alpha = beta + " + std::to_string(i) + "\n";
    text += "alpha = beta - " + std::to_string(i) + "\n";
  }
  const std::string told = nearest_lines(program, text);
  EXPECT_LT(told.size(), 1500u);
  EXPECT_THAT(told, HasSubstr("- 194 further lines differ"));
}

TEST(NearestLines, NameAllPlaces) {
  EXPECT_EQ(places_of("a\nb\na\nb\na\n", "a\n"), "lines 1, 3 and 5");
  EXPECT_EQ(places_of("a\nb\na\nb\na\n", "a\nb\n"), "lines 1 and 3");
}

}  // namespace
}  // namespace tilepilot::agent
