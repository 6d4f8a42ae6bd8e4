#include "compiler/export/examples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/export/c_names.h"
#include "compiler/export/signature.h"
#include "compiler/runtime/arguments.h"

namespace tilepilot::embedded {
extern const char tilepilot_export_example_elements[], tilepilot_export_example_cpu[], tilepilot_export_example_cuda[];
}

namespace tilepilot::exporting {
namespace {

constexpr int64_t kExtent = 64;  // of axes that the call decides

// Of a contiguous tensor.
std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

std::vector<int64_t> values_of(const std::vector<ir::Expr>& exprs, const ir::VarRanges& values) {
  std::vector<int64_t> result;
  for (const ir::Expr& expr : exprs) result.push_back(runtime::evaluate(expr, values));
  return result;
}

// Strides that a call decides are those of contiguous tensors.
void choose_strides(const Function& function, ir::VarRanges& values) {
  for (const Argument& argument : function.arguments) {
    const std::vector<int64_t> usual = row_major(values_of(argument.shape, values));
    for (size_t axis = 0; axis < argument.strides.size(); ++axis)
      if (const auto* ref = std::get_if<ir::VarRef>(&argument.strides[axis]->node))
        values.emplace(ref->var.get(), ir::Bounds{usual[axis], usual[axis]});
  }
}

// The name that the helpers of the examples know an element type by.
std::string example_type(ir::DType type) {
  if (type.is_nibble()) return "packed";
  if (type == ir::kTensorFloat32) return "float32";
  return ir::to_string(type) == "bool" ? "boolean" : ir::to_string(type);
}

int64_t stored_elements(const Argument& argument, const ExampleCall::Tensor& tensor) {
  return argument.type.is_nibble() ? (tensor.elements + 1) / 2 : tensor.elements;
}

std::string number_text(const Argument& argument, int64_t value) {
  return argument.kind == Argument::Kind::extent ? fmt::format("INT64_C({})", value) : fmt::format("{}", value);
}

// "64, 1": what `NAME_workspace_size` takes.
std::string size_values_of(const ExampleCall& call) {
  std::vector<std::string> values;
  for (size_t k = 0; k < call.function->arguments.size(); ++k)
    if (call.function->arguments[k].kind != Argument::Kind::tensor)
      values.push_back(number_text(call.function->arguments[k], call.numbers[k]));
  return fmt::format("{}", fmt::join(values, ", "));
}

// The call itself; `data` gives the pointer of a tensor's variable.
std::string call_text(const Library& library, const ExampleCall& call, const char* data) {
  std::vector<std::string> values;
  for (size_t k = 0; k < call.function->arguments.size(); ++k) {
    const Argument& argument = call.function->arguments[k];
    if (argument.kind != Argument::Kind::tensor) {
      values.push_back(number_text(argument, call.numbers[k]));
      continue;
    }
    values.push_back(fmt::format("static_cast<{}*>({}{})", element_type(argument.type), argument.name, data));
  }
  return fmt::format("{}({}, workspace{}, nullptr)", prefixed(library, *call.function), fmt::join(values, ", "), data);
}

std::vector<const Function*> functions_of(const Library& library) {
  std::vector<const Function*> all;
  for (const Kernel& kernel : library.kernels) all.push_back(&kernel.function);
  if (library.model) all.push_back(&library.model->function);
  return all;
}

std::string plain_call(const Library& library, const Function& function) {
  const ExampleCall call = example_call(function);
  const char* buffer = library.is_gpu() ? "DeviceBuffer" : "HostBuffer";
  std::string text = fmt::format("\n// {}\nstatic int call_{}() {{\n", function.comment, function.name);
  for (size_t k = 0; k < function.arguments.size(); ++k) {
    const Argument& argument = function.arguments[k];
    if (argument.kind != Argument::Kind::tensor) continue;
    text += fmt::format("  {} {}(Type::{}, {});\n", buffer, argument.name, example_type(argument.type),
                        stored_elements(argument, call.tensors[k]));
    if (argument.is_read) text += fmt::format("  {}.fill();\n", argument.name);
  }
  text += fmt::format("  {} workspace(Type::uint8, {}_workspace_size({}));\n", buffer, prefixed(library, function),
                      size_values_of(call));
  text += fmt::format("  const int status = {};\n", call_text(library, call, ".data()"));
  text += fmt::format("  if (status != {}_DONE) return failed(status);\n", upper_case(library.name));
  for (const Argument& argument : function.arguments)
    if (argument.is_written)
      text += fmt::format("  std::printf(\"{0} {1} %.9g\\n\", {1}.checksum());\n", function.name, argument.name);
  return text + "  return 0;\n}\n";
}

std::string torch_type(ir::DType type) {
  if (type == ir::kFloat16) return "torch::kFloat16";
  if (type == ir::kBFloat16) return "torch::kBFloat16";
  if (type == ir::kFloat8E4M3) return "torch::kFloat8_e4m3fn";
  if (type == ir::kFloat8E5M2) return "torch::kFloat8_e5m2";
  if (type.is_bool()) return "torch::kBool";
  if (type.is_float() && type.bits < 32) return "torch::kUInt8";  // of 4 bits, and powers of two
  if (type.is_float()) return type.bits == 32 ? "torch::kFloat32" : "torch::kFloat64";
  const char* sign = type.code == ir::TypeCode::unsigned_int ? "U" : "";
  return fmt::format("torch::k{}Int{}", sign, std::max<int>(8, type.bits));
}

// Memory that is as large as the tensor, and its view.
std::string torch_tensor(const Argument& argument, const ExampleCall::Tensor& tensor) {
  std::vector<int64_t> shape = tensor.shape, strides = tensor.strides;
  if (argument.type.is_nibble() && !shape.empty()) {
    shape.back() = (shape.back() + 1) / 2;
    strides = row_major(shape);
  }
  return fmt::format("  torch::Tensor {0} = torch::empty_strided({{{1}}}, {{{2}}}, on_device({3})).fill_({4});\n",
                     argument.name, fmt::join(shape, ", "), fmt::join(strides, ", "), torch_type(argument.type),
                     argument.is_read ? "0.5" : "0");
}

std::string torch_call(const Library& library, const Function& function) {
  const ExampleCall call = example_call(function);
  std::string text = fmt::format("\n// {}\nstatic int call_{}() {{\n", function.comment, function.name), checks;
  for (size_t k = 0; k < function.arguments.size(); ++k) {
    const Argument& argument = function.arguments[k];
    if (argument.kind != Argument::Kind::tensor) continue;
    text += torch_tensor(argument, call.tensors[k]);
    if (argument.is_written)
      checks += fmt::format("  std::cout << \"{0} {1} \" << {1}.sizes() << \"\\n\";\n", function.name, argument.name);
  }
  text +=
      fmt::format("  torch::Tensor workspace = torch::empty({{{}_workspace_size({})}}, on_device(torch::kUInt8));\n",
                  prefixed(library, function), size_values_of(call));
  text += fmt::format("  const int status = {};\n", call_text(library, call, ".data_ptr()"));
  text += fmt::format("  if (status != {}_DONE) return failed(status);\n", upper_case(library.name));
  return text + checks + "  return 0;\n}\n";
}

std::string main_text(const Library& library) {
  std::string text = "\nint main() {\n";
  for (const Function* function : functions_of(library))
    text += fmt::format("  if (const int status = call_{}(); status != 0) return status;\n", function->name);
  return text + "  return 0;\n}\n";
}

std::string failure_text(const Library& library) {
  return fmt::format(
      "\nstatic int failed(int status) {{\n  std::fprintf(stderr, \"%s: %s\\n\", {0}_status_text(status), "
      "{0}_last_error());\n  return status;\n}}\n",
      library.name);
}

}  // namespace

ExampleCall example_call(const Function& function) {
  ExampleCall call{&function, std::vector<ExampleCall::Tensor>(function.arguments.size()),
                   std::vector<int64_t>(function.arguments.size(), 1)};
  ir::VarRanges values;
  for (const Argument& argument : function.arguments)
    if (argument.kind == Argument::Kind::extent) values[argument.variable.get()] = {kExtent, kExtent};
  choose_strides(function, values);
  for (size_t k = 0; k < function.arguments.size(); ++k) {
    const Argument& argument = function.arguments[k];
    if (argument.variable) {
      const auto value = values.emplace(argument.variable.get(), ir::Bounds{1, 1}).first->second;
      call.numbers[k] = value.lo;
    }
  }
  for (size_t k = 0; k < function.arguments.size(); ++k) {
    const Argument& argument = function.arguments[k];
    if (argument.kind != Argument::Kind::tensor) continue;
    ExampleCall::Tensor& tensor = call.tensors[k];
    tensor.shape = values_of(argument.shape, values);
    tensor.strides = argument.strides.empty() ? row_major(tensor.shape) : values_of(argument.strides, values);
    tensor.elements = 1;
    for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
      tensor.elements += (std::max<int64_t>(1, tensor.shape[axis]) - 1) * tensor.strides[axis];
  }
  return call;
}

std::string plain_example(const Library& library) {
  std::string text = fmt::format(
      "// Calls every function of {0} on buffers of its own, and prints a checksum of each tensor that it wrote.\n{1}"
      "\n#include \"{0}.h\"\n{2}{3}",
      library.name, embedded::tilepilot_export_example_elements,
      library.is_gpu() ? embedded::tilepilot_export_example_cuda : embedded::tilepilot_export_example_cpu,
      failure_text(library));
  for (const Function* function : functions_of(library)) text += plain_call(library, *function);
  return text + main_text(library);
}

std::string torch_example(const Library& library) {
  std::string text = fmt::format(
      "// Calls every function of {0} on LibTorch's tensors, and prints the shape of each tensor that it wrote.\n"
      "#include <torch/torch.h>\n\n#include <cstdio>\n#include <iostream>\n\n#include \"{0}.h\"\n\n"
      "static torch::TensorOptions on_device(torch::Dtype type) {{ return torch::dtype(type).device({1}); }}\n{2}",
      library.name, library.is_gpu() ? "torch::kCUDA" : "torch::kCPU", failure_text(library));
  for (const Function* function : functions_of(library)) text += torch_call(library, *function);
  return text + main_text(library);
}

}  // namespace tilepilot::exporting
