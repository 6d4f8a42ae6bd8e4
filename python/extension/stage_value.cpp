#include "python/extension/stage_value.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "python/extension/conversion.h"
#include "python/extension/errors.h"
#include "python/extension/python_object.h"
#include "python/extension/session.h"

namespace tilepilot::package {
namespace {

using stage::BinaryOp;
using stage::CompareOp;
using stage::UnaryOp;

// Begins an operation of Python on a value.
struct Operation {
  SessionLock lock;
  Session& session = Session::get();
  stage::Interpreter& interpreter = session.interpreter();
  Span span = session.span;
};

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

// Another object of Python has its own operators, which were asked before or will be.
bool is_foreign(const Value& value) { return value.get_if<PythonObject>() != nullptr; }

template <BinaryOp op, bool reflected>
nb::object binary(const StageValue& self, nb::handle other) {
  Operation on;
  const Value operand = to_value(other);
  if (is_foreign(operand)) return not_implemented();
  return to_python(value_of(reflected ? on.interpreter.binary(op, operand, self.value, on.span)
                                      : on.interpreter.binary(op, self.value, operand, on.span)));
}

template <UnaryOp op>
nb::object unary(const StageValue& self) {
  Operation on;
  return to_python(value_of(on.interpreter.unary(op, self.value, on.span)));
}

template <CompareOp op>
nb::object compare(const StageValue& self, nb::handle other) {
  Operation on;
  const Value operand = to_value(other);
  if (is_foreign(operand) && (op == CompareOp::eq || op == CompareOp::ne)) return not_implemented();
  return to_python(value_of(on.interpreter.compare(op, self.value, operand, on.span)));
}

template <BinaryOp op>
void add_binary(nb::class_<StageValue>& value, const char* name) {
  value.def(fmt::format("__{}__", name).c_str(), binary<op, false>, nb::arg().none());
  value.def(fmt::format("__r{}__", name).c_str(), binary<op, true>, nb::arg().none());
}

void add_operators(nb::class_<StageValue>& value) {
  add_binary<BinaryOp::add>(value, "add");
  add_binary<BinaryOp::sub>(value, "sub");
  add_binary<BinaryOp::mul>(value, "mul");
  add_binary<BinaryOp::div>(value, "truediv");
  add_binary<BinaryOp::floor_div>(value, "floordiv");
  add_binary<BinaryOp::mod>(value, "mod");
  add_binary<BinaryOp::pow>(value, "pow");
  add_binary<BinaryOp::shl>(value, "lshift");
  add_binary<BinaryOp::shr>(value, "rshift");
  add_binary<BinaryOp::bit_and>(value, "and");
  add_binary<BinaryOp::bit_or>(value, "or");
  add_binary<BinaryOp::bit_xor>(value, "xor");
  value.def("__eq__", compare<CompareOp::eq>, nb::arg().none());
  value.def("__ne__", compare<CompareOp::ne>, nb::arg().none());
  value.def("__lt__", compare<CompareOp::lt>, nb::arg().none());
  value.def("__le__", compare<CompareOp::le>, nb::arg().none());
  value.def("__gt__", compare<CompareOp::gt>, nb::arg().none());
  value.def("__ge__", compare<CompareOp::ge>, nb::arg().none());
  value.def("__pos__", unary<UnaryOp::plus>);
  value.def("__neg__", unary<UnaryOp::minus>);
  value.def("__invert__", unary<UnaryOp::invert>);
}

std::vector<Value> items_of(const StageValue& self) {
  Operation on;
  return value_of(on.interpreter.to_vector(self.value, on.span));
}

void add_container_methods(nb::class_<StageValue>& value) {
  value.def(
      "__getitem__",
      [](const StageValue& self, nb::handle index) {
        Operation on;
        return to_python(value_of(on.interpreter.get_item(self.value, to_value(index), on.span)));
      },
      nb::arg().none());
  value.def(
      "__setitem__",
      [](const StageValue& self, nb::handle index, nb::handle item) {
        Operation on;
        check(on.interpreter.set_item(self.value, to_value(index), to_value(item), on.span));
      },
      nb::arg().none(), nb::arg().none());
  value.def("__len__", [](const StageValue& self) {
    Operation on;
    return value_of(on.interpreter.length(self.value, on.span));
  });
  value.def("__iter__", [](const StageValue& self) {
    nb::list items;
    for (const Value& item : items_of(self)) items.append(to_python(item));
    return nb::steal(PyObject_GetIter(items.ptr()));
  });
  value.def("__enter__", [](const StageValue& self) {
    Operation on;
    auto* object = self.value.if_object();
    return to_python(object ? value_of((*object)->enter(on.interpreter, on.span)) : Value());
  });
  value.def("__exit__", [](const StageValue& self, const nb::args&) {
    Operation on;
    if (auto* object = self.value.if_object()) check((*object)->exit(on.interpreter, on.span));
  });
}

// A number of Python, where the value is a constant.
nb::object converted(const StageValue& self, const char* type) {
  Operation on;
  Value* builtin = on.interpreter.find_builtin(type);
  return to_python(value_of(on.interpreter.call(*builtin, {{self.value}, {}, on.span, {}})));
}

}  // namespace

void add_stage_value(nb::module_& module) {
  nb::class_<StageValue> value(module, "Value", "a name or a value of the tile language");
  value.def("__call__", [](const StageValue& self, const nb::args& args, const nb::kwargs& kwargs) {
    Operation on;
    nb::object result = to_python(value_of(on.interpreter.call(self.value, to_arguments(args, kwargs, on.span))));
    tell_warnings();
    return result;
  });
  value.def("__getattr__", [](const StageValue& self, const std::string& name) {
    Operation on;
    return to_python(value_of(on.interpreter.get_attribute(self.value, stage::Name(name), on.span)));
  });
  value.def("__repr__", [](const StageValue& self) {
    Operation on;
    return value_of(on.interpreter.repr(self.value));
  });
  value.def("__str__", [](const StageValue& self) {
    Operation on;
    return value_of(on.interpreter.str(self.value));
  });
  value.def("__hash__", [](const StageValue& self) {
    Operation on;
    return static_cast<Py_hash_t>(value_of(on.interpreter.hash(self.value, on.span)) >> 1);
  });
  value.def("__bool__", [](const StageValue& self) {
    Operation on;
    return value_of(on.interpreter.truth(self.value, on.span));
  });
  value.def("__int__", [](const StageValue& self) { return converted(self, "int"); });
  value.def("__index__", [](const StageValue& self) { return converted(self, "int"); });
  value.def("__float__", [](const StageValue& self) { return converted(self, "float"); });
  value.def_prop_ro("type_name", [](const StageValue& self) { return std::string(self.value.type_name()); });
  // NumPy leaves operators with its own values to this side.
  value.attr("__array_ufunc__") = nb::none();
  add_operators(value);
  add_container_methods(value);
}

}  // namespace tilepilot::package
