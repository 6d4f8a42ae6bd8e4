#include "python/extension/conversion.h"

#include <map>
#include <optional>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "python/extension/errors.h"
#include "python/extension/imports.h"
#include "python/extension/python_object.h"
#include "python/extension/session.h"
#include "python/extension/tensors.h"

namespace tilepilot::package {
namespace {

using stage::Value;

Value integer_value(nb::handle number) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (small == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow == 0) return Value(static_cast<int64_t>(small));
  const std::string hex = nb::cast<std::string>(nb::str(nb::steal(PyNumber_ToBase(number.ptr(), 16))));
  const bool negative = hex[0] == '-';
  auto magnitude = stage::BigInteger::parse(std::string_view(hex).substr(negative ? 3 : 2), 16);
  return stage::make_integer(negative ? -*magnitude : *magnitude);
}

Value value_at(nb::handle object, int depth);

std::vector<Value> items_of(nb::handle sequence, int depth) {
  std::vector<Value> items;
  for (nb::handle item : nb::iter(sequence)) items.push_back(value_at(item, depth + 1));
  return items;
}

Value dict_value(nb::handle dict, int depth) {
  Session& session = Session::get();
  auto made = std::make_shared<stage::DictObject>();
  for (auto [key, value] : nb::cast<nb::dict>(dict))
    check(made->table.set(session.interpreter(), value_at(key, depth + 1), value_at(value, depth + 1), session.span));
  return Value(std::move(made));
}

// `max`, `range`, `int`: the evaluator's own.
const Value* builtin_value(nb::handle object) {
  if (!PyCFunction_Check(object.ptr()) && !PyType_Check(object.ptr())) return nullptr;
  const nb::object name = nb::getattr(object, "__name__", nb::none());
  if (!nb::isinstance<nb::str>(name)) return nullptr;
  PyObject* known = PyDict_GetItem(PyEval_GetBuiltins(), name.ptr());
  if (known != object.ptr()) return nullptr;
  return Session::get().interpreter().find_builtin(nb::cast<std::string>(name));
}

// NumPy's scalars are numbers in tile programs.
bool is_numpy_scalar(nb::handle object) {
  const std::string_view name = Py_TYPE(object.ptr())->tp_name;
  return name.starts_with("numpy.") && name != "numpy.ndarray" && name != "numpy.dtype" &&
         nb::hasattr(object, "item") && !PyType_Check(object.ptr());
}

std::optional<Value> number_or_text(nb::handle object) {
  PyObject* raw = object.ptr();
  if (raw == Py_None) return Value();
  if (PyBool_Check(raw)) return Value(raw == Py_True);
  if (PyLong_Check(raw)) return integer_value(object);
  if (PyFloat_Check(raw)) return Value(PyFloat_AsDouble(raw));
  if (PyUnicode_CheckExact(raw)) return Value(nb::cast<std::string>(nb::borrow<nb::str>(object)));
  return std::nullopt;
}

// Of an object of our Python code that stands for a value of the language.
std::optional<Value> stood_for(nb::handle object) {
  StageValue* held = nullptr;
  const nb::object value = nb::getattr(object, "__tilepilot_value__", nb::none());
  if (!nb::try_cast(value, held, false) || held == nullptr) return std::nullopt;
  return held->value;
}

std::optional<Value> container(nb::handle object, int depth) {
  PyObject* raw = object.ptr();
  const bool is_near = depth < kDeepestContainer;
  if (is_near && PyTuple_CheckExact(raw)) return stage::make_tuple(items_of(object, depth));
  if (is_near && PyList_CheckExact(raw)) return stage::make_list(items_of(object, depth));
  if (is_near && PyDict_CheckExact(raw)) return dict_value(object, depth);
  if (PySlice_Check(raw))
    return Value(std::make_shared<stage::SliceObject>(value_at(object.attr("start"), depth),
                                                      value_at(object.attr("stop"), depth),
                                                      value_at(object.attr("step"), depth)));
  if (raw == Py_Ellipsis) return Value(std::make_shared<stage::EllipsisObject>());
  if (PyRange_Check(raw))
    return Value(std::make_shared<stage::RangeObject>(nb::cast<int64_t>(object.attr("start")),
                                                      nb::cast<int64_t>(object.attr("stop")),
                                                      nb::cast<int64_t>(object.attr("step"))));
  return std::nullopt;
}

nb::object sequence(const std::vector<Value>& items, bool is_tuple) {
  nb::list list;
  for (const Value& item : items) list.append(to_python(item));
  if (is_tuple) return nb::steal(PyList_AsTuple(list.ptr()));
  return list;
}

nb::object dict(const stage::DictObject& from) {
  nb::dict made;
  for (const auto& entry : from.table.entries())
    if (entry.live) made[to_python(entry.key)] = to_python(entry.value);
  return made;
}

// The one string for each element type that stands for it in Python.
nb::object dtype_to_python(const Value& value, ir::DType type) {
  static auto* known = new std::map<std::string, nb::object>();
  nb::object& entry = (*known)[ir::to_string(type)];
  if (!entry.is_valid()) entry = nb::module_::import_("tilepilot.dtypes").attr("DType")(nb::cast(StageValue{value}));
  return entry;
}

nb::object object_to_python(const Value& value) {
  if (auto* dtype = value.get_if<stage::DTypeObject>()) return dtype_to_python(value, dtype->dtype);
  if (auto* object = value.get_if<PythonObject>()) return object->object;
  if (auto* tensor = value.get_if<TensorValue>()) return tensor->object;
  if (auto* tuple = value.get_if<stage::TupleObject>()) return sequence(tuple->items, true);
  if (auto* list = value.get_if<stage::ListObject>()) return sequence(list->items, false);
  if (auto* table = value.get_if<stage::DictObject>()) return dict(*table);
  if (auto* integer = value.get_if<stage::IntObject>())
    return nb::steal(PyLong_FromString(integer->value.to_text().c_str(), nullptr, 10));
  if (auto* slice = value.get_if<stage::SliceObject>())
    return nb::steal(
        PySlice_New(to_python(slice->start).ptr(), to_python(slice->stop).ptr(), to_python(slice->step).ptr()));
  if (auto* range = value.get_if<stage::RangeObject>())
    return nb::module_::import_("builtins").attr("range")(range->start, range->stop, range->step);
  if (value.get_if<stage::EllipsisObject>()) return nb::borrow(Py_Ellipsis);
  return nb::cast(StageValue{value});
}

Value value_at(nb::handle object, int depth) {
  if (auto simple = number_or_text(object)) return *std::move(simple);
  StageValue* held = nullptr;
  if (nb::try_cast(object, held, false) && held != nullptr) return held->value;
  if (auto tensor = tensor_value(object)) return Value(std::move(tensor));
  if (auto made = container(object, depth)) return *std::move(made);
  if (PyModule_Check(object.ptr())) {
    if (auto module = module_of_ours(object)) return Value(std::move(module));
  } else if (const Value* builtin = builtin_value(object)) {
    return *builtin;
  } else if (is_numpy_scalar(object)) {
    return value_at(object.attr("item")(), depth);
  } else if (auto value = stood_for(object)) {
    return *std::move(value);
  } else if (PyUnicode_Check(object.ptr())) {
    return Value(nb::cast<std::string>(nb::str(object)));
  }
  return Value(python_object(object));
}

}  // namespace

Value to_value(nb::handle object) { return value_at(object, 0); }

nb::object to_python(const Value& value) {
  if (value.is_none()) return nb::none();
  if (auto* boolean = value.if_bool()) return nb::borrow(*boolean ? Py_True : Py_False);
  if (auto* integer = value.if_int()) return nb::steal(PyLong_FromLongLong(*integer));
  if (auto* real = value.if_float()) return nb::steal(PyFloat_FromDouble(*real));
  if (auto* text = value.if_string()) return nb::str(text->c_str(), text->size());
  return object_to_python(value);
}

stage::CallArgs to_arguments(const nb::args& args, const nb::kwargs& kwargs, Span span) {
  stage::CallArgs made;
  made.span = span;
  for (nb::handle argument : args) made.positional.push_back(to_value(argument));
  for (auto [name, value] : kwargs)
    made.keywords.emplace_back(stage::Name(nb::cast<std::string>(name)), to_value(value));
  return made;
}

}  // namespace tilepilot::package
