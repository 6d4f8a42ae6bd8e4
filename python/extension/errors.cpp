#include "python/extension/errors.h"

#include <fmt/format.h>

#include "compiler/diagnostics/render.h"
#include "python/extension/session.h"

namespace tilepilot::package {
namespace {

// The attribute of an exception of ours that holds its diagnostic, so that an error which passes through Python code
// comes out as it went in.
constexpr const char* kOrigin = "_diagnostic";

nb::capsule kept(const Diagnostic& diagnostic) {
  return nb::capsule(new Diagnostic(diagnostic), [](void* held) noexcept { delete static_cast<Diagnostic*>(held); });
}

nb::module_ errors() { return nb::module_::import_("tilepilot.errors"); }

bool is_exception(const nb::object& value) {
  return value.is_valid() && PyObject_IsInstance(value.ptr(), PyExc_Exception) == 1;
}

}  // namespace

void raise(const Diagnostic& diagnostic) {
  Session& session = Session::get();
  nb::object cause = std::exchange(session.python_exception, nb::object());
  if (diagnostic.kind != DiagnosticKind::raised) cause.reset();
  if (cause.is_valid() && !is_exception(cause)) {  // such as KeyboardInterrupt
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(cause.ptr())), cause.ptr());
    throw nb::python_error();
  }
  const std::string kind(info(diagnostic.kind).name);
  const std::string text = render(session.sources(), diagnostic);
  const std::string json = render_json(session.sources(), diagnostic);
  const nb::object exception = errors().attr("exception_for")(kind.c_str(), text.c_str(), json.c_str());
  if (cause.is_valid()) { PyException_SetCause(exception.ptr(), nb::object(cause).release().ptr()); }
  exception.attr(kOrigin) = kept(diagnostic);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

void raise(DiagnosticKind kind, std::string_view message, std::string_view hint) {
  raise(*make_error(kind, {}, message, hint));
}

Error error_of(nb::python_error& exception, Span span) {
  const nb::object value = nb::borrow(exception.value());
  const nb::object origin = nb::getattr(value, kOrigin, nb::none());
  if (nb::isinstance<nb::capsule>(origin)) {
    Diagnostic diagnostic = *static_cast<const Diagnostic*>(nb::cast<nb::capsule>(origin).data());
    if (!diagnostic.span.valid()) diagnostic.span = span;
    return make_error(std::move(diagnostic));
  }
  Session& session = Session::get();
  session.python_exception = value;
  const std::string name = nb::cast<std::string>(exception.type().attr("__name__"));
  const std::string text = nb::cast<std::string>(nb::str(value));
  const bool known = session.interpreter().find_builtin(name) != nullptr && is_exception(value);
  Error error = session.interpreter().raise(known ? name : "Exception", text, span);
  error->kind = DiagnosticKind::raised;
  error->message = text.empty() ? fmt::format("Python raised {}", name) : fmt::format("{}: {}", name, text);
  return error;
}

void tell_warnings() {
  static size_t told = 0;
  Session& session = Session::get();
  const auto& all = session.interpreter().diagnostics().items();
  while (told < all.size()) {
    const Diagnostic& diagnostic = all[told++];
    if (diagnostic.severity() != Severity::warning) continue;
    errors().attr("warn")(render(session.sources(), diagnostic).c_str());
  }
}

}  // namespace tilepilot::package
