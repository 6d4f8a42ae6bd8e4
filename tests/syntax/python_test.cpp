// The real Python as the oracle: it must accept what we accept, and refuse what we call a syntax error.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/golden.h"
#include "tests/syntax/parsed.h"

namespace tilepilot::syntax {
namespace {

// Reads a list of texts from the file argv[1], writes for each whether compile() accepts it and, if so, the dump of
// its tree, so that two texts can be compared for meaning the same.
constexpr std::string_view kOracle = R"(
import ast, json, sys, warnings
warnings.simplefilter("ignore")
def judge(text):
    try:
        tree = ast.parse(text)
        compile(text, "text", "exec")
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign): node.simple = 1  # whether the target stood in parentheses
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
print(sys.version_info[0] * 100 + sys.version_info[1])
print(json.dumps([judge(t) for t in json.load(open(sys.argv[1]))]))
)";

constexpr std::string_view kSnippets[] = {
    "x = 1",
    "x = = 1",
    "f(a, b=c, *d, **e)",
    "f(**e, *d)",
    "f(a=1, b)",
    "f(a for a in b, c)",
    "f(a for a in b)",
    "f((a for a in b), c)",
    "f(a := 1)",
    "f(a = b := 1)",
    "x = (a := 1)",
    "x := 1",
    "[a := 1, b]",
    "{a := 1: 2}",
    "{(a := 1): 2}",
    "a[b := 1]",
    "a[1:2, ::3, *b]",
    "a[]",
    "a[()]",
    "lambda: (yield)",
    "def f(): yield",
    "yield 1",
    "return 1",
    "break",
    "continue",
    "while a: break",
    "for a in b:\n  def c(): break",
    "class A: return 1",
    "def f(a, a): pass",
    "def f(a=1, b): pass",
    "def f(*, a=1, b): pass",
    "def f(*): pass",
    "def f(*, **k): pass",
    "def f(a, /): pass",
    "def f(/, a): pass",
    "def f(a, /, b, /): pass",
    "def f(*a, /): pass",
    "def f(*a, *b): pass",
    "def f(**a, b): pass",
    "def f(*a, b, **c): pass",
    "def f(a, *, b): pass",
    "def f(*a: *b): pass",
    "def f(a: *b): pass",
    "lambda a, /, b=1, *, c: 1",
    "lambda *: 1",
    "a, *b = c",
    "*a = b",
    "*a, = b",
    "*a, *b = c",
    "a = *b",
    "a = *b,",
    "print(*a, sep=1)",
    "[*a, *b]",
    "{**a, 'b': 1}",
    "{*a, b}",
    "{**a, b}",
    "{a: 1, b}",
    "(*a)",
    "(*a,)",
    "*a",
    "del a, b[0], c.d",
    "del f()",
    "del (a, b)",
    "del [a]",
    "del *a",
    "(a) = 1",
    "(a, b) = 1",
    "[a, b] = 1",
    "a + b = 1",
    "f() = 1",
    "None = 1",
    "a.None = 1",
    "a.b = 1",
    "a += b += c",
    "(a) += 1",
    "(a, b) += 1",
    "a: int",
    "a: int = 1, 2",
    "(a): int = 1",
    "(a, b): int",
    "a = b: int",
    "[a]: int",
    "a = yield",
    "def f(): a = yield b, c",
    "def f(): return *a, b",
    "def f(): return a := 1",
    "for a, b in c: pass",
    "for a in b, *c: pass",
    "for a in *b: pass",
    "for f() in b: pass",
    "for a in b: pass\nelse: pass",
    "with a: pass",
    "with a as b, c as d: pass",
    "with (a as b, c as d): pass",
    "with (a, b) as c: pass",
    "with (a as b): pass",
    "with (a): pass",
    "with a as f(): pass",
    "with (a, b): pass",
    "with (a as b) as c: pass",
    "try: a\nexcept: b",
    "try: a\nfinally: b",
    "try: a",
    "try: a\nelse: b",
    "try: a\nexcept: b\nexcept C: d",
    "try: a\nexcept A as b: c\nelse: d\nfinally: e",
    "try: a\nexcept A, B: c",
    "raise",
    "raise a from b",
    "raise from b",
    "assert a, b",
    "assert",
    "global a, b",
    "nonlocal a",
    "import a.b.c as d",
    "import a.b as c.d",
    "from . import a",
    "from .a import *",
    "from a import (b, c as d,)",
    "from a import ()",
    "from a import b,",
    "import",
    "from import a",
    "@a\ndef f(): pass",
    "@a.b[c](d)\nclass A: pass",
    "@a",
    "@a\nb = 1",
    "class A(B, metaclass=C): pass",
    "class A(): pass",
    "class A(x for x in y): pass",
    "if a: pass\nelif b: pass\nelse: pass",
    "else: pass",
    "if a:\npass",
    "if a:\n  b\n c",
    "if a: if b: c",
    "a; b;",
    ";",
    "a if b",
    "a if b else c",
    "a if b else lambda: c",
    "not a in b",
    "a not in b",
    "a is not b",
    "a not b",
    "a < b > c",
    "-a ** -b",
    "a ** not b",
    "not not a",
    "a and or b",
    "~-+a",
    "1if 1else 2",
    "0x1for x in y",
    "1_000",
    "1__000",
    "1_",
    "0_7",
    "00",
    "07",
    "0xg",
    "0b2",
    "1e",
    "1e5",
    "1.e5",
    ".5",
    "1..real",
    "1.real",
    "1 .real",
    "'a' 'b'",
    "'a' b'c'",
    "'abc",
    "'''abc",
    "r'\\'",
    "'\\x4'",
    "'\\777'",
    "f'{a}'",
    "f'{a!r:>{b}}'",
    "f'{a!x}'",
    "f'{}'",
    "f'{a'",
    "f'a}'",
    "f'{{}}'",
    "f'{a:{b:{c}}}'",
    "f'{a=}'",
    "f'{a = !s}'",
    "f'{a b}'",
    "f'{lambda: 1}'",
    "f'{(lambda: 1)}'",
    "f'{a:=5}'",
    "f'{a!=b}'",
    "f'{a[\"b\"]}'",
    "f'{*a, b}'",
    "f'{a,}'",
    "f'{a:b{c}d}'",
    "f'{ {1: 2}[1] }'",
    "rf'\\{a}'",
    "f'\\{a}'",
    "f'{a#}'",
    "[x for x in y if z if w for v in x]",
    "[x for x in y, z]",
    "[x for x in lambda: y]",
    "[x for x in (lambda: y)]",
    "[x, y for x in z]",
    "[(x, y) for x in z]",
    "[*x for x in y]",
    "{x: y for x in z}",
    "{**x for x in y}",
    "[x for f() in y]",
    "(x for x in y)",
    "x for x in y",
    "[x for x, in y]",
    "def f(): [(yield x) for x in y]",
    "def f(): [x for x in (yield y)]",
    "(yield)",
    "a\\\nb",
    "a + \\\nb",
    "a \\ b",
    "(a\n+\nb)",
    "a)",
    "(a",
    "[a)",
    "$",
    "a ? b",
    "a = b if c else d = e",
    "print 'a'",
    "exec 'a'",
    "a <> b",
    "a ! b",
    "a && b",
    "a++",
    "++a",
    "pass pass",
    "True = 1",
    "f(True=1)",
    "def True(): pass",
    "for True in a: pass",
    "lambda True: 1",
    "import True",
    "a.True",
    "...",
    "....a",
    "a...",
    "x = 1 2",
    "\tx = 1",
    "if a:\n\tb\n        c",
    "if a:\n        b\n\tc",
    "def f():\n  '''doc'''",
    "async = 1",
    "é = 1",
    "a\xC2\xA0= 1",
    "変数 = 1",
    "x² = 1",
    "€ = 1",
    "match = 1",
    "match a:\n  case 1 | 'x' | None | -2.5: pass\n  case b.c: pass\n  case _: pass",
    "match a, b:\n  case x, *_: pass\n  case [x, (y, z), *rest]: pass\n  case (): pass\n  case (x): pass",
    "match (a):\n  case {'k': v, 1: [w], b.c: _, **rest}: pass\n  case {}: pass",
    "match a:\n  case C(): pass\n  case b.C(x, 1, y=[z], w=None): pass\n  case C(x,) as y if x > 1: pass",
    "match *a, b:\n  case [(1 | 2) as x, _] | [x, 3]: pass",
    "match a:\n  case x: pass\n  case 1: pass",
    "match a:\n  case [x, x]: pass",
    "match a:\n  case x | 1: pass",
    "match a:\n  case [x] | 1: pass",
    "match a:\n  case *x: pass",
    "match a:\n  case [*x, *y]: pass",
    "match a:\n  case {**r, 1: 2}: pass",
    "match a:\n  case {x: 2}: pass",
    "match a:\n  case C(x=1, 2): pass",
    "match a:\n  case C(x=1, x=2): pass",
    "match a:\n  case 1 as _: pass",
    "match a:\n  case f'x': pass",
    "match a:\n  case a + 1: pass",
    "match a:\n  case 'a' 'b': pass",
    "match a:\n  case -x: pass",
    "match a := 1:\n  case x: pass",
    "match a:\n  pass",
    "match a: pass",
    "match a:\n  case 1: pass\n  b = 1",
    "match(a)",
    "match[a]: int",
    "case = 1",
    "type = 1",
    "_ = 1",
    "f(a)(b)[c].d",
    "f(a.b=1)",
    "f(a=1, a=2)",
    "f(1=2)",
    "f(*)",
    "f(**)",
    "f(,)",
    "f(a,)",
    "f(a,,b)",
    "(,)",
    "[,]",
    "[a,]",
    "{,}",
    "{a,}",
    "{a:}",
    "{:a}",
    "{a:b,}",
    "a[b:c:d:e]",
    "a[:]",
    "a[::]",
    "a[b,:]",
    "a[*b]",
    "a[*b:c]",
    "a[b=1]",
    "a.1",
    "a.",
    "a..b",
    "lambda: a, b",
    "def f() -> int: pass",
    "def f() -> : pass",
    "def f(a:): pass",
    "def f(a: int = 1): pass",
    "def f((a, b)): pass",
    "def f: pass",
};

