#include "python/extension/function_source.h"

#include <fmt/format.h>

#include <map>

#include "compiler/stage/python/evaluation/scope.h"
#include "compiler/syntax/parser.h"
#include "python/extension/conversion.h"
#include "python/extension/errors.h"
#include "python/extension/python_reads.h"
#include "python/extension/session.h"

namespace tilepilot::package {
namespace {

using stage::FunctionObject;
using stage::Name;
using stage::Value;
using syntax::FunctionDef;

// The tree of a code object.
struct Source {
  nb::object code;  // kept, so that its address is not used again
  syntax::ModuleRef tree;
  std::shared_ptr<const stage::ScopeLayout> layout;
  const FunctionDef* definition = nullptr;  // null: there is no source that holds it
};

struct Text {
  std::string file, lines;
  long first_line = 1;
};

// The statement in a file of its own whose lines and columns are those of the whole file. Null: Python has no source.
std::optional<Text> find_text(nb::handle function) {
  try {
    const nb::object found = nb::module_::import_("inspect").attr("getsourcelines")(function);
    Text text;
    text.file = nb::cast<std::string>(function.attr("__code__").attr("co_filename"));
    text.first_line = nb::cast<long>(found[1]);
    for (nb::handle line : nb::iter(found[0])) text.lines += nb::cast<std::string>(line);
    if (text.lines.empty() || text.lines.back() != '\n') text.lines += '\n';
    return text;
  } catch (nb::python_error&) { return std::nullopt; }
}

std::string in_place(const Text& text) {
  const bool is_indented = text.lines[0] == ' ' || text.lines[0] == '\t';
  // An indented statement stands below another one, so that there is a line for what it needs around it.
  const std::string above = is_indented ? "if 1:\n" : "";
  const long empty_lines = std::max(0L, text.first_line - 1 - (is_indented ? 1 : 0));
  return std::string(static_cast<size_t>(empty_lines), '\n') + above + text.lines;
}

const FunctionDef* first_function(const syntax::Body& body) {
  if (body.empty()) return nullptr;
  if (auto* branch = std::get_if<syntax::IfStmt>(&body.front().node)) return first_function(branch->then);
  return std::get_if<FunctionDef>(&body.front().node);
}

Result<Source> read_source(nb::handle function, const nb::object& code) {
  Source source{code, nullptr, nullptr, nullptr};
  const std::optional<Text> text = find_text(function);
  if (!text) return source;
  Session& session = Session::get();
  DiagnosticList diagnostics;
  source.tree = syntax::parse(session.sources(), session.sources().add(text->file, in_place(*text)), diagnostics);
  if (!source.tree) {
    for (const Diagnostic& diagnostic : diagnostics.items())
      if (diagnostic.severity() == Severity::error) return make_error(diagnostic);
    return source;
  }
  const FunctionDef* definition = first_function(source.tree->body);
  const std::string name = nb::cast<std::string>(code.attr("co_name"));
  if (definition == nullptr || definition->name.text() != name) return source;
  source.layout = stage::resolve_names(*source.tree);
  source.definition = definition;
  return source;
}

Result<const Source*> source_of(nb::handle function) {
  static auto* known = new std::map<PyObject*, Source>();
  const nb::object code = function.attr("__code__");
  if (const auto found = known->find(code.ptr()); found != known->end()) return &found->second;
  Source source = TRY(read_source(function, code));
  return &known->emplace(code.ptr(), std::move(source)).first->second;
}

// A string that stands for an annotation (`from __future__ import annotations`) is evaluated where the function is.
nb::object annotation_value(nb::handle function, const nb::object& annotation) {
  if (!nb::isinstance<nb::str>(annotation)) return annotation;
  return nb::module_::import_("tilepilot.annotations").attr("evaluate")(function, annotation);
}

void add_annotations(FunctionObject& made, nb::handle function) {
  const nb::dict annotations = nb::cast<nb::dict>(function.attr("__annotations__"));
  for (const syntax::Parameter& parameter : *made.parameters) {
    const nb::str name(parameter.name.text().data(), parameter.name.text().size());
    const bool given = annotations.contains(name);
    made.annotations.push_back(given ? std::optional<Value>(to_value(annotation_value(function, annotations[name])))
                                     : std::nullopt);
  }
}

void add_defaults(FunctionObject& made, nb::handle function) {
  using Kind = syntax::Parameter::Kind;
  const nb::object defaults = function.attr("__defaults__"), by_name = function.attr("__kwdefaults__");
  size_t positional = 0, count = defaults.is_none() ? 0 : nb::len(defaults);
  for (const syntax::Parameter& parameter : *made.parameters)
    positional += parameter.kind == Kind::positional || parameter.kind == Kind::positional_only;
  made.only_positional = positional == made.parameters->size();
  size_t at = 0;
  for (const syntax::Parameter& parameter : *made.parameters) {
    std::optional<Value> value;
    const nb::str name(parameter.name.text().data(), parameter.name.text().size());
    if (parameter.kind == Kind::positional || parameter.kind == Kind::positional_only) {
      if (at + count >= positional) value = to_value(defaults[at + count - positional]);
      ++at;
    } else if (parameter.kind == Kind::keyword_only && !by_name.is_none() &&
               nb::cast<bool>(by_name.attr("__contains__")(name))) {
      value = to_value(by_name[name]);
    }
    made.defaults.push_back(std::move(value));
  }
}

// The same as a value of the language.
std::optional<Value> outer_value(nb::handle function, std::string_view name) {
  const nb::str text(name.data(), name.size());
  const nb::object found = outer_object(function, text);
  note_read({PythonReads::Kind::outer_name, nb::borrow(function), text, found});
  return found.is_valid() ? std::optional<Value>(to_value(found)) : std::nullopt;
}

// Names outside are looked up when the program comes to them. Those that hide a built-in are there from the beginning,
// since the evaluator looks among its built-ins first.
void see_names(FunctionObject& made, nb::handle function) {
  stage::Interpreter& interpreter = Session::get().interpreter();
  for (const Name name : made.layout->global_reads) {
    if (interpreter.find_builtin(name.text()) == nullptr) continue;
    if (auto value = outer_value(function, name.text())) made.globals->members.set(name, *std::move(value));
  }
  made.globals->missing = [kept = nb::borrow(function)](stage::Interpreter&, Name name,
                                                        Span span) -> Result<std::optional<Value>> {
    try {
      return outer_value(kept, name.text());
    } catch (nb::python_error& exception) { return error_of(exception, span); }
  };
}

Result<std::shared_ptr<FunctionObject>> make_function(const Source& source, nb::handle function) {
  Session& session = Session::get();
  auto made = std::make_shared<FunctionObject>();
  made->name = source.definition->name;
  made->module = source.tree;
  made->parameters = &source.definition->parameters;
  made->definition = source.definition;
  made->span = source.definition->name_span;
  made->layout = source.layout->nested(source.definition);
  made->globals = session.interpreter().make_module(
      source.tree, nb::cast<std::string>(nb::str(nb::object(function.attr("__module__")))));
  try {
    add_defaults(*made, function);
    add_annotations(*made, function);
    see_names(*made, function);
  } catch (nb::python_error& exception) { return error_of(exception, made->span); }
  return made;
}

}  // namespace

nb::object outer_object(nb::handle function, nb::handle name) {
  const nb::object cells = function.attr("__closure__"), names = function.attr("__code__").attr("co_freevars");
  for (size_t i = 0; !cells.is_none() && i < nb::len(names); ++i)
    if (nb::object(names[i]).equal(name)) return nb::steal(PyCell_Get(nb::object(cells[i]).ptr()));
  PyObject* found = PyDict_GetItem(function.attr("__globals__").ptr(), name.ptr());
  if (found == nullptr) found = PyDict_GetItem(PyEval_GetBuiltins(), name.ptr());
  return nb::borrow(found);
}

Result<std::shared_ptr<FunctionObject>> function_from_source(nb::handle function, Span span) {
  constexpr int kGenerators = 0x20 | 0x80 | 0x200;  // CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
  if (!PyFunction_Check(function.ptr())) return std::shared_ptr<FunctionObject>();
  if (nb::hasattr(function, "__wrapped__")) return std::shared_ptr<FunctionObject>();
  try {
    if (nb::cast<int>(function.attr("__code__").attr("co_flags")) & kGenerators)
      return std::shared_ptr<FunctionObject>();
    const Result<const Source*> source = source_of(function);
    if (!source.ok() || (*source)->definition == nullptr || !(*source)->definition->decorators.empty())
      return std::shared_ptr<FunctionObject>();
    return make_function(**source, function);
  } catch (nb::python_error& exception) { return error_of(exception, span); }
}

Result<std::shared_ptr<FunctionObject>> decorated_function(nb::handle function) {
  if (!PyFunction_Check(function.ptr()))
    return make_error(DiagnosticKind::invalid_jit, {},
                      fmt::format("a function is wanted here, not a `{}`", Py_TYPE(function.ptr())->tp_name));
  const Source* source = TRY(source_of(function));
  if (source->definition != nullptr) return make_function(*source, function);
  return make_error(DiagnosticKind::invalid_jit, {},
                    fmt::format("the source of `{}` cannot be found", nb::cast<std::string>(function.attr("__name__"))),
                    "define it with `def` in a file or a notebook: a tile program is compiled from its source");
}

}  // namespace tilepilot::package
