// Interpreter: set-up, modules, and the calls of functions. Its operators are in operators.cpp and comparison.cpp.
#include "compiler/stage/python/interpreter.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/evaluation/generator.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/evaluator.h"

namespace tilepilot::stage {

namespace {

constexpr size_t kMostCallNotes = 5;

// All that the function's locals hold is gone when this returns.
Result<Value> run_body(Interpreter& interpreter, FunctionObject& function, std::vector<Value> parameters) {
  Activation activation(*function.layout, function.module, function.globals);
  activation.captured = &function.closure;
  activation.function = &function;
  Evaluator evaluator(interpreter, activation);
  evaluator.bind_parameters(std::move(parameters));
  if (interpreter.staging()) interpreter.staging()->function_entered();
  if (function.lambda_body) return evaluator.eval(*function.lambda_body);
  TRY(evaluator.run(function.definition->body));
  return std::move(activation.result);
}

}  // namespace

void Interpreter::note_call(Diagnostic& diagnostic, const Frame& frame) {
  if (!frame.call_span.valid() || diagnostic.notes.size() >= kMostCallNotes) return;
  diagnostic.note(frame.call_span, fmt::format("`{}` called from here", frame.function.text()));
}

Interpreter::Interpreter(SourceMap& sources, Limits limits)
    : sources_(sources),
      limits_(limits),
      statement_marker_(&own_statement_marker_),
      core_(std::make_unique<Core>(*this)) {
  print_ = [](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  print_error_ = [](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  install_types(*this, *core_);
  install_exceptions(*this, *core_);
  install_number_functions(*this);
  install_iteration_functions(*this);
  install_object_functions(*this);
}

Interpreter::~Interpreter() {
  while (!core_->waiting.empty()) (*core_->waiting.begin())->abandon();
  core_->left.clear();
  core_->handled.clear();
  core_.reset();
}

void Interpreter::add_module(std::string_view dotted_name, std::shared_ptr<ModuleObject> module) {
  core_->watch(module);
  modules_[std::string(dotted_name)] = std::move(module);
}

std::shared_ptr<ModuleObject> Interpreter::find_module(std::string_view dotted_name) const {
  auto found = modules_.find(std::string(dotted_name));
  return found == modules_.end() ? nullptr : found->second;
}

Value* Interpreter::find_builtin(std::string_view name) { return builtins_.find(Name(name)); }

void Interpreter::set_builtin(std::string_view name, Value value) { builtins_.set(Name(name), std::move(value)); }

std::shared_ptr<ClassObject> Interpreter::class_of(const Value& value) {
  if (value.get_if<IntObject>()) return core_->class_for(kIntType, kIntType.name);
  if (auto* object = value.if_object()) {
    if (InstanceObject* instance = (*object)->as_instance()) return instance->class_object();
    if (auto* tuple = value.get_if<TupleObject>(); tuple && tuple->fields) {
      if (auto named = tuple->fields->class_object.lock()) return named;
    }
    if (auto* dict = value.get_if<DictObject>()) return core_->class_for(*dict->flavour, dict->flavour->name);
    if (auto* set = value.get_if<SetObject>(); set && set->frozen) {
      return core_->class_for(kFrozenSet, kFrozenSet.name);
    }
    return core_->class_for((*object)->type(), (*object)->type_name());
  }
  const Type& type = value.if_string()  ? kStrType
                     : value.if_int()   ? kIntType
                     : value.if_float() ? kFloatType
                     : value.if_bool()  ? kBoolType
                                        : kNoneType;
  return core_->class_for(type, type.name);
}

void Interpreter::watch(const ObjectRef& object) { core_->watch(object); }

void Interpreter::set_class(const Type& type, std::shared_ptr<ClassObject> class_object) {
  core_->watch(class_object);
  core_->set_class(type, std::move(class_object));
}

Error Interpreter::out_of_steps(Span span) const {
  return make_error(DiagnosticKind::step_limit, span, fmt::format("evaluation took more than {} steps", limits_.steps),
                    "look for a loop that does not end, or do less work in Python");
}

Status Interpreter::check_stack(Span span) const {
  core_->enter_thread();  // LibTorch asks for the gradients of a GPU's tensors on a thread of its own
  if (!core_->near_stack_end()) return {};
  return make_error(DiagnosticKind::recursion_limit, span, "the program nests too deeply to evaluate",
                    "check that the recursion ends, or use a loop");
}

std::shared_ptr<ModuleObject> Interpreter::make_module(const syntax::ModuleRef& tree, const std::string& module_name) {
  auto module = std::make_shared<ModuleObject>(module_name);
  core_->watch(module);
  module->set("__name__", Value(module_name));
  module->set("__doc__", None{});
  module->set("__package__", None{});
  if (tree->file < 0) return module;
  std::filesystem::path file(sources_.name(tree->file));
  // Scripts find their neighbours by it. A candidate learns nothing of where it lies.
  module->set("__file__", Value((importer_ ? std::filesystem::absolute(file) : file).string()));
  return module;
}

Status Interpreter::run_module_in(const syntax::ModuleRef& tree, const std::shared_ptr<ModuleObject>& module) {
  core_->enter_thread();
  std::shared_ptr<const ScopeLayout> layout = core_->layout_of(tree);
  Activation activation(*layout, tree, module);
  TRY(Evaluator(*this, activation).run(tree->body));
  return {};
}

Result<std::shared_ptr<ModuleObject>> Interpreter::run_module(const syntax::ModuleRef& tree, std::string module_name) {
  std::shared_ptr<ModuleObject> module = make_module(tree, module_name);
  TRY(run_module_in(tree, module));
  return module;
}

Result<Value> Interpreter::evaluate(const syntax::ModuleRef& owner, const syntax::Expr& expression,
                                    ModuleObject& globals) {
  core_->enter_thread();
  std::shared_ptr<const ScopeLayout> layout = resolve_names(expression);
  auto module = std::static_pointer_cast<ModuleObject>(globals.shared_from_this());
  Activation activation(*layout, owner, module);
  return Evaluator(*this, activation).eval(expression);
}

Result<Value> Interpreter::run_function(FunctionObject& function, std::vector<Value> parameters, Span call_span) {
  core_->enter_thread();
  TRY(charge(call_span));
  if (static_cast<int>(frames_.size()) >= limits_.call_depth || core_->near_stack_end()) {
    return make_error(DiagnosticKind::recursion_limit, call_span,
                      fmt::format("calls nest more than {} deep", frames_.size()),
                      "check that the recursion ends, or use a loop");
  }
  if (function.definition && function.definition->is_generator) {
    auto kept = std::static_pointer_cast<FunctionObject>(function.shared_from_this());
    auto run = std::make_unique<GeneratorRun>(*core_, *this, std::move(kept), std::move(parameters));
    auto made = std::make_shared<GeneratorObject>(std::move(run));
    core_->watch(made);
    return Value(std::move(made));
  }
  // What the caller's statement goes on to do is its own again.
  const int32_t file = statement_marker_->file;
  const uint32_t offset = statement_marker_->offset;
  frames_.push_back({function.name, call_span});
  auto result = run_body(*this, function, std::move(parameters));
  frames_.pop_back();
  statement_marker_->file = file;
  statement_marker_->offset = offset;
  if (!core_->left.empty()) TRY(core_->end_left_generators());
  if (result.ok()) return result;
  Error error = std::move(result).take_error();
  note_call(*error, {function.name, call_span});
  return error;
}

Result<Value> FunctionObject::call(Interpreter& interpreter, CallArgs args) {
  Span span = args.span;
  std::vector<Value> values = TRY(interpreter.bind_arguments(*this, std::move(args)));
  return interpreter.run_function(*this, std::move(values), span);
}

Result<Value> Interpreter::call(const Value& callee, CallArgs args) {
  if (core_->near_stack_end()) TRY(check_stack(args.span));
  if (auto* object = callee.if_object()) return (*object)->call(*this, std::move(args));
  return make_error(DiagnosticKind::type_error, args.span,
                    fmt::format("'{}' object is not callable", callee.type_name()));
}

}  // namespace tilepilot::stage
