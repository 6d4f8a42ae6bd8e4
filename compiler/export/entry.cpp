#include "compiler/export/entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "compiler/export/c_names.h"

namespace tilepilot::embedded {
extern const char tilepilot_export_status[];
}

namespace tilepilot::exporting {
namespace {

constexpr int kUnit = 256;  // what pieces of a workspace begin at multiples of

Result<std::vector<std::string>> piece_sizes(const Kernel& kernel) {
  const HostNames names = host_names(kernel.function);
  std::vector<std::string> sizes;
  for (const ir::Buffer& buffer : kernel.program.workspaces)
    sizes.push_back(fmt::format("exported::rounded_up({}, {})", TRY(bytes_of(*buffer, names)), kUnit));
  return sizes;
}

// As kernels take numbers: 64 bits each.
std::string scalar_of(const Argument& argument) {
  if (argument.type.is_float()) return fmt::format("exported::bits_of({})", argument.name);
  if (argument.type.is_bool()) return fmt::format("{} != 0", argument.name);
  return fmt::format("static_cast<int64_t>({})", argument.name);
}

std::string real_text(double value) {
  if (std::isnan(value)) return "__builtin_nan(\"\")";
  if (std::isinf(value)) return value < 0 ? "-__builtin_inf()" : "__builtin_inf()";
  return fmt::format("double({:.17g})", value);
}

std::string value_text(const Library& library, const ModelLaunch::Value& value, const Argument& argument) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("INT64_C({})", *integer);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  const auto& memory = std::get<ModelLaunch::Memory>(value);
  const std::string base = memory.is_workspace
                               ? "tp_memory"
                               : fmt::format("(char*)({})", library.model->function.arguments[memory.argument].name);
  const char* constant = argument.is_written ? "" : "const ";
  return fmt::format("({}{}*)({} + INT64_C({}))", constant, element_type(argument.type), base, memory.offset);
}

// Of numbers and extents alone, for the size of a kernel's workspace.
std::string size_values(const Library& library, const ModelLaunch& launch) {
  const auto& arguments = library.kernels[launch.kernel].function.arguments;
  std::vector<std::string> values;
  for (size_t k = 0; k < arguments.size(); ++k)
    if (arguments[k].kind != Argument::Kind::tensor)
      values.push_back(value_text(library, launch.values[k], arguments[k]));
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

std::string c_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      result += ' ';
    else if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else
      result += c;
  }
  return result + "\"";
}

std::string check_text(const SourceMap& sources, Span span, const std::string& message) {
  if (!span.valid() || static_cast<size_t>(span.file) >= sources.size()) return message;
  const std::string file = std::filesystem::path(sources.name(span.file)).filename();
  return fmt::format("{}:{}: {}", file, sources.position(span.file, span.begin).line, message);
}

Result<std::string> size_function(const Library& library, const Kernel& kernel) {
  std::string text = fmt::format("\nTP_API int64_t {}_workspace_size({}) {{\n", prefixed(library, kernel.function),
                                 size_parameter_list(kernel.function));
  const std::vector<std::string> sizes = TRY(piece_sizes(kernel));
  if (sizes.empty()) return text + "  return 0;\n}\n";
  for (const Argument& argument : kernel.function.arguments)
    if (argument.kind == Argument::Kind::extent)
      text += fmt::format("  if ({0} < 0 || {0} > INT32_MAX) return -1;\n", argument.name);
  text += "  int64_t tp_bytes = 0;\n";
  for (const std::string& size : sizes) text += fmt::format("  tp_bytes = exported::sum(tp_bytes, {});\n", size);
  return text + fmt::format("  return tp_bytes == 0 ? 0 : exported::sum(tp_bytes, {});\n}}\n", kUnit - 1);
}

