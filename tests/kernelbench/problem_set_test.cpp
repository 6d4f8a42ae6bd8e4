#include "kernelbench/problem_set.h"

#include <gmock/gmock.h>

#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class ProblemSets : public FolderTest {
 protected:
  // "level/id name" of each problem.
  std::vector<std::string> found(const std::string& root, const Selection& selection = {}) const {
    auto set = find_problems(folder_ / root, selection);
    if (!set) return {set.error().message};
    std::vector<std::string> labels;
    for (const Problem& problem : set->problems)
      labels.push_back(std::to_string(problem.level) + "/" + std::to_string(problem.id) + " " + problem.name);
    return labels;
  }
  std::string error(const std::string& root, const Selection& selection = {}) const {
    auto set = find_problems(folder_ / root, selection);
    if (set.ok()) return "no error";
    EXPECT_EQ(set.error().kind, DiagnosticKind::bad_usage);
    return set.error().message;
  }
};

TEST_F(ProblemSets, AreCheckoutsLevelsAndFolders) {
  write("kb/KernelBench/level1/10_b.py", "ten");
  write("kb/KernelBench/level1/2_a.py", "two");
  write("kb/KernelBench/level2/1_c.py", "one");
  write("kb/KernelBench/changelog/1_d.py", "no problem");
  write("kb/KernelBench/level1/._10_b.py", "of a Mac");
  write("kb/KernelBench/level1/.#2_a.py", "of Emacs");
  write("plain/relu.py", "r");
  write("plain/gelu.py", "g");
  write("plain/__init__.py", "");
  write("plain/notes.txt", "");
  EXPECT_THAT(found("kb"), ElementsAre("1/2 2_a", "1/10 10_b", "2/1 1_c"));
  EXPECT_THAT(found("kb/KernelBench"), ElementsAre("1/2 2_a", "1/10 10_b", "2/1 1_c"));
  EXPECT_THAT(found("kb/KernelBench/level1"), ElementsAre("1/2 2_a", "1/10 10_b"));
  EXPECT_THAT(found("plain"), ElementsAre("0/1 gelu", "0/2 relu"));
  EXPECT_EQ(find_problems(folder_ / "kb", {})->problems[1].source, "ten");
}

TEST_F(ProblemSets, AreJsonLists) {
  write("list.json", R"([{"code": "a"}, {"level": 3, "problem_id": 7, "name": "net", "code": "b"}, {"path": "c.py"}])");
  write("c.py", "c");
  EXPECT_THAT(found("list.json"), ElementsAre("0/1 problem_1", "0/3 problem_3", "3/7 net"));
  EXPECT_EQ(find_problems(folder_ / "list.json", {})->problems[1].source, "c");
  write("bad.json", R"({"code": "a"})");
  EXPECT_THAT(error("bad.json"), HasSubstr("is no JSON list of problems"));
  write("bad.json", R"([{"code": "a"}, 3])");
  EXPECT_THAT(error("bad.json"), HasSubstr("entry 2 of"));
  write("bad.json", R"([{"code": 1}])");
  EXPECT_THAT(error("bad.json"), HasSubstr("has a value of another type"));
  write("bad.json", R"([{"name": "x"}])");
  EXPECT_THAT(error("bad.json"), HasSubstr("has no `code`"));
}

TEST_F(ProblemSets, AreSelectedByLevelAndId) {
  for (int id = 1; id <= 4; ++id) {
    write("level1/" + std::to_string(id) + "_x.py", "x");
    write("level2/" + std::to_string(id) + "_y.py", "y");
  }
  EXPECT_THAT(found("", {{{2, 2}}, {}}), ElementsAre("2/1 1_y", "2/2 2_y", "2/3 3_y", "2/4 4_y"));
  EXPECT_THAT(found("", {{{1, 2}}, {{2, 3}}}), ElementsAre("1/2 2_x", "1/3 3_x", "2/2 2_y", "2/3 3_y"));
  EXPECT_EQ(error("", {{{3, 3}}, {}}), "there is no level 3");
  EXPECT_EQ(error("", {{}, {{3, 5}}}), "there is no problem 5");
}

TEST_F(ProblemSets, SayWhatIsWrong) {
  EXPECT_THAT(error("nowhere"), HasSubstr("there is nothing at"));
  write("empty/readme.md", "");
  EXPECT_THAT(error("empty"), HasSubstr("there are no problems in"));
  write("twice/1_a.py", "");
  write("twice/1_b.py", "");
  EXPECT_EQ(error("twice"), "#1 is there twice: `1_a` and `1_b`");
  write("mixed/1_a.py", "");
  write("mixed/b.py", "");
  EXPECT_THAT(error("mixed"), HasSubstr("has no number"));
}

TEST_F(ProblemSets, ChangeTheirDigestWithTheirTexts) {
  write("1_a.py", "a");
  const std::string digest = find_problems(folder_, {})->digest();
  EXPECT_EQ(find_problems(folder_, {})->digest(), digest);
  write("1_a.py", "b");
  EXPECT_NE(find_problems(folder_, {})->digest(), digest);
}

TEST(Ranges, AreNumbersAndSpans) {
  EXPECT_THAT(*parse_ranges("1-20,33"), ElementsAre(Pair(1, 20), Pair(33, 33)));
  for (const char* text : {"", "a", "1-", "-3", "3-1", "1,", "1,,2", "1 2", "1-2-3", "99999999999"})
    EXPECT_FALSE(parse_ranges(text).ok()) << text;
}

}  // namespace
}  // namespace tilepilot::kernelbench
