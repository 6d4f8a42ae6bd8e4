// Lines, indentation, names.
#include <gtest/gtest.h>

#include <thread>

#include "compiler/syntax/lexer.h"
#include "tests/syntax/parsed.h"

namespace tilepilot::syntax {
namespace {

std::string kinds(std::string text) {
  SourceMap sources;
  int32_t file = sources.add("test.py", std::move(text));
  std::string result;
  TokenList list = lex(sources, file);
  for (const Token& token : list.tokens) result.append(result.empty() ? "" : " ").append(spelling(token.kind));
  return result;
}

TEST(Lines, EndAtNewlinesOutsideBrackets) {
  EXPECT_EQ(kinds("a\nb"), "name newline name newline end of file");
  EXPECT_EQ(kinds("(a,\n\n # c\n b)\n"), "( name , name ) newline end of file");
  EXPECT_EQ(kinds("a \\\n  b\n"), "name name newline end of file");
  EXPECT_EQ(kinds("\n\n# only a comment\n   \n"), "end of file");
  EXPECT_EQ(kinds(""), "end of file");
  EXPECT_EQ(kinds("a\r\nb\r\n"), "name newline name newline end of file");
  EXPECT_EQ(kinds("\xEF\xBB\xBF"
                  "a\n"),
            "name newline end of file");
}

TEST(Indentation, OpensAndClosesBlocks) {
  EXPECT_EQ(kinds("if a:\n  b\n  # c\n\n  d\ne\n"),
            "if name : newline indent name newline name newline dedent name newline end of file");
  EXPECT_EQ(kinds("if a:\n if b:\n  c"),
            "if name : newline indent if name : newline indent name newline dedent dedent "
            "end of file");
  EXPECT_EQ(kinds("if a:\n\tb\n\tc\n"), "if name : newline indent name newline name newline dedent end of file");
}

TEST(Indentation, MustBeConsistent) {
  EXPECT_EQ(Parsed("if a:\n    b\n  c\n").first_error(),
            "3:1 bad_indentation: indentation does not match any outer block");
  EXPECT_EQ(Parsed("if a:\n        b\n\tc\n").first_error(),
            "3:1 bad_indentation: indentation mixes tabs and spaces inconsistently");
  EXPECT_EQ(Parsed("a\n  b\n").first_error(), "2:1 bad_indentation: unexpected indentation");
  EXPECT_EQ(Parsed("if a:\nb\n").first_error(), "2:1 bad_indentation: expected an indented block after `if`");
}

TEST(Operators, MatchTheLongest) {
  EXPECT_EQ(kinds("a**=b//c>>=d->...:=.x!=y"),
            "name **= name // name >>= name -> ... := . name != name newline end of file");
}

TEST(Names, MayHoldLettersOfAllScripts) {
  for (std::string text : {"é", "变量", "имя_1", "x²", "_"})
    EXPECT_EQ(Parsed(text).error_count(), text == "x²" ? 1U : 0U) << text;
  EXPECT_EQ(Parsed("a = “b”").first_error(), "1:5 syntax_error: character `“` has no meaning here");
  EXPECT_EQ(Parsed("a = b\xC2\xA0+ c").first_error(), "1:6 syntax_error: character U+00A0 has no meaning here");
}

TEST(Names, AreInternedAcrossThreads) {
  std::vector<std::vector<Name>> seen(4);
  std::vector<std::thread> threads;
  for (auto& names : seen) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 2000; ++i) names.emplace_back("interned_" + std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& names : seen) EXPECT_EQ(names, seen[0]);
  EXPECT_EQ(seen[0][7].text(), "interned_7");
}

TEST(Text, MustBeUtf8) {
  EXPECT_EQ(Parsed("a = 1\nb = '\xff'\n").first_error(), "2:6 syntax_error: the file is not UTF-8 text");
}

TEST(Brackets, ThatStayOpenEndAtTheNextStatement) {
  Parsed parsed("x = f(1,\ndef g():\n    return 1\ny = )\nz = (1]\n");
  EXPECT_EQ(parsed.error_count(), 3U);
  EXPECT_EQ(parsed.first_error(), "1:6 syntax_error: `(` is never closed");
  EXPECT_EQ(parsed.diagnostics.items()[1].message, "`)` closes nothing");
  EXPECT_EQ(parsed.diagnostics.items()[2].message, "`]` does not match `(`");
}

}  // namespace
}  // namespace tilepilot::syntax
