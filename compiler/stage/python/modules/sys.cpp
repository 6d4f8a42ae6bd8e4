// `sys`: the arguments, where imports are looked for, the streams, and the end of the program.
#include <filesystem>
#include <limits>

#include "compiler/stage/python/containers/named_tuple.h"
#include "compiler/stage/python/modules/system.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

const MethodTable& stream_methods();

// sys.stdout or sys.stderr.
struct StreamObject final : TypedObject<StreamObject> {
  static constexpr Type kType{"TextIOWrapper"};
  explicit StreamObject(bool is_error_) : is_error(is_error_) {}
  bool is_callable() const override { return false; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override {
    return stream_methods().bind(Value(shared_from_this()), name, span);
  }
  const bool is_error;
};

Result<Value> write(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"write", {"text"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::string text = TRY(read.text(0));
  if (self.get_if<StreamObject>()->is_error)
    interpreter.print_error(text);
  else
    interpreter.print(text);
  return Value(static_cast<int64_t>(text.size()));
}

Result<Value> flush(Interpreter&, const Value&, CallArgs&) { return Value(); }
Result<Value> is_terminal(Interpreter&, const Value&, CallArgs&) { return Value(false); }

const MethodTable& stream_methods() {
  static const MethodTable kMethods{{"write", write}, {"flush", flush}, {"isatty", is_terminal}};
  return kMethods;
}

Result<Value> exit_program(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"exit", {"status"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  CallArgs made{{}, {}, args.span, {}};
  if (read[0]) made.positional.push_back(*read[0]);
  Value exception = TRY(interpreter.call(*interpreter.find_builtin("SystemExit"), std::move(made)));
  return error_of(interpreter, exception, args.span);
}

// The Python whose rules the evaluator follows.
Result<Value> version_info(Interpreter& interpreter) {
  auto version = TRY(make_class(interpreter, Name("sys.version_info"), {}, Span{}));
  make_named_tuple(version, {Name("major"), Name("minor"), Name("micro"), Name("releaselevel"), Name("serial")}, {});
  return interpreter.call(Value(version), CallArgs{{3, 11, 0, "final", 0}, {}, Span{}, {}});
}

Value argument_list(const Script& script) {
  std::vector<Value> arguments{Value(script.path)};
  for (const std::string& each : script.arguments) arguments.emplace_back(each);
  return make_list(std::move(arguments));
}

}  // namespace

void fill_sys(Interpreter& interpreter, ModuleObject& module, const Script& script) {
  module.set("argv", argument_list(script));
  module.set("path", make_list({Value(std::filesystem::absolute(script.path).parent_path().string())}));
  module.set("stdout", std::make_shared<StreamObject>(false));
  module.set("stderr", std::make_shared<StreamObject>(true));
  module.function("exit", exit_program);
  if (auto version = version_info(interpreter); version.ok()) module.set("version_info", *std::move(version));
  module.set("version", Value("3.11.0 (TilePilot)"));
  module.set("platform", Value("linux"));
  module.set("byteorder", Value("little"));
  module.set("executable", Value("tilepilot"));
  module.set("maxsize", Value(std::numeric_limits<int64_t>::max()));
}

}  // namespace tilepilot::stage
