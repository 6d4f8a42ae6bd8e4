// The door for tracing: a fake staging records what it is asked, over values whose truth is unknown.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/stage/python/containers/containers.h"
#include "tests/stage/session.h"

namespace tilepilot::stage {
namespace {

// A run-time value: shows as text, every operator makes a larger one.
struct Staged final : TypedObject<Staged> {
  static constexpr Type kType{"staged"};
  explicit Staged(std::string text_) : text(std::move(text_)) {}
  Result<std::optional<Value>> binary(Interpreter& interpreter, BinaryOp op, const Value& other, bool reflected,
                                      Span) override {
    std::string shown = TRY(interpreter.str(other));
    return std::optional<Value>(
        std::make_shared<Staged>(reflected ? fmt::format("({} {} {})", shown, syntax::spelling(op), text)
                                           : fmt::format("({} {} {})", text, syntax::spelling(op), shown)));
  }
  Result<std::optional<Value>> compare(Interpreter& interpreter, CompareOp op, const Value& other, Span) override {
    return std::optional<Value>(
        std::make_shared<Staged>(fmt::format("({} {} {})", text, syntax::spelling(op), TRY(interpreter.str(other)))));
  }
  Result<bool> truth(Interpreter&, Span span) override {
    return make_error(DiagnosticKind::staged_value_misused, span, "a run-time value has no truth here");
  }
  Result<std::string> repr(Interpreter&) override { return text; }
  std::string text;
};

class Recorder;

// `loop(n)`: a loop that is emitted.
struct Loop final : StagedLoop {
  static constexpr Type kType{"loop"};
  Loop(std::vector<std::string>& log_, std::string extent_) : log(log_), extent(std::move(extent_)) {}
  const Type& type() const override { return kType; }
  Status run(Interpreter&, const std::function<Status(Value)>& bind_and_run, Span) override {
    log.push_back("loop " + extent + " {");
    TRY(bind_and_run(Value(std::make_shared<Staged>("i"))));
    log.push_back("}");
    return {};
  }
  std::vector<std::string>& log;
  std::string extent;
};

class Recorder final : public Staging {
 public:
  explicit Recorder(Interpreter& interpreter) : interpreter_(interpreter) {}
  std::vector<std::string> log;

  bool is_staged(const Value& value) const override { return value.get_if<Staged>() != nullptr; }
  Status if_statement(const Value& condition, const RunBody& then, const RunBody* otherwise, Span) override {
    log.push_back("if " + shown(condition) + " {");
    TRY(then());
    if (otherwise) {
      log.push_back("} else {");
      TRY((*otherwise)());
    }
    log.push_back("}");
    return {};
  }
  Status while_statement(const RunExpr& condition, const RunBody& body, Span) override {
    log.push_back("while " + shown(TRY(condition())) + " {");
    TRY(body());
    log.push_back("}");
    return {};
  }
  Result<Value> conditional(const Value& condition, const RunExpr& then, const RunExpr& otherwise, Span) override {
    return made(fmt::format("select({}, {}, {})", shown(condition), shown(TRY(then())), shown(TRY(otherwise()))));
  }
  Result<Value> logical(bool is_and, const Value& left, const Value& right, Span) override {
    return made(fmt::format("({} {} {})", shown(left), is_and ? "&&" : "||", shown(right)));
  }
  Result<Value> logical_not(const Value& operand, Span) override { return made("!" + shown(operand)); }
  Status assertion(const Value& condition, const std::string& message, Span) override {
    log.push_back("assert " + shown(condition) + " " + message);
    return {};
  }
  Result<std::optional<Value>> assign(Name name, const Value* previous, Value value, Span) override {
    log.push_back(fmt::format("{} := {} (was {})", name.text(), shown(value), previous ? shown(*previous) : "nothing"));
    if (name.text() == "stored" && previous) return std::optional<Value>();
    return std::optional<Value>(std::move(value));
  }
  Status annotated(Name name, const Value& annotation, Span) override {
    log.push_back(name.str() + ": " + shown(annotation));
    return {};
  }
  Status loop_break(Span) override {
    log.push_back("break");
    return {};
  }
  Status loop_continue(Span) override {
    log.push_back("continue");
    return {};
  }
  void at_statement(Span span) override { last_statement = span; }
  Status before_unpacking(std::vector<Value>& values, Span) override {
    log.push_back(fmt::format("unpack {}", values.size()));
    return {};
  }
  Result<std::shared_ptr<StagedLoop>> loop_over(const Value& iterable, Span) override {
    auto* range = iterable.get_if<RangeObject>();
    if (!range || range->stop != 100) return std::shared_ptr<StagedLoop>();
    return std::shared_ptr<StagedLoop>(std::make_shared<Loop>(log, "100"));
  }
  Result<std::optional<Value>> builtin(std::string_view name, CallArgs& args) override {
    std::string shown_args;
    for (const Value& each : args.positional) shown_args += (shown_args.empty() ? "" : ", ") + shown(each);
    if (name == "range") return std::optional<Value>(std::make_shared<Loop>(log, shown_args));
    return std::optional<Value>(made(fmt::format("{}({})", name, shown_args)));
  }
  Span last_statement;

