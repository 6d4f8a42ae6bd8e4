// What a program may not do: run for ever, nest without end, fill the memory, reach the system.
#include <gtest/gtest.h>

#include "tests/rounds.h"
#include "tests/stage/session.h"

namespace tilepilot::stage {
namespace {

std::string kind_of(const std::string& program, Limits limits = {}) {
  Session session(limits);
  return session.run(program) ? "ok" : std::string(info(session.error->kind).name);
}

TEST(Limits, StepsEndEveryLoop) {
  Limits few{10'000, 200, 1'000'000};
  EXPECT_EQ(kind_of("while True: pass\n", few), "step_limit");
  EXPECT_EQ(kind_of("for i in range(10**9): pass\n", few), "step_limit");
  EXPECT_EQ(kind_of("[i for i in range(10**9)]\n", few), "step_limit");
  EXPECT_EQ(kind_of("sum(range(10**9))\n", few), "step_limit");
  EXPECT_EQ(kind_of("list(range(10**9))\n", few), "step_limit");
  EXPECT_EQ(kind_of("any(x > 10**10 for x in range(10**9))\n", few), "step_limit");
  EXPECT_EQ(kind_of("def f():\n  while True: yield 1\nlist(f())\n", few), "step_limit");
  EXPECT_EQ(kind_of("sorted(range(5000))\n", few), "step_limit");
  EXPECT_EQ(kind_of("import itertools\nfor i in itertools.count(): pass\n", few), "step_limit");
  EXPECT_EQ(kind_of("import itertools\nlist(itertools.product(range(100), repeat=20))\n", few), "step_limit");
  EXPECT_EQ(kind_of("for i in range(1000): pass\n", few), "ok");
}

TEST(Limits, StepLimitCannotBeCaught) {
  Limits few{1000, 200, 1'000'000};
  EXPECT_EQ(kind_of("try:\n  while True: pass\nexcept Exception: pass\n", few), "step_limit");
  EXPECT_EQ(kind_of("try:\n  while True: pass\nexcept: pass\n", few), "step_limit");
}

TEST(Limits, ContainersStaySmall) {
  Limits small{1'000'000, 200, 1000};
  EXPECT_EQ(kind_of("x = [0] * 10**9\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = 'ab' * 501\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = 'ab' * 500\n", small), "ok");
  EXPECT_EQ(kind_of("x = list(range(1001))\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = []\nwhile True: x.append(1)\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = [1]\nwhile True: x += x\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = 'a'\nwhile True: x += x\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = {}\nfor i in range(2000): x[i] = i\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = 'aaaa'.replace('a', 'b' * 900)\n", small), "step_limit");
  EXPECT_EQ(kind_of("x = f'{1:99999999999}'\n", small), "value_error");
}

TEST(Limits, CallsNestTo200) {
  EXPECT_EQ(kind_of("def f(n): return 0 if n == 0 else 1 + f(n - 1)\nassert f(198) == 198\n"), "ok");
  EXPECT_EQ(kind_of("def f(n): return f(n + 1)\nf(0)\n"), "recursion_limit");
  EXPECT_EQ(kind_of("class A:\n  def __add__(self, o): return self + o\nA() + 1\n"), "recursion_limit");
  EXPECT_EQ(kind_of("class A:\n  def __getattr__(self, n): return self.other\nA().x\n"), "recursion_limit");
  EXPECT_EQ(kind_of("f = lambda: f()\ntry: f()\nexcept Exception: pass\n"), "recursion_limit");
}

// Every call nests through many expressions, and the native stack must hold all the same.
TEST(Limits, DeepExpressionsInDeepCallsAreAnErrorNotACrash) {
  std::string nested = "f(n + 1)";
  for (int i = 0; i < 90; ++i) nested = "[" + nested + "][0]";
  std::string result = kind_of("def f(n): return " + nested + "\nf(0)\n");
  EXPECT_EQ(result, "recursion_limit");
}

TEST(Limits, DeepValuesCannotBreakTheStack) {
  const std::string repeat = "for i in range(" + std::to_string(rounds(300000)) + "): ";
  EXPECT_EQ(kind_of("x = []\n" + repeat + "x = [x]\nrepr(x)\n"), "recursion_limit");
  EXPECT_EQ(kind_of("x = ()\n" + repeat + "x = (x,)\nhash(x)\n"), "recursion_limit");
  EXPECT_EQ(kind_of("x = []\ny = []\n" + repeat + "x, y = [x], [y]\nx == y\n"), "recursion_limit");
  EXPECT_EQ(kind_of("x = None\n" + repeat + "x = (x, i)\n"), "ok");
  EXPECT_EQ(kind_of("x = {}\n" + repeat + "x = {1: x}\ndel x\n"), "ok");
}

// Comparisons and reprs written in Python may change the container that is being searched or shown.
TEST(Limits, ContainersChangedMeanwhileAreNoCrash) {
  const std::string kEvil =
      "xs, d = [], {}\n"
      "class E:\n"
      "  def __init__(self, k=0): self.k = k\n"
      "  def __hash__(self): return 1\n"
      "  def __eq__(self, o):\n"
      "    xs.clear(); d.clear(); xs.extend(range(100))\n"
      "    for i in range(50): d[i] = i\n"
      "    return False\n"
      "  def __lt__(self, o): xs.clear(); return False\n"
      "  def __repr__(self): xs.clear(); d.clear(); return 'E'\n"
      "xs.extend([E(), E(), E()]); d.update({E(1): E()})\n";
  for (std::string_view use :
       {"xs == [1, 2, 3]", "xs.index(5)", "xs.count(5)", "5 in xs", "xs.remove(5)", "repr(xs)", "repr(d)", "d[E(2)]",
        "E(2) in d", "d == {E(3): 1}", "xs.sort()", "sorted(xs)", "str(d.items())", "5 in d.values()", "max(xs)",
        "xs < [E()]", "d.setdefault(E(4), 5)", "set(d) & {E(5)}", "d.pop(E(2), None)"}) {
    std::string kind = kind_of(kEvil + std::string(use) + "\n");
    EXPECT_TRUE(kind == "ok" || kind == "raised" || kind == "value_error" || kind == "key_error") << use << kind;
  }
}

TEST(Limits, LongChainsOfIteratorsAreAnErrorNotACrash) {
  // Whether the stack holds so many links depends on how this was compiled.
  for (std::string_view program :
       {"it = [1]\nfor i in range(3000): it = map(abs, it)\nprint(list(it))\n",
        "def f(it):\n  for x in it: yield x\nit = [1]\nfor i in range(100000): it = f(it)\n",
        "import functools\nf = abs\nfor i in range(3000): f = functools.partial(f)\nf(1)\n",
        "def f(it):\n  for x in it: yield x\nit = [1]\nfor i in range(3000): it = f(it)\nprint(list(it))\n",
        "it = [1]\nfor i in range(100000): it = (x for x in it)\nprint(list(it))\n",
        "it = [1]\nfor i in range(100000): it = map(abs, it)\nprint(list(it))\n",
        "it = [1]\nfor i in range(100000): it = enumerate(zip(it))\nprint(next(it))\n",
        "f = abs\nfor i in range(3000): f = (lambda g: lambda x: g(x))(f)\nf(1)\n"}) {
    std::string kind = kind_of(std::string(program));
    EXPECT_TRUE(kind == "ok" || kind == "recursion_limit") << kind << ": " << program;
  }
}

TEST(Limits, LongChainsOfValuesEndOneByOne) {
  for (std::string_view link :
       {"a = [a]", "a = (a,)", "a = {1: a}", "a = frozenset([a])", "a = C(a)", "a = lambda a=a: a", "a = closure(a)",
        "a = partial(closure, a)", "a = C(a).get", "a = slice(a)", "a = [iter([a])]"}) {
    const std::string program =
        "from functools import partial\nclass C:\n  def __init__(self, a): self.a = a\n  def get(self): return self.a\n"
        "def closure(a): return lambda: a\na = None\nfor i in range(" +
        std::to_string(rounds(50000)) + "): " + std::string(link) + "\n";
    EXPECT_EQ(kind_of(program), "ok") << link;
  }
}

// A generator has a stack of its own, and there are only so many of them.
TEST(Limits, GeneratorsEndWithTheirProgram) {
  EXPECT_EQ(kind_of("def f():\n  while True: yield 1\ngs = [f() for i in range(900)]\n"
                    "for g in gs: next(g)\nclass C: pass\nc = C()\nc.me, c.gs = c, gs\n"),
            "ok");
  EXPECT_EQ(kind_of("def f():\n  while True: yield 1\ngs = [f() for i in range(1100)]\nfor g in gs: next(g)\n"),
            "recursion_limit");
  EXPECT_EQ(kind_of("def f():\n  try: yield 1\n  finally:\n    while True: pass\ng = f()\nnext(g)\n"), "ok");
  EXPECT_EQ(kind_of("def f(n):\n  yield from f(n + 1)\nlist(f(0))\n"), "recursion_limit");
  EXPECT_EQ(kind_of("def g():\n  def f(n): return f(n + 1)\n  yield f(0)\nlist(g())\n"), "recursion_limit");
  EXPECT_EQ(kind_of("def f():\n  yield 1\n  yield next(g)\ng = f()\nlist(g)\n"), "value_error");
  EXPECT_EQ(kind_of("def f():\n  me = yield\n  yield me\ng = f()\nnext(g)\ng.send(g)\ndel g\n"), "ok");
}

TEST(Limits, NumbersAndTextsThatNoMemoryHolds) {
  EXPECT_EQ(kind_of("10**10**10\n"), "integer_overflow");
  EXPECT_EQ(kind_of("1 << 10**12\n"), "integer_overflow");
  EXPECT_EQ(kind_of("x = 9\nwhile True: x = x * x\n"), "integer_overflow");
  EXPECT_EQ(kind_of("'a' * 10**12\n"), "step_limit");
  EXPECT_EQ(kind_of("'ab'.join(['c' * 10**6] * 10**6)\n"), "step_limit");
  EXPECT_EQ(kind_of("[0] * 10**12\n"), "step_limit");
  EXPECT_EQ(kind_of("list(range(10**18))\n"), "step_limit");
  EXPECT_EQ(kind_of("tuple(range(10**18))\n"), "step_limit");
  EXPECT_EQ(kind_of("set(range(10**18))\n"), "step_limit");
  EXPECT_EQ(kind_of("'x'.ljust(10**12)\n"), "step_limit");
  EXPECT_EQ(kind_of("'x'.zfill(10**12)\n"), "step_limit");
  EXPECT_EQ(kind_of("'\\t'.expandtabs(10**12)\n"), "step_limit");
  EXPECT_EQ(kind_of("'%1000000000000d' % 1\n"), "value_error");
  EXPECT_EQ(kind_of("print(str(10**19000)[:1])\n"), "ok");
}

TEST(Limits, AMegabyteOfBracketsIsAnErrorNotACrash) {
  const size_t megabyte = rounds(1'000'000);
  for (char bracket : {'(', '[', '{'}) {
    EXPECT_EQ(kind_of("x = " + std::string(megabyte, bracket) + "\n"), "nesting_too_deep");
    EXPECT_EQ(kind_of(std::string(megabyte, bracket)), "nesting_too_deep");
  }
  auto repeated = [](std::string_view piece, size_t count) {
    std::string text;
    while (count-- > 0) text += piece;
    return text;
  };
  for (std::string_view piece :
       {"-", "not ", "lambda: ", "await ", "x if x else ", "*", "~", "x.", "x(", "f'{", "@", "x = "}) {
    const std::string kind = kind_of("y = " + repeated(piece, megabyte / piece.size()) + "x\n");
    EXPECT_TRUE(kind == "nesting_too_deep" || kind == "syntax_error" || kind == "unsupported_syntax" ||
                kind == "bad_literal" || kind == "unknown_name")
        << piece << ": " << kind;
  }
  for (std::string_view piece : {"if x: ", "while x: ", "for x in x: ", "with x: ", "def f(): ", "class C: "})
    EXPECT_EQ(kind_of(repeated(piece, megabyte / 10) + "pass\n"), "syntax_error") << piece;
  EXPECT_EQ(kind_of("x = 1" + repeated(" + 1", megabyte / 5) + "\n"), "nesting_too_deep");
  EXPECT_EQ(kind_of("x = " + std::string(megabyte, '9') + "\n"), "integer_overflow");
}

TEST(Limits, TheSystemIsOutOfReach) {
  for (std::string_view name : {"os", "sys", "subprocess", "socket", "time", "threading", "ctypes", "importlib"}) {
    EXPECT_EQ(kind_of("import " + std::string(name) + "\n"), "ok") << name;
    EXPECT_EQ(kind_of("import " + std::string(name) + " as m\nm.anything\n"), "forbidden") << name;
    EXPECT_EQ(kind_of("from " + std::string(name) + " import x\n"), "forbidden") << name;
  }
  EXPECT_EQ(kind_of("import os.path\nos.path.exists('x')\n"), "forbidden");
  EXPECT_EQ(kind_of("try:\n    import os\n    os.getcwd()\nexcept Exception: pass\n"), "forbidden");
  EXPECT_EQ(kind_of("import os\nassert os.environ.get('HOME') is None\n"), "ok");
  for (std::string_view call : {"open('x')", "exec('1')", "eval('1')", "compile('1', '', 'eval')", "__import__('os')",
                                "globals()", "input()"}) {
    EXPECT_EQ(kind_of(std::string(call) + "\n"), "forbidden") << call;
  }
  EXPECT_EQ(kind_of("import no_such_module\n"), "unknown_module");
}

}  // namespace
}  // namespace tilepilot::stage
