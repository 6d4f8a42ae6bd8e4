#include "compiler/stage/python/evaluation/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/drop.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

GeneratorRun::GeneratorRun(Core& core, Interpreter& interpreter, std::shared_ptr<FunctionObject> function,
                           std::vector<Value> parameters)
    : core_(core), interpreter_(interpreter), function_(std::move(function)), parameters_(std::move(parameters)) {}

GeneratorRun::~GeneratorRun() {
  if (fibre_) abandon();
}

Status GeneratorRun::start(Span span) {
  FibreStack stack = TRY(core_.take_stack(span));
  fibre_ = std::make_unique<Fibre>(std::move(stack), [this] { run_body(); });
  core_.waiting.insert(this);
  return {};
}

void GeneratorRun::run_body() {
  Activation activation(*function_->layout, function_->module, function_->globals);
  activation.captured = &function_->closure;
  activation.function = function_.get();
  activation.generator = this;
  Evaluator evaluator(interpreter_, activation);
  evaluator.bind_parameters(std::move(parameters_));
  auto flow = evaluator.run(function_->definition->body);
  if (flow.ok())
    result_ = std::move(activation.result);
  else
    error_ = std::move(flow).take_error();
}

// What belongs to the body of the interpreter's state comes and goes with it.
void GeneratorRun::switch_to_body(Span span) {
  const size_t base = core_.handled.size();
  std::move(handled_.begin(), handled_.end(), std::back_inserter(core_.handled));
  handled_.clear();
  core_.push_frame(function_->name, span);
  if (interpreter_.staging()) interpreter_.staging()->function_entered();
  const uintptr_t floor = core_.exchange_stack_floor(fibre_->floor());
  running_ = true;
  fibre_->resume();
  running_ = false;
  core_.exchange_stack_floor(floor);
  core_.pop_frame();
  auto own = core_.handled.begin() + static_cast<std::ptrdiff_t>(base);
  std::move(own, core_.handled.end(), std::back_inserter(handled_));
  core_.handled.erase(own, core_.handled.end());
}

Result<std::optional<Value>> GeneratorRun::resume(Message message, Span span) {
  if (running_) return make_error(DiagnosticKind::value_error, span, "generator already executing");
  if (!fibre_ && message.thrown) ended_ = true;
  if (ended_) {
    result_ = {};  // it was told once
    if (message.thrown) return std::move(message.thrown);
    return std::optional<Value>();
  }
  core_.enter_thread();
  TRY(interpreter_.charge(span));
  TRY(interpreter_.check_stack(span));
  if (static_cast<int>(interpreter_.frames().size()) >= interpreter_.limits().call_depth)
    return make_error(DiagnosticKind::recursion_limit, span,
                      fmt::format("calls nest more than {} deep", interpreter_.frames().size()),
                      "check that the recursion ends, or use a loop");
  if (!fibre_) {
    if (!message.sent.is_none()) return type_error(span, "can't send non-None value to a just-started generator");
    TRY(start(span));
  }
  message_ = std::move(message);
  yielded_.reset();
  switch_to_body(span);
  if (!fibre_->finished()) return std::move(yielded_);
  if (Error error = end(span)) return error;
  return std::optional<Value>();
}

// The body has ended: its stack is free, its error is the caller's.
Error GeneratorRun::end(Span span) {
  ended_ = true;
  core_.waiting.erase(this);
  core_.give_stack(std::move(*fibre_).take_stack());
  fibre_.reset();
  if (!error_) return nullptr;
  if (is_catchable(error_->kind) && is_raised(interpreter_, *error_, "StopIteration"))
    return interpreter_.raise("RuntimeError", "generator raised StopIteration", error_->span);
  Interpreter::note_call(*error_, {function_->name, span});
  return std::move(error_);
}

Result<Value> GeneratorRun::yield(Value value, Span) {
  yielded_ = std::move(value);
  fibre_->suspend();
  if (message_.thrown) return std::move(message_.thrown);
  return std::move(message_.sent);
}

Status GeneratorRun::close(Span span) {
  auto outcome = resume({{}, interpreter_.raise("GeneratorExit", "", span)}, span);
  if (!outcome.ok()) {
    Error error = std::move(outcome).take_error();
    if (is_catchable(error->kind) && is_raised(interpreter_, *error, "GeneratorExit")) return {};
    return error;
  }
  if (*outcome) return interpreter_.raise("RuntimeError", "generator ignored GeneratorExit", span);
  return {};
}

void GeneratorRun::abandon() {
  // No statement of the program runs any more, not even in a `finally`: the first one finds its budget spent.
  const int64_t steps = core_.exchange_steps(interpreter_.limits().steps);
  message_ = {{}, make_error(DiagnosticKind::step_limit, Span{}, "the program ends while a generator waits")};
  switch_to_body(Span{});
  end(Span{});
  core_.exchange_steps(steps);
}

namespace {

class GeneratorIterator final : public Iterator {
 public:
  GeneratorIterator(std::shared_ptr<GeneratorObject> generator, Span span)
      : generator_(std::move(generator)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter&) override { return generator_->run->resume({}, span_); }