Result<std::string> entry_beginning(const Library& library, const Kernel& kernel) {
  const std::string name = prefixed(library, kernel.function);
  std::string text = fmt::format("\nTP_API int {}({}) {{\n", name, parameter_list(kernel.function));
  text += TRY(argument_checks(kernel.function, name));
  const std::vector<std::string> sizes = TRY(piece_sizes(kernel));
  std::vector<std::string> buffers, scalars;
  for (const Argument& argument : kernel.function.arguments)
    if (argument.kind == Argument::Kind::tensor)
      buffers.push_back(fmt::format("(void*){}", argument.name));
    else
      scalars.push_back(scalar_of(argument));
  if (!sizes.empty())
    text += fmt::format(
        "  if (const int tp_status = exported::check_workspace(\"{0}\", workspace, {0}_workspace_size({1}));\n"
        "      tp_status != 0)\n    return tp_status;\n  char* tp_memory = exported::aligned(workspace, {2});\n",
        name, size_arguments(kernel.function), kUnit);
  for (size_t k = 0; k < sizes.size(); ++k) {
    text += fmt::format("  char* const tp_piece_{} = tp_memory;\n  tp_memory += {};\n", k, sizes[k]);
    buffers.push_back(fmt::format("tp_piece_{}", k));
  }
  scalars.emplace_back("0");  // so that there is one
  text += fmt::format("  void* tp_buffers[] = {{{}}};\n", fmt::join(buffers, ", "));
  return text + fmt::format("  int64_t tp_scalars[] = {{{}}};\n", fmt::join(scalars, ", "));
}

std::string library_beginning(const Library& library) {
  return fmt::format("// Made by `tilepilot export` of {}, for the target {}. See README.md beside this folder.\n{}",
                     library.file, library.target, embedded::tilepilot_export_status);
}

std::string library_functions(const Library& library) {
  std::string text = fmt::format(
      "\nTP_API const char* {0}_status_text(int status) {{ return exported::text_of(status); }}\n"
      "TP_API const char* {0}_last_error(void) {{ return exported::last_error; }}\n",
      library.name);
  if (!library.is_gpu())
    text += fmt::format("TP_API int {}_set_threads(int threads) {{ return exported::set_threads(threads); }}\n",
                        library.name);
  return text;
}

Result<std::string> model_functions(const Library& library) {
  if (!library.model) return std::string();
  const Model& model = *library.model;
  const std::string name = prefixed(library, model.function);
  std::string text = fmt::format("\nTP_API int64_t {}_workspace_size(void) {{\n  int64_t tp_kernels = 0;\n", name);
  for (const ModelLaunch& launch : model.launches)
    if (!library.kernels[launch.kernel].program.workspaces.empty())
      text += fmt::format("  tp_kernels = exported::most(tp_kernels, {}_workspace_size({}));\n",
                          prefixed(library, library.kernels[launch.kernel].function), size_values(library, launch));
  text += fmt::format("  const int64_t tp_bytes = INT64_C({}) + tp_kernels;\n", model.buffer_bytes);
  text += fmt::format("  return tp_bytes == 0 ? 0 : tp_bytes + {};\n}}\n", kUnit - 1);
  text += fmt::format("\nTP_API int {}({}) {{\n", name, parameter_list(model.function));
  text += TRY(argument_checks(model.function, name));
  text += fmt::format(
      "  if (const int tp_status = exported::check_workspace(\"{0}\", workspace, {0}_workspace_size());\n"
      "      tp_status != 0)\n    return tp_status;\n"
      "  char* const tp_memory = exported::aligned(workspace, {1});\n  int tp_status = 0;\n",
      name, kUnit);
  for (const ModelLaunch& launch : model.launches) {
    const Function& kernel = library.kernels[launch.kernel].function;
    std::vector<std::string> values;
    for (size_t k = 0; k < kernel.arguments.size(); ++k)
      values.push_back(value_text(library, launch.values[k], kernel.arguments[k]));
    text += fmt::format(
        "  // line {}\n  tp_status = {}({}, tp_memory + INT64_C({}), stream);\n  if (tp_status != 0) return "
        "tp_status;\n",
        launch.line, prefixed(library, kernel), fmt::join(values, ", "), model.buffer_bytes);
  }
  return text + "  return 0;\n}\n";
}

}  // namespace tilepilot::exporting
