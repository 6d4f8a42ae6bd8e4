// docs/language.md is what the tables say.
#include "compiler/stage/tile/library/language_reference.h"

#include <gmock/gmock.h>

#include "compiler/stage/tile/tile.h"
#include "tests/golden.h"

namespace tilepilot::stage {
namespace {

TEST(LanguageReference, IsWrittenFromTheTables) { testing::expect_golden("../docs/language.md", language_reference()); }

TEST(LanguageReference, HasEveryName) {
  const std::string text = language_reference();
  for (const TileName& row : tile_names())
    EXPECT_THAT(text, ::testing::HasSubstr("`T." + std::string(row.name))) << row.name;
}

}  // namespace
}  // namespace tilepilot::stage
