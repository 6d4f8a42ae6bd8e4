#include "python/extension/python_object.h"

#include <algorithm>
#include <unordered_map>

#include "python/extension/conversion.h"
#include "python/extension/errors.h"
#include "python/extension/function_source.h"
#include "python/extension/python_reads.h"
#include "python/extension/session.h"

namespace tilepilot::package {
namespace {

using stage::BinaryOp;
using stage::CompareOp;
using stage::UnaryOp;

// Runs a piece of Python for the program at `span`.
template <class Body>
auto in_python(Span span, Body body) -> Result<decltype(body())> {
  Session& session = Session::get();
  const Span outer = std::exchange(session.span, span);
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      session.span = outer;
      return {};
    } else {
      auto result = body();
      session.span = outer;
      return result;
    }
  } catch (nb::python_error& exception) {
    session.span = outer;
    return error_of(exception, span);
  } catch (const std::exception& exception) {
    session.span = outer;
    return make_error(DiagnosticKind::type_error, span, exception.what());
  }
}

nb::object taken(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}
void checked(int status) {
  if (status < 0) throw nb::python_error();
}

nb::str text_of(Name name) { return nb::str(name.text().data(), name.text().size()); }

PyObject* apply(BinaryOp op, PyObject* a, PyObject* b) {
  switch (op) {
    case BinaryOp::add:
      return PyNumber_Add(a, b);
    case BinaryOp::sub:
      return PyNumber_Subtract(a, b);
    case BinaryOp::mul:
      return PyNumber_Multiply(a, b);
    case BinaryOp::matmul:
      return PyNumber_MatrixMultiply(a, b);
    case BinaryOp::div:
      return PyNumber_TrueDivide(a, b);
    case BinaryOp::floor_div:
      return PyNumber_FloorDivide(a, b);
    case BinaryOp::mod:
      return PyNumber_Remainder(a, b);
    case BinaryOp::pow:
      return PyNumber_Power(a, b, Py_None);
    case BinaryOp::shl:
      return PyNumber_Lshift(a, b);
    case BinaryOp::shr:
      return PyNumber_Rshift(a, b);
    case BinaryOp::bit_and:
      return PyNumber_And(a, b);
    case BinaryOp::bit_or:
      return PyNumber_Or(a, b);
    case BinaryOp::bit_xor:
      return PyNumber_Xor(a, b);
  }
  return nullptr;
}

std::optional<int> rich_comparison(CompareOp op) {
  switch (op) {
    case CompareOp::eq:
      return Py_EQ;
    case CompareOp::ne:
      return Py_NE;
    case CompareOp::lt:
      return Py_LT;
    case CompareOp::le:
      return Py_LE;
    case CompareOp::gt:
      return Py_GT;
    case CompareOp::ge:
      return Py_GE;
    default:
      return std::nullopt;
  }
}

class PythonIterator final : public stage::Iterator {
 public:
  PythonIterator(nb::object source, Span span) : source_(std::move(source)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    return in_python(span_, [&]() -> std::optional<Value> {
      PyObject* item = PyIter_Next(source_.ptr());
      if (item == nullptr && PyErr_Occurred()) throw nb::python_error();
      return item == nullptr ? std::nullopt : std::optional<Value>(to_value(nb::steal(item)));
    });
  }

 private:
  nb::object source_;
  Span span_;
};

using Known = std::unordered_map<PyObject*, std::weak_ptr<PythonObject>>;

// Forgets those that nobody holds, once in a while.
void prune(Known& known) {
  static size_t next = 256;
  if (known.size() < next) return;
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  next = std::max<size_t>(256, 2 * known.size());
}

}  // namespace

std::shared_ptr<PythonObject> python_object(nb::handle object) {
  static auto* known = new Known();
  std::weak_ptr<PythonObject>& entry = (*known)[object.ptr()];
  if (auto found = entry.lock()) return found;
  auto made = std::make_shared<PythonObject>(nb::borrow(object));
  entry = made;
  prune(*known);
  return made;
}

Result<Value> PythonObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  const int found = PyObject_HasAttr(object.ptr(), text_of(name).ptr());
  if (found == 1)
    return in_python(span, [&] {
      const nb::str text = text_of(name);
      const nb::object value = taken(PyObject_GetAttr(object.ptr(), text.ptr()));
      note_read({PythonReads::Kind::attribute, object, text, value});
      return to_value(value);
    });
  note_read({PythonReads::Kind::attribute, object, text_of(name), nb::object()});
  return stage::Object::get_attribute(interpreter, name, span);
}

Status PythonObject::set_attribute(Interpreter&, Name name, Value value, Span span) {
  return in_python(span, [&] { checked(PyObject_SetAttr(object.ptr(), text_of(name).ptr(), to_python(value).ptr())); });
}

