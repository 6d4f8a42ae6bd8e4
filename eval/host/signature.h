// What a Python call of a tensor function may look like, and the matching of arguments with it by the rules of
// PyTorch's own argument parser: which values a parameter of an ATen type accepts, how they become IValues, in which
// order overloads are tried.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::eval {

class HostState;

enum class ParameterKind : uint8_t {
  tensor,
  tensor_list,
  optional_tensor_list,
  scalar,
  integer,
  real,
  boolean,
  string,
  integer_list,
  real_list,
  boolean_list,
  scalar_list,
  dtype,
  layout,
  device,
  memory_format,
  generator,
  unsupported,  // Dimname, Storage, Stream: no value matches
};

struct Parameter {
  stage::Name name;
  stage::Name alias;  // second spelling that Python accepts: input for self, axis for dim
  ParameterKind kind = ParameterKind::unsupported;
  bool optional = false;  // None is a value
  bool keyword_only = false;
  bool is_out = false;
  int32_t list_size = 0;  // int[2]: one integer stands for two
  std::optional<c10::IValue> default_value;
  std::string type_text;  // as PyTorch's messages write it
};

struct SignatureRules {
  bool numbers_as_tensors = false;  // a number may stand for a tensor (add, mul, ...)
};

// One overload.
class Signature {
 public:
  Signature(const c10::FunctionSchema& schema, SignatureRules rules);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::string& text() const { return text_; }
  bool has_out() const { return has_out_; }
  bool is_method() const { return is_method_; }  // the first parameter is `self` or `input`, a tensor
  bool supported() const { return supported_; }
  size_t index_of(std::string_view name) const;  // npos if absent
  static constexpr size_t npos = static_cast<size_t>(-1);

  // Pushes one IValue a parameter; false if the arguments do not fit, and then the stack is in an undefined state.
  // `self` (may be null) stands before the positional arguments.
  bool match(HostState& state, const stage::Value* self, const stage::CallArgs& args, torch::jit::Stack& stack) const;

 private:
  bool matches_varargs(const stage::Value* self, const stage::CallArgs& args) const;

  std::vector<Parameter> parameters_;
  std::string text_;
  size_t positional_ = 0;  // parameters that may be given by position
  bool has_out_ = false;
  bool is_method_ = false;
  bool supported_ = true;
  bool varargs_function_ = false;  // zeros(2, 3)
  bool varargs_method_ = false;    // x.view(2, 3)
  SignatureRules rules_;
};

// Puts overloads in the order in which PyTorch tries them.
void sort_overloads(std::vector<Signature*>& overloads);

// A value as an argument of a parameter; nullopt: it does not fit.
std::optional<c10::IValue> to_argument(HostState& state, const Parameter& parameter, const stage::Value& value,
                                       SignatureRules rules);

}  // namespace tilepilot::eval
