// The grammar: what is refused, how parsing goes on, and that no input is too deep.
#include "compiler/syntax/parser.h"

#include <gtest/gtest.h>

#include "tests/rounds.h"
#include "tests/syntax/parsed.h"

namespace tilepilot::syntax {
namespace {

struct Refused {
  std::string_view text;
  std::string_view error;
};

class RefusedText : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedText, HasOneError) {
  Parsed parsed{std::string(GetParam().text)};
  EXPECT_EQ(parsed.module, nullptr);
  EXPECT_EQ(parsed.first_error(), GetParam().error);
  EXPECT_EQ(parsed.error_count(), 1U) << render(parsed.sources, parsed.diagnostics);
}

const Refused kRefused[] = {
    {"if x = 3:\n  y\nelse:\n  z\n", "1:6 syntax_error: expected `:` after `if`, found `=`"},
    {"while x\n  y\n", "1:8 syntax_error: expected `:` after `while`, found end of line"},
    {"f(a b)", "1:5 syntax_error: expected `,` or `)`, found `b`"},
    {"x = [1, 2", "1:5 syntax_error: `[` is never closed"},
    {"x = a &&  b", "1:8 syntax_error: expected an expression, found `&`"},
    {"x = !a", "1:5 syntax_error: character `!` has no meaning here"},
    {"print 'a'", "1:7 syntax_error: expected `(` after `print`, found a string"},
    {"else:\n  x\n", "1:1 syntax_error: `else` without `if`, `for`, `while` or `try` before it"},
    {"fro x in y:\n  z\n  w\n", "1:5 syntax_error: expected an operator or the end of the line, found `x`"},
    {"loop:\n  z\n", "1:1 syntax_error: `loop` does not start a block"},
    {"x = lambda *: 0", "1:12 syntax_error: named parameters must follow `*`"},
    {"def f(a=1, b): pass", "1:12 syntax_error: parameter `b` has no default value but follows one that has"},
    {"def f(a, a): pass", "1:10 syntax_error: parameter `a` is named twice"},
    {"def f(**k, a): pass", "1:12 syntax_error: no parameter may follow the one of `**`"},
    {"def f(*a, *b): pass", "1:11 syntax_error: `*` stands twice in one parameter list"},
    {"def f(a, /, b, /): pass", "1:16 syntax_error: `/` must stand once, behind positional parameters"},
    {"def f(*a=1): pass", "1:9 syntax_error: a `*` or `**` parameter cannot have a default value"},
    {"f(a=1, 2)", "1:8 syntax_error: a positional argument follows a keyword argument"},
    {"f(a=1, a=2)", "1:8 syntax_error: keyword argument `a` is given twice"},
    {"f(**a, *b)", "1:8 syntax_error: an argument of `*` follows one of `**`"},
    {"f(a.b=1)", "1:3 syntax_error: the left side of `=` in a call must be a parameter name"},
    {"f(x for x in y, 1)", "1:3 syntax_error: a generator beside other arguments needs its own parentheses"},
    {"1 = x", "1:1 syntax_error: cannot assign to a number"},
    {"f() = x", "1:1 syntax_error: cannot assign to the result of a call"},
    {"a + b = c", "1:1 syntax_error: cannot assign to an expression"},
    {"*a = b", "1:1 syntax_error: a starred expression cannot stand alone"},
    {"*a, *b = c", "1:5 syntax_error: more than one starred target in an assignment"},
    {"None = 1", "1:1 syntax_error: cannot assign to `None`"},
    {"(a, b) += 1", "1:1 syntax_error: cannot assign to a tuple"},
    {"(a, b): int", "1:1 syntax_error: cannot annotate a tuple"},
    {"del f()", "1:5 syntax_error: cannot delete the result of a call"},
    {"for f() in x: pass", "1:5 syntax_error: cannot assign to the result of a call"},
    {"x := 1", "1:3 syntax_error: expected an operator or the end of the line, found `:=`"},
    {"return 1", "1:1 syntax_error: `return` outside a function"},
    {"yield 1", "1:1 syntax_error: `yield` outside a function"},
    {"break", "1:1 syntax_error: `break` outside a loop"},
    {"for x in y:\n  def f():\n    continue\n", "3:5 syntax_error: `continue` outside a loop"},
    {"nonlocal x", "1:1 syntax_error: `nonlocal` outside a function"},
    {"try:\n  x\ny\n", "1:1 syntax_error: `try` without `except` or `finally`"},
    {"try:\n  x\nexcept:\n  y\nexcept A:\n  z\n", "3:1 syntax_error: an `except` without a type must be the last one"},
    {"try:\n  x\nexcept A, B:\n  y\n", "3:9 syntax_error: expected `:` after `except`, found `,`"},
    {"if x: if y: z", "1:7 syntax_error: `if` must start its own line"},
    {"@f\nx = 1", "2:1 syntax_error: expected `def` or `class` after a decorator, found `x`"},
    {"[*x for x in y]", "1:2 syntax_error: a starred expression cannot be the element of a comprehension"},
    {"def f(): [(yield x) for x in y]", "1:31 syntax_error: `yield` cannot stand inside a comprehension"},
    {"{1: 2, 3}", "1:9 syntax_error: expected `:` after a dictionary key, found `}`"},
    {"import a.", "1:10 syntax_error: expected a module name, found end of line"},
    {"from a import", "1:14 syntax_error: expected a name to import, found end of line"},
    {"x = 5 if y", "1:11 syntax_error: expected `else` in a conditional expression, found end of line"},
    {"class = 1", "1:7 syntax_error: expected a class name, found `=`"},
    {"a \\ b", "1:3 syntax_error: a backslash joins lines only as the last character of a line"},
    {"async def f():\n  await g()\n  return 1\n", "1:1 unsupported_syntax: `async` is not supported"},
    {"x = await f()", "1:5 unsupported_syntax: `await` is not supported"},
    {"[x async for x in y]", "1:4 unsupported_syntax: `async` is not supported"},
    {"match x:\n  case _:\n    pass\n  case 1:\n    pass\n",
     "2:8 syntax_error: this pattern matches everything, so no `case` behind it is ever reached"},
    {"match x:\n  case y | 1:\n    pass\n",
     "2:8 syntax_error: this pattern matches everything, so no alternative behind it is ever reached"},
    {"match x:\n  case [y] | 1:\n    pass\n", "2:14 syntax_error: alternative patterns bind different names"},
    {"match x:\n  case [y, y]:\n    pass\n", "2:8 syntax_error: `y` is bound twice in the pattern"},
    {"match x:\n  case [*a, *b]:\n    pass\n", "2:8 syntax_error: a sequence pattern has more than one starred name"},
    {"match x:\n  case {**r, 'a': 1}:\n    pass\n",
     "2:14 syntax_error: `**rest` must be the last entry of the pattern"},
    {"match x:\n  case C(a=1, 2):\n    pass\n",
     "2:15 syntax_error: a positional pattern cannot follow keyword patterns"},
    {"match x:\n  case f'{y}':\n    pass\n", "2:8 syntax_error: an f-string cannot be a pattern"},
    {"match x:\n  case 1 + y:\n    pass\n", "2:10 syntax_error: expected `:` after `case`, found `+`"},
    {"match x:\n  case *a:\n    pass\n", "2:8 syntax_error: a starred pattern cannot stand alone"},
    {"match x:\n  case y as _:\n    pass\n", "2:13 syntax_error: `_` cannot be bound here"},
    {"match x:\n  case 1:\n    pass\n  y = 1\n", "4:3 syntax_error: expected `case`, found `y`"},
    {"type A = int", "1:1 unsupported_syntax: `type` statements are not supported"},
    {"def f[T](x): pass", "1:6 unsupported_syntax: type parameters are not supported"},
    {"try:\n  x\nexcept* A:\n  y\n", "3:7 unsupported_syntax: `except*` is not supported"},
    {"def f():\n  return lambda: (yield)\n", "2:19 unsupported_syntax: `yield` in a `lambda` is not supported"},
};
INSTANTIATE_TEST_SUITE_P(All, RefusedText, ::testing::ValuesIn(kRefused));

TEST(Recovery, ReportsEveryStatementOnce) {
  Parsed parsed(
      "def f(a:\n    x = 1 +\n    y = (2\n    return x y\n\nclass C\n    z = 3 4\n\nif a:\n    b = ]\nelif c d:\n    "
      "e\nelse:\n    "
      "g(\n");
  EXPECT_GE(parsed.error_count(), 5U);
  for (size_t i = 1; i < parsed.error_count(); ++i) {
    Position before = parsed.sources.position(parsed.file, parsed.diagnostics.items()[i - 1].span.begin);
    Position after = parsed.sources.position(parsed.file, parsed.diagnostics.items()[i].span.begin);
    EXPECT_LT(before.line, after.line) << "two errors for one line, or out of order";
  }
}

TEST(Hints, NameTheLikelySlip) {
  auto hint = [](const std::string& text) { return Parsed(text).diagnostics.items().at(0).hint; };
  EXPECT_EQ(hint("improt a"), "did you mean `import` instead of `improt`?");
  EXPECT_EQ(hint("esle:\n  a\n"), "did you mean `else`?");
  EXPECT_EQ(hint("foo bar"), "");
  EXPECT_EQ(hint("if a:\n  b\nelse if c:\n  d\n"), "write `elif`");
  EXPECT_EQ(hint("a && b"), "write `and` for a logical and");
  EXPECT_EQ(hint("a = ‘b’"), "use the plain quotes `'` and `\"`");
}

TEST(Recovery, GoesOnInsideTheBlockOfABadHeader) {
  Parsed parsed("for x in :\n    y z\nw = 1\n");
  EXPECT_EQ(parsed.error_count(), 2U) << render(parsed.sources, parsed.diagnostics);
}

std::string repeated(std::string_view piece, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

TEST(Depth, IsBoundedEverywhere) {
  constexpr size_t kMegabyte = rounds(1 << 20);
  for (std::string_view piece : {"(", "[", "{", "not ", "-", "lambda: ", "2**", "a if b else ", "f(", "a[", "{1:", "*",
                                 "yield ", "(yield ", "[x for x in ", "lambda x=", "x:=", "(x:="}) {
    Parsed parsed("x = " + repeated(piece, kMegabyte) + "\n");
    EXPECT_EQ(parsed.module, nullptr) << piece;
    EXPECT_EQ(parsed.error_count(), 1U) << piece;
  }
  for (std::string_view piece : {".b", "+b", "()", "[0]", "*b"}) {
    Parsed parsed("x = a" + repeated(piece, kMegabyte) + "\n");
    EXPECT_EQ(parsed.module, nullptr) << piece;
    EXPECT_EQ(parsed.first_error(), "1:5 nesting_too_deep: the expression chains more than 400 operators") << piece;
  }
}

TEST(Depth, OfBlocksIsBounded) {
  std::string blocks;
  for (size_t i = 0; i < 2000; ++i) blocks += std::string(i, ' ') + "if x:\n";
  EXPECT_EQ(Parsed(blocks).diagnostics.items().at(0).kind, DiagnosticKind::nesting_too_deep);
  EXPECT_EQ(Parsed(blocks).error_count(), 1U);
  Parsed chain("if a: pass\n" + repeated("elif b: pass\n", 1 << 20));
  EXPECT_EQ(chain.diagnostics.items().at(0).kind, DiagnosticKind::nesting_too_deep);
  EXPECT_EQ(chain.error_count(), 1U);
}

TEST(Depth, AllowsWhatPeopleWrite) {
  EXPECT_EQ(Parsed("x = " + std::string(100, '(') + "1" + std::string(100, ')')).error_count(), 0U);
  EXPECT_EQ(Parsed("x = " + std::string(101, '(') + "1" + std::string(101, ')')).error_count(), 1U);
  std::string blocks;
  for (size_t i = 0; i < 100; ++i) blocks += std::string(i, ' ') + "if x:\n";
  EXPECT_EQ(Parsed(blocks + std::string(100, ' ') + "y\n").error_count(), 0U);
  EXPECT_EQ(Parsed("x = a" + repeated(" + b", 4 * 390)).error_count(), 0U);
  EXPECT_EQ(Parsed("x = [" + repeated("1, ", 1 << 16) + "]").error_count(), 0U);
  EXPECT_EQ(Parsed("x = a" + repeated(" and b", 1 << 16)).error_count(), 0U);
  EXPECT_EQ(Parsed("if a: pass\n" + repeated("elif b: pass\n", 13 * 90)).error_count(), 0U);
}

TEST(Spans, CoverWhatWasWritten) {
  Parsed parsed("x = (a + b) * c\nif d:\n    e = f.g\n");
  const auto& assign = std::get<AssignStmt>(parsed.module->body[0].node);
  EXPECT_EQ(parsed.sources.text(assign.value->span), "(a + b) * c");
  EXPECT_EQ(parsed.sources.text(std::get<BinaryExpr>(assign.value->node).left->span), "a + b");
  EXPECT_EQ(parsed.sources.text(parsed.module->body[1].span), "if d:\n    e = f.g");
}

TEST(Functions, KnowIfTheyAreGenerators) {
  Parsed parsed("def f():\n  def g(): yield 1\n  return g\n");
  const auto& outer = std::get<FunctionDef>(parsed.module->body[0].node);
  EXPECT_FALSE(outer.is_generator);
  EXPECT_TRUE(std::get<FunctionDef>(outer.body[0].node).is_generator);
}

}  // namespace
}  // namespace tilepilot::syntax