Result<Value> PythonObject::call(Interpreter& interpreter, stage::CallArgs args) {
  if (auto function = TRY(function_from_source(object, args.span))) return function->call(interpreter, std::move(args));
  return in_python(args.span, [&] {
    const nb::object positional = taken(PyTuple_New(static_cast<Py_ssize_t>(args.positional.size())));
    for (size_t i = 0; i < args.positional.size(); ++i)
      PyTuple_SetItem(positional.ptr(), static_cast<Py_ssize_t>(i), to_python(args.positional[i]).release().ptr());
    nb::dict keywords;
    for (const auto& [name, value] : args.keywords) keywords[text_of(name)] = to_python(value);
    return to_value(taken(PyObject_Call(object.ptr(), positional.ptr(), keywords.ptr())));
  });
}

Result<Value> PythonObject::get_item(Interpreter&, const Value& index, Span span) {
  return in_python(span, [&] {
    const nb::object key = to_python(index), value = taken(PyObject_GetItem(object.ptr(), key.ptr()));
    note_read({PythonReads::Kind::item, object, key, value});
    return to_value(value);
  });
}

Status PythonObject::set_item(Interpreter&, const Value& index, Value value, Span span) {
  return in_python(span,
                   [&] { checked(PyObject_SetItem(object.ptr(), to_python(index).ptr(), to_python(value).ptr())); });
}

Status PythonObject::delete_item(Interpreter&, const Value& index, Span span) {
  return in_python(span, [&] { checked(PyObject_DelItem(object.ptr(), to_python(index).ptr())); });
}

Result<int64_t> PythonObject::length(Interpreter&, Span span) {
  return in_python(span, [&] {
    const Py_ssize_t count = PyObject_Size(object.ptr());
    if (count < 0) throw nb::python_error();
    note_items(object);
    return static_cast<int64_t>(count);
  });
}

Result<std::unique_ptr<stage::Iterator>> PythonObject::iterate(Interpreter&, Span span) {
  return in_python(span, [&]() -> std::unique_ptr<stage::Iterator> {
    note_items(object);
    return std::make_unique<PythonIterator>(taken(PyObject_GetIter(object.ptr())), span);
  });
}

Result<bool> PythonObject::contains(Interpreter&, const Value& item, Span span) {
  return in_python(span, [&] {
    const int found = PySequence_Contains(object.ptr(), to_python(item).ptr());
    checked(found);
    note_items(object);
    return found == 1;
  });
}

Result<bool> PythonObject::truth(Interpreter&, Span span) {
  return in_python(span, [&] {
    const int holds = PyObject_IsTrue(object.ptr());
    checked(holds);
    return holds == 1;
  });
}

Result<std::string> PythonObject::repr(Interpreter&) {
  return in_python({}, [&] { return nb::cast<std::string>(nb::repr(object)); });
}

Result<std::string> PythonObject::str(Interpreter&) {
  return in_python({}, [&] { return nb::cast<std::string>(nb::str(object)); });
}

Result<std::optional<Value>> PythonObject::unary(Interpreter&, UnaryOp op, Span span) {
  if (op == UnaryOp::logical_not) return std::optional<Value>();
  return in_python(span, [&] {
    PyObject* self = object.ptr();
    return std::optional<Value>(to_value(taken(op == UnaryOp::plus    ? PyNumber_Positive(self)
                                               : op == UnaryOp::minus ? PyNumber_Negative(self)
                                                                      : PyNumber_Invert(self))));
  });
}

Result<std::optional<Value>> PythonObject::binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                                  Span span) {
  return in_python(span, [&] {
    const nb::object operand = to_python(other);
    PyObject *left = reflected ? operand.ptr() : object.ptr(), *right = reflected ? object.ptr() : operand.ptr();
    return std::optional<Value>(to_value(taken(apply(op, left, right))));
  });
}

Result<std::optional<Value>> PythonObject::compare(Interpreter&, CompareOp op, const Value& other, Span span) {
  const std::optional<int> comparison = rich_comparison(op);
  if (!comparison) return std::optional<Value>();
  return in_python(span, [&] {
    return std::optional<Value>(
        to_value(taken(PyObject_RichCompare(object.ptr(), to_python(other).ptr(), *comparison))));
  });
}

Result<size_t> PythonObject::hash(Interpreter&, Span span) {
  return in_python(span, [&] {
    const Py_hash_t hash = PyObject_Hash(object.ptr());
    if (hash == -1 && PyErr_Occurred()) throw nb::python_error();
    return static_cast<size_t>(hash);
  });
}

Result<Value> PythonObject::enter(Interpreter&, Span span) {
  return in_python(span, [&] { return to_value(object.attr("__enter__")()); });
}

Status PythonObject::exit(Interpreter&, Span span) {
  return in_python(span, [&] { object.attr("__exit__")(nb::none(), nb::none(), nb::none()); });
}

}  // namespace tilepilot::package
