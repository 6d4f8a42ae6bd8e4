#include "python/extension/python_reads.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/extension/conversion.h"
#include "python/extension/function_source.h"

namespace tilepilot::package {
namespace {

using Kind = PythonReads::Kind;

thread_local std::vector<PythonReads*> noting;  // of the traces that go on, innermost last

bool is_number_or_text(PyObject* value) {
  return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
         PyUnicode_CheckExact(value);
}

bool is_container(PyObject* value) {
  return PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value) ||
         PyAnySet_CheckExact(value);
}

using Objects = std::vector<nb::object>;

// Numbers, strings and containers by their content, others by identity; these are added to `kept`, since an address
// says nothing of an object that is gone. So do containers that are deep in others, or in themselves.
void add_content(nb::handle value, std::string& text, Objects* kept, int depth = 0) {
  PyObject* raw = value.ptr();
  if (is_number_or_text(raw)) {
    text += fmt::format("{}:{},", Py_TYPE(raw)->tp_name, nb::cast<std::string>(nb::repr(value)));
  } else if (depth < kDeepestContainer && PyDict_CheckExact(raw)) {
    text += '{';
    for (auto [key, item] : nb::cast<nb::dict>(value)) {
      add_content(key, text, kept, depth + 1);
      add_content(item, text, kept, depth + 1);
    }
    text += '}';
  } else if (depth < kDeepestContainer && is_container(raw)) {
    text += '(';
    for (nb::handle item : nb::iter(value)) add_content(item, text, kept, depth + 1);
    text += ')';
  } else {
    text += fmt::format("@{},", static_cast<const void*>(raw));
    if (kept != nullptr) kept->push_back(nb::borrow(value));
  }
}

std::string content_of(nb::handle value, Objects* kept = nullptr) {
  std::string text;
  add_content(value, text, kept);
  return text;
}

constexpr const char* kFields = "__dataclass_fields__";

bool is_record(const nb::object& value) {
  if (PyType_Check(value.ptr())) return false;
  return nb::hasattr(value, kFields) || std::string_view(Py_TYPE(value.ptr())->tp_name).ends_with("Namespace");
}

nb::object read_again(const PythonReads::Read& read) {
  PyObject* found = nullptr;
  if (read.kind == Kind::outer_name) return outer_object(read.of, read.key);
  if (read.kind == Kind::attribute)
    found = PyObject_GetAttr(read.of.ptr(), read.key.ptr());
  else if (read.kind == Kind::item)
    found = PyObject_GetItem(read.of.ptr(), read.key.ptr());
  else
    found = PySequence_Tuple(read.of.ptr());
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

// Whether two objects of one type are equal, as bound methods of one object are.
bool are_equal(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();  // such as tensors, which have no truth
  return equal == 1;
}

bool is_as_noted(const PythonReads::Read& read, const std::string& content) {
  const nb::object now = read_again(read);
  if (!now.is_valid() || !read.value.is_valid()) return now.is_valid() == read.value.is_valid();
  if (!content.empty()) return content == content_of(now);
  if (now.is(read.value)) return true;
  if (is_number_or_text(now.ptr())) return content_of(now) == content_of(read.value);
  return are_equal(now.ptr(), read.value.ptr());
}

}  // namespace

void PythonReads::begin() { noting.push_back(this); }

void PythonReads::end() { noting.pop_back(); }

void PythonReads::note(const Read& read) {
  const bool is_known = std::any_of(noted_.begin(), noted_.end(), [&](const Noted& each) {
    return each.read.kind == read.kind && each.read.of.is(read.of) &&
           (each.read.key.is(read.key) || are_equal(each.read.key.ptr(), read.key.ptr()));
  });
  if (is_known) return;
  Noted& noted = noted_.emplace_back(Noted{read, "", {}});
  if (read.value.is_valid() && is_container(read.value.ptr())) noted.content = content_of(read.value, &noted.kept);
}

bool PythonReads::are_as_noted() const {
  return std::all_of(noted_.begin(), noted_.end(),
                     [](const Noted& each) { return is_as_noted(each.read, each.content); });
}

void PythonReads::note_outer_names(nb::handle function) {
  const nb::object code = function.attr("__code__");
  for (const char* kind : {"co_freevars", "co_names"})
    for (nb::handle name : nb::iter(code.attr(kind))) {
      const nb::object value = outer_object(function, name);
      if (value.is_valid()) note_record({Kind::outer_name, nb::borrow(function), nb::borrow(name), value});
    }
}

// With its fields, if it is a dataclass or a namespace.
void PythonReads::note_record(const Read& read) {
  const size_t before = noted_.size();
  note(read);
  if (noted_.size() == before || !is_record(read.value)) return;
  for (const char* names : {kFields, "__dict__"}) {
    if (!nb::hasattr(read.value, names)) continue;
    for (nb::handle name : nb::iter(read.value.attr(names)))
      note_record({Kind::attribute, read.value, nb::borrow(name), nb::getattr(read.value, name, nb::object())});
  }
}

void note_items(const nb::object& of) {
  if (noting.empty() || PyIter_Check(of.ptr())) return;
  PyObject* items = PySequence_Tuple(of.ptr());
  if (items == nullptr) PyErr_Clear();
  note_read({Kind::items, of, nb::none(), nb::steal(items)});
}

void note_read(PythonReads::Read read) {
  for (PythonReads* reads : noting) reads->note(read);
}

}  // namespace tilepilot::package
