// What a program may not do: run for ever, nest without end, fill the memory, reach the system.
#include <gtest/gtest.h>

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
  EXPECT_EQ(kind_of("def f():\n  while True: yield 1\nf()\n", few), "step_limit");
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
  EXPECT_EQ(kind_of("x = []\nfor i in range(200000): x = [x]\nrepr(x)\n"), "recursion_limit");
  EXPECT_EQ(kind_of("x = ()\nfor i in range(200000): x = (x,)\nhash(x)\n"), "recursion_limit");
  EXPECT_EQ(kind_of("x = []\ny = []\nfor i in range(200000): x, y = [x], [y]\nx == y\n"), "recursion_limit");
  EXPECT_EQ(kind_of("x = None\nfor i in range(1000000): x = (x, i)\n"), "ok");
  EXPECT_EQ(kind_of("x = {}\nfor i in range(300000): x = {1: x}\ndel x\n"), "ok");
}

TEST(Limits, TheSystemIsOutOfReach) {
  for (std::string_view name : {"os", "sys", "subprocess", "socket", "time", "threading", "ctypes", "importlib"}) {
    EXPECT_EQ(kind_of("import " + std::string(name) + "\n"), "forbidden") << name;
    EXPECT_EQ(kind_of("from " + std::string(name) + " import x\n"), "forbidden") << name;
  }
  EXPECT_EQ(kind_of("import os.path\n"), "forbidden");
  EXPECT_EQ(kind_of("try: import os\nexcept ImportError: pass\n"), "forbidden");
  for (std::string_view call : {"open('x')", "exec('1')", "eval('1')", "compile('1', '', 'eval')", "__import__('os')",
                                "globals()", "input()"}) {
    EXPECT_EQ(kind_of(std::string(call) + "\n"), "forbidden") << call;
  }
  EXPECT_EQ(kind_of("import no_such_module\n"), "unknown_module");
}

}  // namespace
}  // namespace tilepilot::stage
