// Random expressions and programs, evaluated here and by the real Python. Where an integer gets more than 65,536 bits
// we must report `integer_overflow`; everything else must print the same, and fail where Python fails with the same
// exception.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/stage/python/objects/exceptions.h"
#include "tests/golden.h"
#include "tests/rounds.h"
#include "tests/stage/random_generators.h"
#include "tests/stage/random_python.h"
#include "tests/stage/random_regex.h"
#include "tests/stage/session.h"

namespace tilepilot::stage {
namespace {

// Reads programs from argv[1]; for each writes what it prints, or the class of its exception. Integers of too many bits
// anywhere on the way count as an overflow: every operator is wrapped.
constexpr std::string_view kOracle = R"(
import ast, io, json, sys, contextlib
BITS = 65536
sys.set_int_max_str_digits(0)
class Overflow(OverflowError): pass
def checked(value):
    if isinstance(value, int) and value.bit_length() > BITS: raise Overflow
    if isinstance(value, complex): raise ValueError
    return value
def power(a, b):
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b * (a.bit_length() - 1) > BITS: raise Overflow
    if a < 0 and b != b // 1: raise ValueError
    return a ** b
def shift(a, b):
    if isinstance(a, int) and isinstance(b, int) and a != 0 and b > BITS: raise Overflow
    return a << b
class Wrap(ast.NodeTransformer):
    def wrap(self, node):
        self.generic_visit(node)
        call = ast.Call(ast.Name('_checked', ast.Load()), [node], [])
        return ast.copy_location(call, node)
    def visit_BinOp(self, node):
        special = {ast.Pow: '_power', ast.LShift: '_shift'}.get(type(node.op))
        if special: node = ast.Call(ast.Name(special, ast.Load()), [node.left, node.right], [])
        return self.wrap(node)
    def visit_AugAssign(self, node):
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return ast.Assign([node.target], self.visit(value))
    def visit_UnaryOp(self, node): return self.wrap(node)
    def visit_Call(self, node): return self.wrap(node)
    def visit_JoinedStr(self, node): return node if not any(isinstance(v, ast.FormattedValue) for v in node.values) else self.inside(node)
    def inside(self, node):
        for value in node.values:
            if isinstance(value, ast.FormattedValue): value.value = self.visit(value.value)
        return node
def run(text):
    tree = ast.fix_missing_locations(Wrap().visit(ast.parse(text)))
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out): exec(compile(tree, 'p', 'exec'), {'_checked': checked, '_power': power, '_shift': shift})
    except Overflow: return out.getvalue() + 'integer_overflow'
    except MemoryError: return out.getvalue() + 'RuntimeError'  # here: a limit of our own
    except Exception as e: return out.getvalue() + type(e).__name__
    return out.getvalue()
print(json.dumps([run(t) for t in json.load(open(sys.argv[1]))]))
)";

bool has_python() {
  return std::system("python3 -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null") == 0;
}

std::vector<std::string> run_python(const std::vector<std::string>& programs) {
  std::filesystem::path folder = std::filesystem::path(TILEPILOT_BINARY_DIR) / "python_property" /
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "oracle.py") << kOracle;
  std::ofstream(folder / "programs.json") << nlohmann::json(programs).dump();
  std::string command = "cd '" + folder.string() + "' && python3 -W ignore oracle.py programs.json > answers.json";
  if (std::system(command.c_str()) != 0) return {};
  return nlohmann::json::parse(testing::read_text(folder / "answers.json")).get<std::vector<std::string>>();
}

std::string run_here(const std::string& program) {
  Session session;
  if (session.run(program)) return session.printed;
  if (session.error->kind == DiagnosticKind::integer_overflow) return session.printed + "integer_overflow";
  Value exception = exception_of(session.interpreter, *session.error);
  return session.printed + std::string(exception.type_name());
}

void compare_all(const std::vector<std::string>& programs) {
  if (!has_python()) GTEST_SKIP() << "python3 (3.11 or newer) is not installed: nothing to compare with";
  std::vector<std::string> expected = run_python(programs);
  ASSERT_EQ(expected.size(), programs.size()) << "the oracle failed";
  int differences = 0;
  for (size_t i = 0; i < programs.size() && differences < 20; ++i) {
    std::string actual = run_here(programs[i]);
    if (actual == expected[i]) continue;
    ++differences;
    ADD_FAILURE() << programs[i] << "\npython: " << expected[i] << "\nhere:   " << actual;
  }
}

TEST(PythonProperty, Expressions) {
  RandomPython random(20240611);
  std::vector<std::string> programs;
  for (int i = 0; i < rounds(6000); ++i) programs.push_back("print(repr(" + random.expression() + "))\n");
  compare_all(programs);
}

TEST(PythonProperty, FormatSpecifications) {
  RandomPython random(7);
  std::vector<std::string> programs;
  for (int i = 0; i < rounds(4000); ++i) programs.push_back("print(repr(" + random.formatting() + "))\n");
  compare_all(programs);
}

TEST(PythonProperty, StringsAndSequences) {
  RandomPython random(99);
  std::vector<std::string> programs;
  for (int i = 0; i < rounds(4000); ++i) programs.push_back("print(repr(" + random.sequence_expression() + "))\n");
  compare_all(programs);
}

TEST(PythonProperty, Programs) {
  RandomPython random(4711);
  std::vector<std::string> programs;
  for (int i = 0; i < rounds(800); ++i) programs.push_back(random.program());
  compare_all(programs);
}

// They run piece by piece: what is printed shows the order.
TEST(PythonProperty, Generators) {
  RandomGenerators random(31415);
  std::vector<std::string> programs;
  for (int i = 0; i < rounds(1500); ++i) programs.push_back(random.program());
  compare_all(programs);
}

TEST(PythonProperty, RegularExpressions) {
  RandomRegex random(271828);
  std::vector<std::string> programs;
  for (int i = 0; i < rounds(1000); ++i) programs.push_back(random.program());
  compare_all(programs);
}

}  // namespace
}  // namespace tilepilot::stage
