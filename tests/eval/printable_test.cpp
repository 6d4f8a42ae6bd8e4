#include "compiler/untrusted/printable.h"

#include <gtest/gtest.h>

namespace tilepilot {
namespace {

TEST(Printable, LeavesTextAlone) {
  EXPECT_EQ(printable("a `b`\n\tc \u00e9 \u00a9 \U0001f600"), "a `b`\n\tc \u00e9 \u00a9 \U0001f600");
}

TEST(Printable, EscapesWhatSteersTerminals) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("over\rwritten\x7f\b"), "over\\x0dwritten\\x7f\\x08");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\u009b2J");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
}

TEST(Printable, ShortensAndSaysSo) {
  EXPECT_EQ(printable("abcdef", 4), "abcd... (2 more bytes)");
  EXPECT_EQ(printable("abc\u00e9", 4), "abc... (2 more bytes)");
}

}  // namespace
}  // namespace tilepilot
