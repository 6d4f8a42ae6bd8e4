// Where `#line` directives become statements.
#include "compiler/emulator/report/source_lines.h"

#include <gmock/gmock.h>

namespace tilepilot::emulator {
namespace {

TEST(SourceLines, BecomeStatements) {
  const MarkedSource marked =
      mark_lines("#line 1 \"a.py\"\nvoid f() {\n#line 2\n  g();\n#line 7 \"b.py\"\n  h();\n}\n");
  EXPECT_EQ(marked.text, "void f() {\nemulated::at(2);\n  g();\nemulated::at(3);\n  h();\n}\n");
  EXPECT_EQ(marked.sites[2], (SourceLine{"a.py", 2}));
  EXPECT_EQ(marked.sites[3], (SourceLine{"b.py", 7}));
}

TEST(SourceLines, StandOnlyWhereStatementsMay) {
  EXPECT_EQ(mark_lines("void f() {\n  if (a)\n#line 2 \"a.py\"\n    g();\n  h(1,\n#line 3\n    2);\n}\n").text,
            "void f() {\n  if (a)\n    g();\n  h(1,\n    2);\n}\n");
  EXPECT_EQ(mark_lines("void f() {\n  if (a) {\n  }\n#line 2 \"a.py\"\n  else {\n  }\n}\n").text,
            "void f() {\n  if (a) {\n  }\n  else {\n  }\n}\n");
  EXPECT_EQ(mark_lines("void f() {  // {\n  g(\"{\", '(');  /* ;\n#line 2 \"a.py\"\n*/ h();\n}\n").text,
            "void f() {  // {\n  g(\"{\", '(');  /* ;\n*/ h();\n}\n");
}

TEST(SourceLines, CountTheLastOfSeveral) {
  EXPECT_EQ(mark_lines("void f() {\n#line 2 \"a.py\"\n#line 3 \"a.py\"\n  g();\n}\n").text,
            "void f() {\nemulated::at(2);\n  g();\n}\n");
}

}  // namespace
}  // namespace tilepilot::emulator
