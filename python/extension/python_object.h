// An object of Python inside a tile program. What the program does with it, Python does: attributes, calls, items,
// operators. A function of Python that has a source is evaluated here instead, so that loops and conditions over values
// of the tile program mean there what they mean in the program itself.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::package {

namespace nb = nanobind;
using stage::Interpreter;
using stage::Name;
using stage::Value;

struct PythonObject final : stage::TypedObject<PythonObject> {
  static constexpr stage::Type kType{"Python object"};
  explicit PythonObject(nb::object object_) : object(std::move(object_)) {}
  std::string_view type_name() const override { return Py_TYPE(object.ptr())->tp_name; }

  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  Result<Value> call(Interpreter&, stage::CallArgs args) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Status set_item(Interpreter&, const Value& index, Value value, Span span) override;
  Status delete_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span span) override;
  Result<std::unique_ptr<stage::Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<bool> truth(Interpreter&, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  Result<std::string> str(Interpreter&) override;
  Result<std::optional<Value>> unary(Interpreter&, stage::UnaryOp op, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, stage::BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, stage::CompareOp op, const Value& other, Span span) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  Result<Value> enter(Interpreter&, Span span) override;
  Status exit(Interpreter&, Span span) override;
  bool is_callable() const override { return PyCallable_Check(object.ptr()) != 0; }

  const nb::object object;
};

// One for each object that lives: a program that gets the same object again sees the same value.
std::shared_ptr<PythonObject> python_object(nb::handle object);

}  // namespace tilepilot::package