 private:
  std::shared_ptr<GeneratorObject> generator_;
  Span span_;
};

using Self = std::shared_ptr<GeneratorObject>;

Result<Value> next(const Self& self, CallArgs& args) {
  static constexpr Signature kSignature{"__next__", {}, 0};
  TRY(Arguments::read(args, kSignature));
  return self->resume({}, args.span);
}

Result<Value> send(const Self& self, CallArgs& args) {
  static constexpr Signature kSignature{"send", {"value"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return self->resume({*read[0], {}}, args.span);
}

// generator.throw(exception), or a class of exceptions; the old forms (type, value, traceback) take the value.
Result<Value> throw_in(const Self& self, CallArgs& args) {
  static constexpr Signature kSignature{"throw", {"type", "value", "traceback"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Interpreter& interpreter = self->run->interpreter();
  Value exception = read[1] && !read[1]->is_none() ? *read[1] : *read[0];
  if (auto* class_object = exception.get_if<ClassObject>())
    exception = TRY(class_object->call(interpreter, CallArgs{{}, {}, args.span, {}}));
  if (!is_exception(interpreter, exception))
    return type_error(args.span, "exceptions must be classes or instances deriving from BaseException");
  return self->resume({{}, error_of(interpreter, exception, args.span)}, args.span);
}

Result<Value> close(const Self& self, CallArgs& args) {
  static constexpr Signature kSignature{"close", {}, 0};
  TRY(Arguments::read(args, kSignature));
  TRY(self->run->close(args.span));
  return Value();
}

Result<Value> itself(const Self& self, CallArgs&) { return Value(self); }

struct Method {
  std::string_view name;
  Result<Value> (*body)(const Self&, CallArgs&);
};
constexpr Method kMethods[] = {
    {"__next__", next}, {"send", send}, {"throw", throw_in}, {"close", close}, {"__iter__", itself}};

}  // namespace

GeneratorObject::~GeneratorObject() {
  // Its `finally` clauses run, but not here, where what refers to it is half gone. One that runs holds itself.
  if (run && run->under_way()) run->core().left.push_back(std::move(run));
  drop(std::move(run));
}

void GeneratorObject::release() {
  if (run) run->forget_arguments();
}

Result<Value> GeneratorObject::get_attribute(Interpreter&, Name name, Span span) {
  if (name.text() == "__name__") return Value(run->name().text());
  auto self = std::static_pointer_cast<GeneratorObject>(shared_from_this());
  for (const Method& method : kMethods) {
    if (name.text() != method.name) continue;
    return make_builtin(name.str(),
                        [self, body = method.body](Interpreter&, CallArgs& args) { return body(self, args); });
  }
  return no_attribute(type_name(), name, span, {"send", "throw", "close"});
}

Result<std::unique_ptr<Iterator>> GeneratorObject::iterate(Interpreter&, Span span) {
  return std::unique_ptr<Iterator>(
      std::make_unique<GeneratorIterator>(std::static_pointer_cast<GeneratorObject>(shared_from_this()), span));
}

Result<Value> GeneratorObject::resume(GeneratorRun::Message message, Span span) {
  if (std::optional<Value> item = TRY(run->resume(std::move(message), span))) return *std::move(item);
  Interpreter& interpreter = run->interpreter();
  Error error = interpreter.raise("StopIteration", "", span);
  if (!run->result().is_none()) error->thrown = make_exception(interpreter, "StopIteration", {run->result()});
  return error;
}

// `yield from`: what comes to this generator goes on to the inner one, and its result is the value.
Result<Value> Evaluator::delegate(const Value& iterable, Span span) {
  auto inner = iterable.get_shared<GeneratorObject>();
  if (!inner) {
    std::unique_ptr<Iterator> iterator = TRY(interpreter_.iterate(iterable, span));
    while (std::optional<Value> item = TRY(iterator->next(interpreter_))) {
      TRY(interpreter_.charge(span));
      const Value sent = TRY(activation_.generator->yield(*std::move(item), span));
      if (sent.is_none()) continue;
      auto shown = fmt::format("{}{}", iterable.type_name(), iterable.get_if<IteratorObject>() ? "" : "_iterator");
      return no_attribute(shown, Name("send"), span);
    }
    return Value();
  }
  GeneratorRun::Message message;
  while (std::optional<Value> item = TRY(inner->run->resume(std::move(message), span))) {
    message = {};
    auto reply = activation_.generator->yield(*std::move(item), span);
    if (reply.ok()) {
      message.sent = *std::move(reply);
      continue;
    }
    Error error = std::move(reply).take_error();
    if (!is_catchable(error->kind)) return error;
    if (is_raised(interpreter_, *error, "GeneratorExit")) {
      TRY(inner->run->close(span));
      return error;
    }
    message.thrown = std::move(error);
  }
  return inner->run->result();
}

Result<Value> Evaluator::visit(const syntax::YieldExpr& node, Span span) {
  if (!activation_.generator) {
    return make_error(DiagnosticKind::unsupported_syntax, span, "`yield` cannot stand here");
  }
  if (activation_.staged_bodies > 0)
    return make_error(DiagnosticKind::staged_value_misused, span,
                      "`yield` stands in a loop or branch that is known only when the kernel runs",
                      "loop over a list or a constant range, or make a `T.macro` of the function");
  Value value;
  if (node.value) value = TRY(eval(*node.value));
  return node.from ? delegate(value, span) : activation_.generator->yield(std::move(value), span);
}

Status Core::end_left_generators() {
  while (!left.empty()) {
    std::unique_ptr<GeneratorRun> run = std::move(left.back());
    left.pop_back();
    Status closed = run->close(Span{});
    if (!closed.ok() && !is_catchable(closed.error().kind)) return closed;
  }
  return {};
}

}  // namespace tilepilot::stage
