// The includes of every first-party file keep to the table in rules.cpp.
#include <gmock/gmock.h>

#include "tests/layering/project_files.h"

namespace tilepilot::layering {
namespace {

TEST(Layering, HoldsInThisRepository) {
  std::vector<SourceFile> files = project_files();
  ASSERT_GT(files.size(), 50U);
  for (const std::string& violation : violations(project_rules(), files)) ADD_FAILURE() << violation;
}

TEST(Layering, TableHasNoCycle) { EXPECT_EQ(cycle_of_layers(project_rules()), ""); }

TEST(Layering, TableListsNoFolderThatIsNoRow) {
  for (const Layer& layer : project_rules().layers) {
    for (const std::string& target : layer.may_include) {
      bool listed = std::any_of(project_rules().layers.begin(), project_rules().layers.end(), [&](const Layer& other) {
        return other.folder == target || other.folder == target + "/...";
      });
      EXPECT_TRUE(listed) << layer.folder << " may include " << target;
    }
  }
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Rules& small_rules() {
  static const Rules rules{{{"low", {}}, {"high", {"low"}}, {"high/inner", {"high"}}, {"wide/...", {"low"}}},
                           {{"torch/", {"high/inner"}}}};
  return rules;
}

TEST(Checker, AllowsWhatTheTableAllows) {
  EXPECT_THAT(violations(small_rules(), {{"low/a.h", "#include <vector>\n"},
                                         {"high/b.h", "#include \"low/a.h\"\n#include \"high/c.h\"\n"},
                                         {"high/c.h", ""},
                                         {"high/inner/d.cpp", "#include <torch/all.h>\n#include \"high/b.h\"\n"},
                                         {"wide/e.h", "#include \"wide/sub/f.h\"\n"},
                                         {"wide/sub/f.h", "#include \"low/a.h\"\n"},
                                         {"tests/t.cpp", "#include \"high/b.h\"\n#include \"low/a.h\"\n"}}),
              IsEmpty());
}

TEST(Checker, FindsAnIncludeThatGoesUp) {
  EXPECT_THAT(violations(small_rules(), {{"low/a.cpp", "\n  #  include \"high/b.h\"\n"}, {"high/b.h", ""}}),
              ElementsAre("low/a.cpp:2: high/b.h may not be included in low"));
  EXPECT_THAT(violations(small_rules(), {{"high/inner/a.cpp", "#include \"low/b.h\"\n"}, {"low/b.h", ""}}),
              ElementsAre("high/inner/a.cpp:1: low/b.h may not be included in high/inner"));
}

TEST(Checker, TreatsSubfoldersOfAWideRowAsOneLayer) {
  EXPECT_THAT(violations(small_rules(), {{"wide/sub/a.h", "#include \"high/b.h\"\n"}, {"high/b.h", ""}}),
              ElementsAre("wide/sub/a.h:1: high/b.h may not be included in wide/sub"));
  EXPECT_THAT(violations(small_rules(), {{"high/a.h", "#include \"wide/sub/b.h\"\n"}, {"wide/sub/b.h", ""}}),
              ElementsAre("high/a.h:1: wide/sub/b.h may not be included in high"));
}

TEST(Checker, TakesTheNearestRow) {
  const Rules rules{{{"wide/...", {}}, {"wide/inner", {"wide"}}}, {}};
  EXPECT_THAT(violations(rules, {{"wide/inner/a.h", "#include \"wide/other/b.h\"\n"}, {"wide/other/b.h", ""}}),
              IsEmpty());
  EXPECT_THAT(violations(rules, {{"wide/inner/a.h", ""}, {"wide/other/b.h", "#include \"wide/inner/a.h\"\n"}}),
              ElementsAre("wide/other/b.h:1: wide/inner/a.h may not be included in wide/other"));
}

TEST(Checker, FindsThirdPartyHeadersInTheWrongPlace) {
  EXPECT_THAT(violations(small_rules(), {{"high/a.cpp", "#include <torch/all.h>\n"}}),
              ElementsAre("high/a.cpp:1: torch/all.h may not be included in high"));
}

TEST(Checker, FindsCyclesUnlistedFoldersAndMissingFiles) {
  EXPECT_THAT(violations(small_rules(), {{"low/a.h", "#include \"low/b.h\"\n"}, {"low/b.h", "#include \"a.h\"\n"}}),
              ElementsAre("cycle of includes: low/a.h -> low/b.h -> low/a.h"));
  EXPECT_THAT(violations(small_rules(), {{"new/a.h", ""}}),
              ElementsAre("new/a.h: its folder has no row in the table of layers"));
  EXPECT_THAT(violations(small_rules(), {{"low/a.h", "#include \"low/gone.h\"\n"}}),
              ElementsAre("low/a.h:1: low/gone.h is no file of the repository"));
  EXPECT_EQ(cycle_of_layers({{{"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}}, {}}), "a -> b -> c -> a");
}

}  // namespace
}  // namespace tilepilot::layering
