// Programs that a person runs: scripts/NAME.py prints golden/script_NAME.txt, and the real Python prints the same; the
// error of scripts/fail_NAME.py is golden/script_fail_NAME.txt. The folders beside them are what they import.
#include "compiler/stage/python/script.h"

#include <gtest/gtest.h>

#include "tests/golden.h"
#include "tests/stage/real_python.h"
#include "tests/stage/session.h"

namespace tilepilot::stage {
namespace {

std::filesystem::path scripts() { return testing::tests_path("stage/scripts"); }

// Scripts run in their own folder, so that no message holds the path of this machine.
class ScriptCase : public ::testing::TestWithParam<std::string> {
 protected:
  ScriptCase() : before_(std::filesystem::current_path()) { std::filesystem::current_path(scripts()); }
  ~ScriptCase() override { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

TEST_P(ScriptCase, MatchesGolden) {
  const std::string& name = GetParam();
  Session session;
  install_script(session.interpreter, {name + ".py", {}});
  bool good = session.run(testing::read_text(name + ".py"), name + ".py");
  std::string shown = session.printed;
  if (!good) shown += render(session.sources, *session.error);
  EXPECT_EQ(good, name.rfind("fail_", 0) != 0) << shown;
  testing::expect_golden("stage/golden/script_" + name + ".txt", shown);
}

TEST_P(ScriptCase, PrintsWhatPythonPrints) {
  const std::string& name = GetParam();
  if (name.rfind("fail_", 0) == 0 || name == "foreign") return;
  auto printed = real_python_prints(scripts(), name + ".py");
  if (!printed) GTEST_SKIP() << "python3 (3.11 or newer) is not installed: nothing to compare with";
  EXPECT_EQ(*printed, testing::read_text(testing::tests_path("stage/golden/script_" + name + ".txt")));
}

INSTANTIATE_TEST_SUITE_P(Files, ScriptCase, ::testing::ValuesIn(testing::stems_in("stage/scripts", ".py")),
                         [](const auto& info) { return info.param; });

// Runs a script with arguments; the exit code it asks for, -1 if none, and what went to standard error.
std::pair<int, std::string> ended(const std::string& program, std::vector<std::string> arguments = {}) {
  Session session;
  install_script(session.interpreter, {"script.py", std::move(arguments)});
  if (session.run(program, "script.py")) return {-1, session.complaints};
  return {exit_status(session.interpreter, *session.error).value_or(-2), session.complaints};
}

TEST(Script, MayImportWhatAPackageOfTheHostLacks) {
  Session session;
  install_script(session.interpreter, {"script.py", {}});
  auto host = std::make_shared<ModuleObject>("host");
  host->set("known", Value(1));
  session.interpreter.add_module("host", host);
  EXPECT_TRUE(session.run("from host import known, lacking\nprint(known)\n"));
  EXPECT_TRUE(session.run("try:\n    from host import lacking\nexcept ImportError:\n    print('none')\n"));
  EXPECT_EQ(session.printed, "1\nnone\n");
  EXPECT_FALSE(session.run("from host import lacking\nlacking(1)\n"));
  EXPECT_EQ(session.error->message, "`host.lacking` cannot be used: this `host` has no such name");
}

TEST(Script, EndsWithTheCodeItAsksFor) {
  EXPECT_EQ(ended("import sys\nsys.exit()\n").first, 0);
  EXPECT_EQ(ended("raise SystemExit\n").first, 0);
  EXPECT_EQ(ended("raise SystemExit(3)\n").first, 3);
  EXPECT_EQ(ended("raise SystemExit(True)\n").first, 1);
  EXPECT_EQ(ended("raise SystemExit(257)\n").first, 1);
  EXPECT_EQ(ended("exit(-1)\n").first, 255);
  EXPECT_EQ(ended("class Stop(SystemExit): pass\nraise Stop(4)\n").first, 4);
  EXPECT_EQ(ended("import sys\nsys.exit('no device')\n"), std::pair(1, std::string("no device\n")));
  EXPECT_EQ(ended("1 / 0\n").first, -2);
  EXPECT_EQ(ended("import sys\nprint('x', file=sys.stderr)\n"), std::pair(-1, std::string("x\n")));
}

TEST(Script, ReadsItsArguments) {
  const std::string program =
      "import argparse, sys\n"
      "parser = argparse.ArgumentParser()\n"
      "parser.add_argument('--m', type=int, choices=[1, 2], help='rows')\n"
      "sys.exit(parser.parse_args().m)\n";
  EXPECT_EQ(ended(program, {"--m", "2"}).first, 2);
  EXPECT_EQ(ended(program, {"--help"}).first, 0);
  EXPECT_EQ(ended(program, {"--m", "3"}),
            std::pair(2, std::string("usage: script.py [-h] [--m {1,2}]\n"
                                     "script.py: error: argument --m: invalid choice: 3 (choose from 1, 2)\n")));
  EXPECT_EQ(ended(program, {"3"}).second,
            "usage: script.py [-h] [--m {1,2}]\nscript.py: error: unrecognized arguments: 3\n");
}

// A candidate is not a script: what a script may import stays out of its reach (limits_test.cpp), and so do its own
// file, its neighbours, and modules that nobody has.
TEST(Script, CandidatesHaveNoneOfThis) {
  EXPECT_EQ(outcome("import argparse\n"), "unknown_module: no module named 'argparse' is available here\n");
  EXPECT_EQ(outcome("import triton\n"), "unknown_module: no module named 'triton' is available here\n");
  EXPECT_EQ(outcome("from .neighbour import area\n"),
            "unknown_module: relative imports are not available: a program is one file\n");
  EXPECT_EQ(outcome("exit(0)\n"), "unknown_name: name 'exit' is not defined\n");
  EXPECT_EQ(outcome("print(__file__)\n"), "program.py\n");
}

}  // namespace
}  // namespace tilepilot::stage