 private:
  std::string shown(const Value& value) { return *interpreter_.str(value); }
  static Value made(std::string text) { return std::make_shared<Staged>(std::move(text)); }
  Interpreter& interpreter_;
};

// Runs `def kernel(x, y): body` with x and y staged; what was recorded, one line each, or the error.
std::string trace(const std::string& body) {
  Session session;
  std::string program = "def kernel(x, y):\n";
  for (size_t at = 0; at < body.size();) {
    size_t end = body.find('\n', at);
    program += "  " + body.substr(at, end - at) + "\n";
    at = end == std::string::npos ? body.size() : end + 1;
  }
  if (!session.run(program)) return session.error->message;
  auto function = session.module->members.find(Name("kernel"))->get_shared<FunctionObject>();
  Recorder recorder(session.interpreter);
  Interpreter::StagingGuard guard(session.interpreter, &recorder);
  std::vector<Value> parameters{std::make_shared<Staged>("x"), std::make_shared<Staged>("y")};
  auto result = session.interpreter.run_function(*function, parameters, Span{});
  std::string text;
  for (const std::string& line : recorder.log) text += line + "\n";
  if (!result.ok()) return text + std::string(info(result.error().kind).name) + ": " + result.error().message + "\n";
  if (!result->is_none()) text += "returns " + *session.interpreter.str(*result) + "\n";
  return text;
}

TEST(Staging, OperatorsGoToTheObjects) {
  EXPECT_EQ(trace("return (x + 1) * 2 - 3 * y"), "returns (((x + 1) * 2) - (3 * y))\n");
  EXPECT_EQ(trace("return 1 < x"), "returns (x > 1)\n");
}

TEST(Staging, LogicOnStagedValues) {
  EXPECT_EQ(trace("return x and y"), "returns (x && y)\n");
  EXPECT_EQ(trace("return x or y or 1"), "returns ((x || y) || 1)\n");
  EXPECT_EQ(trace("return not x"), "returns !x\n");
  EXPECT_EQ(trace("return True and x"), "returns x\n");
  EXPECT_EQ(trace("return False and x"), "returns False\n");
  EXPECT_EQ(trace("return 0 < x < y"), "returns ((x > 0) && (x < y))\n");
  EXPECT_EQ(trace("return 0 < 1 < x"), "returns (x > 1)\n");
  EXPECT_EQ(trace("return 2 < 1 < x"), "returns False\n");
  EXPECT_EQ(trace("return x if x > 0 else y"), "returns select((x > 0), x, y)\n");
  EXPECT_EQ(trace("return x if True else y"), "returns x\n");
}

TEST(Staging, BranchesOnStagedValuesRunBothSides) {
  EXPECT_EQ(trace("if x: a = 1\nelse: b = 2"), "if x {\na := 1 (was nothing)\n} else {\nb := 2 (was nothing)\n}\n");
  EXPECT_EQ(trace("if x: a = 1"), "if x {\na := 1 (was nothing)\n}\n");
  EXPECT_EQ(trace("if x: a = 1\nelif y: a = 2"),
            "if x {\na := 1 (was nothing)\n} else {\nif y {\na := 2 (was 1)\n}\n}\n");
  EXPECT_EQ(trace("if 1: a = 1\nelse: b = 2"), "a := 1 (was nothing)\n");
  EXPECT_EQ(trace("if x: return 1"),
            "if x {\nstaged_value_misused: `return` stands under a condition that is known only when the kernel "
            "runs\n");
}

TEST(Staging, Assignments) {
  EXPECT_EQ(trace("a = x\na = y\na += 1"), "a := x (was nothing)\na := y (was x)\na := (y + 1) (was y)\n");
  EXPECT_EQ(trace("stored = x\nstored = y\nreturn stored"),
            "stored := x (was nothing)\nstored := y (was x)\nreturns x\n");
  EXPECT_EQ(trace("a, b = x, y"), "unpack 2\na := x (was nothing)\nb := y (was nothing)\n");
  EXPECT_EQ(trace("a: x + 1"), "a: (x + 1)\n");
  EXPECT_EQ(trace("a: int = x"), "a := x (was nothing)\n");
  EXPECT_EQ(trace("return (a := x)"), "a := x (was nothing)\nreturns x\n");
  EXPECT_EQ(trace("for a in [1, 2]: pass"), "");
}

TEST(Staging, Loops) {
  EXPECT_EQ(trace("for i in range(x): a = i"), "loop x {\na := i (was nothing)\n}\n");
  EXPECT_EQ(trace("for i in range(100): a = i"), "loop 100 {\na := i (was nothing)\n}\n");
  EXPECT_EQ(trace("for i in range(2): a = i"), "a := 0 (was nothing)\na := 1 (was 0)\n");
  EXPECT_EQ(trace("while x < 3: a = x"), "while (x < 3) {\na := x (was nothing)\n}\n");
}

TEST(Staging, BreakAndContinue) {
  EXPECT_EQ(trace("for i in range(x):\n  if i > 2: break\n  a = i"),
            "loop x {\nif (i > 2) {\nbreak\n}\na := i (was nothing)\n}\n");
  EXPECT_EQ(trace("for i in range(x):\n  continue\n  a = i"), "loop x {\ncontinue\n}\n");
  EXPECT_EQ(trace("for i in range(x):\n  for j in [1, 2]:\n    if j == 1: break\n  a = j"),
            "loop x {\na := 1 (was nothing)\n}\n");
  EXPECT_EQ(trace("for j in [1, 2]:\n  if x: break"),
            "if x {\nstaged_value_misused: `break` or `continue` of a compile-time loop stands under a condition that "
            "is known only when the kernel runs\n");
  EXPECT_EQ(trace("while x:\n  break"), "while x {\nbreak\n}\n");
}

TEST(Staging, AssertionsAndBuiltins) {
  EXPECT_EQ(trace("assert x > 0, f'x is {1 + 1}'"), "assert (x > 0) x is 2\n");
  EXPECT_EQ(trace("return max(x, 1) + min(1, y) + abs(x) + int(x) + float(y)"),
            "returns ((((max(x, 1) + min(1, y)) + abs(x)) + int(x)) + float(y))\n");
}

TEST(Staging, CalledFunctionsAreTracedToo) {
  EXPECT_EQ(trace("def helper(v):\n  w = v + 1\n  return w\nreturn helper(x)"),
            "w := (x + 1) (was nothing)\nreturns (x + 1)\n");
}

TEST(Functions, HostsSeeParametersAnnotationsAndCaptures) {
  Session session;
  ASSERT_TRUE(
      session.run("K = 7\ndef factory(M, N=4):\n"
                  "  def kernel(A: (M, N), B: K * 2, c=5) -> M: return A, M, len, K\n"
                  "  return kernel\nk = factory(3)\n"));
  auto kernel = session.module->members.find(Name("k"))->get_shared<FunctionObject>();
  ASSERT_EQ(kernel->parameters->size(), 3u);
  EXPECT_EQ(*session.interpreter.repr(*kernel->annotations[0]), "(3, 4)");
  EXPECT_EQ(*session.interpreter.repr(*kernel->annotations[1]), "14");
  EXPECT_FALSE(kernel->annotations[2].has_value());
  EXPECT_EQ(*session.interpreter.repr(*kernel->returns), "3");
  std::string captured;
  for (const auto& [name, value] : kernel->captured()) {
    captured += fmt::format("{}={} ", name.text(), *session.interpreter.repr(value));
  }
  EXPECT_EQ(captured, "M=3 K=7 ");
  auto bound = session.interpreter.bind_arguments(*kernel, CallArgs{{Value(1)}, {{Name("B"), Value(2)}}, Span{}, {}});
  ASSERT_TRUE(bound.ok());
  auto result = session.interpreter.run_function(*kernel, *bound, Span{});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*session.interpreter.repr(*result), "(1, 3, <built-in function len>, 7)");
}

}  // namespace
}  // namespace tilepilot::stage