bool has_python() { return std::system("python3 -c 'import ast' >/dev/null 2>&1") == 0; }

struct Verdicts {
  int version = 0;
  nlohmann::json trees;  // a string each, or null
};

Verdicts ask_python(const std::vector<std::string>& texts) {
  const std::filesystem::path folder = std::filesystem::path(TILEPILOT_BINARY_DIR) / "real_python" /
                                       ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  const std::string program = folder / "oracle.py", input = folder / "in.json", output = folder / "out.json";
  std::ofstream(program) << kOracle;
  std::ofstream(input) << nlohmann::json(texts).dump();
  std::string command = "python3 '" + program + "' '" + input + "' > '" + output + "'";
  Verdicts verdicts;
  if (std::system(command.c_str()) != 0) return verdicts;
  std::ifstream answer(output);
  std::string version, trees;
  std::getline(answer, version);
  std::getline(answer, trees);
  verdicts.version = std::stoi(version);
  verdicts.trees = nlohmann::json::parse(trees);
  return verdicts;
}

bool is_outside_subset(const Parsed& parsed) {
  for (const Diagnostic& diagnostic : parsed.diagnostics.items()) {
    if (diagnostic.kind == DiagnosticKind::unsupported_syntax) return true;
  }
  return false;
}

TEST(RealPython, AcceptsAndRefusesTheSame) {
  if (!has_python()) GTEST_SKIP() << "no python3 here: the comparison with real Python did not run";
  std::vector<std::string> texts(std::begin(kSnippets), std::end(kSnippets));
  for (const std::string& name : testing::stems_in("syntax/cases", ".py")) {
    texts.push_back(testing::read_text(testing::tests_path("syntax/cases/" + name + ".py")));
  }
  Verdicts verdicts = ask_python(texts);
  ASSERT_EQ(verdicts.trees.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    Parsed parsed(texts[i]);
    if (is_outside_subset(parsed)) continue;
    bool version_matters = verdicts.version >= 312 && texts[i].find("f'") != std::string::npos;
    if (version_matters) continue;  // 3.12 reads f-strings by other rules
    EXPECT_EQ(parsed.module != nullptr, verdicts.trees[i].is_string()) << texts[i] << "\n" << parsed.first_error();
  }
}

TEST(RealPython, ReadsOurPrintedSourceAsTheSameTree) {
  if (!has_python()) GTEST_SKIP() << "no python3 here: the comparison with real Python did not run";
  std::vector<std::string> texts;
  auto add = [&](const std::string& text) {
    Parsed parsed(text);
    if (!parsed.module) return;
    texts.push_back(text);
    texts.push_back(to_source(*parsed.module));
  };
  for (std::string_view snippet : kSnippets) add(std::string(snippet));
  for (const std::string& name : testing::stems_in("syntax/cases", ".py")) {
    add(testing::read_text(testing::tests_path("syntax/cases/" + name + ".py")));
  }
  Verdicts verdicts = ask_python(texts);
  ASSERT_EQ(verdicts.trees.size(), texts.size());
  for (size_t i = 0; i < texts.size(); i += 2) EXPECT_EQ(verdicts.trees[i], verdicts.trees[i + 1]) << texts[i + 1];
}

}  // namespace
}  // namespace tilepilot::syntax
